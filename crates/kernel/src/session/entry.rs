//! One session, as the pool holds it.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::desk::Command;
use super::queue::Task;
use super::registry::Slot;
use super::report::{Activity, Face, SessionId, SessionReport};
use crate::error::KernelError;
use crate::stop::{StopReason, Stopper};

pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) face: Face,
    pub(super) owners: BTreeSet<String>,
    pub(super) end: Stopper,
    pub(super) task: JoinHandle<()>,
}

impl Entry {
    /// Hands a task over, and counts it; hands it back if it cannot be taken, with the reason.
    pub(super) fn send(&self, task: Task, limit: usize) -> Option<(Task, KernelError)> {
        // One of them runs; the others wait.
        if self.face.with(|look| look.pending > limit) {
            return Some((task, KernelError::QueueFull { limit }));
        }
        self.face.asked();
        let error = match self.commands.try_send(Command::Do(task)) {
            Ok(()) => return None,
            Err(error) => error,
        };
        self.face.answered();
        let why = unsent(&error, limit);
        match error.into_inner() {
            Command::Do(task) => Some((task, why)),
            // Only tasks are sent here.
            _ => None,
        }
    }

    /// Has it renew its kernel, and counts whoever wants that as somebody who uses it.
    pub(super) fn send_reset(
        &self,
        reply: oneshot::Sender<Result<u32, KernelError>>,
        limit: usize,
    ) -> Result<(), KernelError> {
        // Before it is sent: it may be answered at once.
        self.face.asked();
        self.commands
            .try_send(Command::Reset(reply))
            .map_err(|error| {
                self.face.answered();
                unsent(&error, limit)
            })
    }

    /// Stops what it runs now.
    pub(super) fn send_interrupt(
        &self,
        reply: oneshot::Sender<bool>,
        limit: usize,
    ) -> Result<(), KernelError> {
        self.commands
            .try_send(Command::Interrupt(reply))
            .map_err(|error| unsent(&error, limit))
    }

    /// How long nobody has used it; `None` while somebody does.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        self.face
            .with(|look| (look.pending == 0).then(|| look.used.instant.elapsed()))
    }

    /// Whether it never had a kernel, has none on the way, and nobody uses it.
    pub(super) fn is_unborn(&self) -> bool {
        self.face.with(|look| {
            look.pending == 0 && look.generation == 0 && look.activity == Activity::Empty
        })
    }

    /// Ends it and waits until it has gone.
    pub(super) async fn end(self) {
        self.end.stop(StopReason::ShuttingDown);
        // A task that came to grief is gone, too.
        self.task.await.ok();
    }

    pub(super) fn report(&self, slot: &Slot) -> SessionReport {
        self.face.with(|look| SessionReport {
            id: self.id,
            key: slot.key.clone(),
            private_to: slot.private_to.clone(),
            owners: self.owners.iter().cloned().collect(),
            activity: look.activity.clone(),
            waiting: look
                .pending
                .saturating_sub(usize::from(matches!(look.activity, Activity::Busy { .. }))),
            generation: look.generation,
            executions: look.executions,
            kernel: look.kernel.clone(),
            memory: None,
            age: look.made.instant.elapsed(),
            idle: look.used.instant.elapsed(),
        })
    }
}

/// Why a session does not hear.
fn unsent(error: &mpsc::error::TrySendError<Command>, limit: usize) -> KernelError {
    match error {
        mpsc::error::TrySendError::Full(_) => KernelError::QueueFull { limit },
        mpsc::error::TrySendError::Closed(_) => KernelError::SessionEnded,
    }
}
