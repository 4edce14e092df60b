//! Where a session hears what is wanted of it, also while its kernel is busy.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::job::Notice;
use super::queue::{Queue, Task};
use super::report::{Activity, Face};
use crate::error::KernelError;
use crate::stop::{Stop, StopReason, Stopper};

/// How long a cell may take to react when its session is ended, before its kernel is killed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is wanted of a session.
pub(super) enum Command {
    Do(Task),
    /// Stop what runs now; says whether something did.
    Interrupt(oneshot::Sender<bool>),
    /// A fresh kernel, at once; says its generation.
    Reset(oneshot::Sender<Result<u32, KernelError>>),
}

pub(super) struct Desk {
    commands: mpsc::Receiver<Command>,
    /// Whether anybody is left who could send one.
    open: bool,
    /// Pulled when the session must end.
    end: Stop,
    pub(super) queue: Queue,
    /// Who wants a fresh kernel.
    pub(super) resets: Vec<oneshot::Sender<Result<u32, KernelError>>>,
    pub(super) face: Face,
}

impl Desk {
    pub(super) fn new(commands: mpsc::Receiver<Command>, end: Stop, face: Face) -> Self {
        Self {
            commands,
            open: true,
            end,
            queue: Queue::default(),
            resets: Vec::new(),
            face,
        }
    }

    /// Whether the session must end.
    pub(super) fn is_ending(&self) -> bool {
        self.end.reason().is_some()
    }

    /// Whether nothing is left to do, and nobody who could want something.
    pub(super) fn is_deserted(&self) -> bool {
        !self.open && self.queue.len() == 0
    }

    /// Waits for `future`, hearing what is wanted meanwhile. `current` ends what runs.
    pub(super) async fn during<T>(
        &mut self,
        current: Option<&Stopper>,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = pin!(future);
        let end = self.end.clone();
        let mut pulled = pin!(end.pulled());
        let mut killed_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                value = &mut future => return value,
                _ = &mut pulled, if killed_at.is_none() => {
                    killed_at = Some(Instant::now() + LAST_WORDS);
                    if let Some(current) = current {
                        current.stop(StopReason::ShuttingDown);
                    }
                }
                () = sleep_until(killed_at.unwrap_or_else(Instant::now)), if killed_at.is_some() => {
                    // Once is enough; the next time is never.
                    killed_at = Some(Instant::now() + Duration::from_hours(1));
                    if let Some(current) = current {
                        current.stop_at_once(StopReason::ShuttingDown);
                    }
                }
                command = self.commands.recv(), if self.open => self.hear(command, current),
                (task, reason) = self.queue.leaver() => {
                    self.refuse(task, KernelError::StoppedEarly { reason });
                }
            }
        }
    }

    /// The same for what need not be finished when the session ends.
    pub(super) async fn during_life<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let end = self.end.clone();
        let future = async {
            tokio::select! {
                biased;
                value = future => Some(value),
                _ = end.pulled() => None,
            }
        };
        self.during(None, future).await
    }

    /// Waits for the next thing that is wanted, or for `other`.
    pub(super) async fn idle<T>(&mut self, other: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.end.pulled() => None,
            command = self.commands.recv(), if self.open => {
                self.hear(command, None);
                None
            }
            value = other => Some(value),
        }
    }

    /// Hears what has been said already.
    pub(super) fn catch_up(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.hear(Some(command), None);
        }
    }

    fn hear(&mut self, command: Option<Command>, current: Option<&Stopper>) {
        match command {
            None => self.open = false,
            Some(Command::Do(task)) => self.queue.push(task),
            Some(Command::Interrupt(reply)) => {
                if let Some(current) = current {
                    current.stop(StopReason::Cancelled);
                }
                // Whoever asked may have gone.
                reply.send(current.is_some()).ok();
            }
            Some(Command::Reset(reply)) => {
                // The kernel goes in any case, so nobody waits for the code to react.
                if let Some(current) = current {
                    current.stop_at_once(StopReason::Reset);
                }
                self.resets.push(reply);
            }
        }
    }

    /// Tells a waiter that its turn will not come.
    fn refuse(&mut self, task: Task, error: KernelError) {
        let mut task = task;
        if let Task::Run { job, .. } = &mut task
            && let Activity::Busy {
                owner,
                label,
                since,
            } = self.face.with(|look| look.activity.clone())
        {
            job.audience.tell(Notice::Busy {
                owner,
                label,
                since,
            });
        }
        self.face.answered();
        task.refuse(error);
    }

    /// The session ends: nobody is heard any more, and whoever waits is told.
    pub(super) fn close(&mut self) {
        self.commands.close();
        self.catch_up();
        self.face.with(|look| look.activity = Activity::Empty);
        while let Some(task) = self.queue.pop() {
            self.refuse(task, KernelError::SessionEnded);
        }
        for reply in self.resets.drain(..) {
            self.face.answered();
            reply.send(Err(KernelError::SessionEnded)).ok();
        }
    }
}
