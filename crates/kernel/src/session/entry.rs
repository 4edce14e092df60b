//! One session, as the pool holds it.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::desk::Command;
use super::queue::{Moment, Task};
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
        self.face.with(|look| {
            look.pending += 1;
            look.used = Moment::now();
        });
        let (command, error) = match self.commands.try_send(Command::Do(task)) {
            Ok(()) => return None,
            Err(mpsc::error::TrySendError::Full(command)) => {
                (command, KernelError::QueueFull { limit })
            }
            Err(mpsc::error::TrySendError::Closed(command)) => (command, KernelError::SessionEnded),
        };
        self.face.answered();
        match command {
            Command::Do(task) => Some((task, error)),
            // Only tasks are sent here.
            _ => None,
        }
    }

    /// How long nobody has used it; `None` while somebody does.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        self.face
            .with(|look| (look.pending == 0).then(|| look.used.instant.elapsed()))
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
