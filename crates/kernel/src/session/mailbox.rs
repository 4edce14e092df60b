//! [`Mailbox`]: receives a session's commands, also while its kernel is busy.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::job::SessionNotice;
use super::queue::{Queue, QueuedCall};
use super::status::{Activity, StatusCell};
use crate::error::KernelError;
use crate::stop::{StopHandle, StopReason, StopSignal};

/// How long a cell may take to react when its session ends, before its kernel is killed.
const END_GRACE: Duration = Duration::from_secs(2);

/// A command to a session.
pub(super) enum SessionCommand {
    Enqueue(QueuedCall),
    /// Stops the running job. Replies whether one was running.
    Interrupt(oneshot::Sender<bool>),
    /// Replaces the kernel immediately. Replies with the new generation.
    Reset(oneshot::Sender<Result<u32, KernelError>>),
}

pub(super) struct Mailbox {
    commands: mpsc::Receiver<SessionCommand>,
    /// Whether a sender is left.
    open: bool,
    /// Requested when the session must end.
    end: StopSignal,
    pub(super) queue: Queue,
    /// Callers that wait for a fresh kernel.
    pub(super) pending_resets: Vec<oneshot::Sender<Result<u32, KernelError>>>,
    pub(super) status: StatusCell,
}

impl Mailbox {
    pub(super) fn new(
        commands: mpsc::Receiver<SessionCommand>,
        end: StopSignal,
        status: StatusCell,
    ) -> Self {
        Self {
            commands,
            open: true,
            end,
            queue: Queue::default(),
            pending_resets: Vec::new(),
            status,
        }
    }

    /// Whether the session must end.
    pub(super) fn is_ending(&self) -> bool {
        self.end.reason().is_some()
    }

    /// Whether no call waits and no sender is left.
    pub(super) fn is_closed_and_empty(&self) -> bool {
        !self.open && self.queue.len() == 0
    }

    /// Waits for `future` and handles commands meanwhile. `current` stops the running job.
    pub(super) async fn serve_while<T>(
        &mut self,
        current: Option<&StopHandle>,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = pin!(future);
        let end = self.end.clone();
        let mut ending = pin!(end.requested());
        let mut force_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                value = &mut future => return value,
                _ = &mut ending, if force_at.is_none() => {
                    force_at = Some(Instant::now() + END_GRACE);
                    if let Some(current) = current {
                        current.stop(StopReason::ShuttingDown);
                    }
                }
                () = sleep_until(force_at.unwrap_or_else(Instant::now)), if force_at.is_some() => {
                    // Forcing once is enough: disable the deadline.
                    force_at = Some(Instant::now() + Duration::from_hours(1));
                    if let Some(current) = current {
                        current.force_stop(StopReason::ShuttingDown);
                    }
                }
                command = self.commands.recv(), if self.open => self.handle(command, current),
                (call, reason) = self.queue.next_stopped() => {
                    self.reject(call, KernelError::StoppedEarly { reason });
                }
            }
        }
    }

    /// Like `serve_while`, but drops `future` and returns `None` when the session ends.
    pub(super) async fn serve_until_end<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let end = self.end.clone();
        let future = async {
            tokio::select! {
                biased;
                value = future => Some(value),
                _ = end.requested() => None,
            }
        };
        self.serve_while(None, future).await
    }

    /// Waits for the next command or for `other`. Returns `None` for a command and at the session's end.
    pub(super) async fn wait_idle<T>(&mut self, other: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.end.requested() => None,
            command = self.commands.recv(), if self.open => {
                self.handle(command, None);
                None
            }
            value = other => Some(value),
        }
    }

    /// Handles all commands that have already arrived.
    pub(super) fn receive_pending(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.handle(Some(command), None);
        }
    }

    fn handle(&mut self, command: Option<SessionCommand>, current: Option<&StopHandle>) {
        match command {
            None => self.open = false,
            Some(SessionCommand::Enqueue(call)) => self.queue.push(call),
            Some(SessionCommand::Interrupt(reply)) => {
                if let Some(current) = current {
                    current.stop(StopReason::Cancelled);
                }
                // Fails if the caller no longer waits.
                reply.send(current.is_some()).ok();
            }
            Some(SessionCommand::Reset(reply)) => {
                // The kernel is replaced anyway, so there is no need to wait for the code to react.
                if let Some(current) = current {
                    current.force_stop(StopReason::Reset);
                }
                self.pending_resets.push(reply);
            }
        }
    }

    /// Reports to a waiting caller that its call will not be served, and which job keeps the session
    /// busy.
    fn reject(&mut self, mut call: QueuedCall, error: KernelError) {
        if let QueuedCall::Run { job, .. } = &mut call
            && let Activity::Busy {
                owner,
                label,
                since,
            } = self.status.with(|status| status.activity.clone())
        {
            job.observer.on_notice(SessionNotice::Busy {
                owner,
                label,
                since,
            });
        }
        self.status.call_finished();
        call.reject(error);
    }

    /// Ends the session: accepts no more commands and rejects the waiting calls.
    pub(super) fn close(&mut self) {
        self.commands.close();
        self.receive_pending();
        self.status.with(|status| status.activity = Activity::Empty);
        while let Some(call) = self.queue.pop() {
            self.reject(call, KernelError::SessionEnded);
        }
        for reply in self.pending_resets.drain(..) {
            self.status.call_finished();
            reply.send(Err(KernelError::SessionEnded)).ok();
        }
    }
}
