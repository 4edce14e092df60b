//! The pool's data: its sessions by key, and the losses that callers have not been notified of.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::debug;

use super::SessionKey;
use super::job::KernelLoss;
use super::mailbox::SessionCommand;
use super::pool::SessionCall;
use super::queue::QueuedCall;
use super::status::{Activity, SessionId, SessionReport, StatusCell};
use crate::error::KernelError;
use crate::stop::{StopHandle, StopReason};

/// The maximum number of recorded losses; the oldest is dropped.
const LOSSES_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct Registry {
    pub(super) sessions: BTreeMap<RegistryKey, SessionHandle>,
    /// Ended sessions whose callers have not been notified. A private session is recorded even if
    /// nothing was lost, so that its owner does not return to the shared session it was split off from.
    pub(super) losses: VecDeque<(RegistryKey, Option<KernelLoss>)>,
    /// Sessions that were removed and whose kernels are shutting down.
    pub(super) ending: Vec<SessionHandle>,
    pub(super) last_id: u64,
    pub(super) closed: bool,
}

/// A session key, and the owner if the session was split off from a shared one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RegistryKey {
    pub(super) session: SessionKey,
    pub(super) private_to: Option<String>,
}

impl RegistryKey {
    pub(super) fn shared(call: &SessionCall) -> Self {
        Self {
            session: call.key.clone(),
            private_to: None,
        }
    }

    fn private(call: &SessionCall) -> Self {
        Self {
            session: call.key.clone(),
            private_to: Some(call.owner.clone()),
        }
    }
}

impl Registry {
    /// The session that serves a call.
    pub(super) fn key_for(&self, call: &SessionCall) -> RegistryKey {
        let private = RegistryKey::private(call);
        if self.is_known(&private) {
            private
        } else {
            RegistryKey::shared(call)
        }
    }

    /// The session that serves a call with a reset, and whether it splits the caller off from other
    /// owners.
    pub(super) fn key_for_reset(&self, call: &SessionCall) -> (RegistryKey, bool) {
        let key = self.key_for(call);
        if self.has_other_owners(&key, &call.owner) {
            (RegistryKey::private(call), true)
        } else {
            (key, false)
        }
    }

    /// Whether the session exists, or existed and is recorded as lost.
    fn is_known(&self, key: &RegistryKey) -> bool {
        self.sessions.contains_key(key) || self.losses.iter().any(|(other, _)| other == key)
    }

    /// Whether the session has an owner other than `owner`.
    pub(super) fn has_other_owners(&self, key: &RegistryKey, owner: &str) -> bool {
        self.sessions
            .get(key)
            .is_some_and(|session| session.owners.iter().any(|other| other != owner))
    }

    /// Removes the caller from the owners of the shared session, because it has a private one now.
    pub(super) fn remove_shared_owner(&mut self, call: &SessionCall) {
        if let Some(session) = self.sessions.get_mut(&RegistryKey::shared(call)) {
            session.owners.remove(&call.owner);
        }
    }

    pub(super) fn by_id(&mut self, id: SessionId) -> Option<&mut SessionHandle> {
        self.sessions.values_mut().find(|session| session.id == id)
    }

    /// Removes a session without recording a loss.
    pub(super) fn remove(&mut self, id: SessionId) -> Option<SessionHandle> {
        let (key, _) = self.sessions.iter().find(|(_, session)| session.id == id)?;
        let key = key.clone();
        self.sessions.remove(&key)
    }

    /// The session that has been idle longest, and for how long, but never `keep`.
    pub(super) fn longest_idle(
        &self,
        keep: Option<&RegistryKey>,
    ) -> Option<(Duration, RegistryKey)> {
        self.sessions
            .iter()
            .filter(|(key, _)| Some(*key) != keep)
            .filter_map(|(key, session)| Some((session.idle_for()?, Reverse(session.id), key)))
            .max()
            .map(|(idle, _, key)| (idle, key.clone()))
    }

    /// Ends an unused session. Records the loss for its next caller if it had variables.
    pub(super) fn evict(&mut self, key: &RegistryKey, loss: KernelLoss) {
        let Some(session) = self.sessions.remove(key) else {
            return;
        };
        let (used, unreported) = session
            .status
            .with(|status| (status.executions > 0, status.unreported_loss));
        debug!(session = session.id.0, ?loss, used, "session evicted");
        let loss = used.then_some(loss).or(unreported);
        if loss.is_some() || key.private_to.is_some() {
            self.record_loss(key.clone(), loss);
        }
        session.end_handle.stop(StopReason::ShuttingDown);
        self.ending.retain(|session| !session.task.is_finished());
        self.ending.push(session);
    }

    pub(super) fn record_loss(&mut self, key: RegistryKey, loss: Option<KernelLoss>) {
        self.losses.retain(|(other, _)| *other != key);
        self.losses.push_back((key, loss));
        if self.losses.len() > LOSSES_MAX {
            self.losses.pop_front();
        }
    }

    /// Removes and returns the recorded loss of a session.
    pub(super) fn take_loss(&mut self, key: &RegistryKey) -> Option<KernelLoss> {
        let index = self.losses.iter().position(|(other, _)| other == key)?;
        self.losses.remove(index).and_then(|(_, loss)| loss)
    }
}

/// The pool's handle to a session: its worker task, command channel, status and owners.
pub(super) struct SessionHandle {
    pub(super) id: SessionId,
    pub(super) commands: mpsc::Sender<SessionCommand>,
    pub(super) status: StatusCell,
    pub(super) owners: BTreeSet<String>,
    pub(super) end_handle: StopHandle,
    pub(super) task: JoinHandle<()>,
}

impl SessionHandle {
    /// Sends a call to the session and counts it as pending. Returns the call and the reason if the
    /// session cannot accept it.
    pub(super) fn submit(
        &self,
        call: QueuedCall,
        limit: usize,
    ) -> Option<(QueuedCall, KernelError)> {
        // One pending call runs; the others wait.
        if self.status.with(|status| status.pending > limit) {
            return Some((call, KernelError::QueueFull { limit }));
        }
        self.status.call_accepted();
        let error = match self.commands.try_send(SessionCommand::Enqueue(call)) {
            Ok(()) => return None,
            Err(error) => error,
        };
        self.status.call_finished();
        let reason = send_error(&error, limit);
        match error.into_inner() {
            SessionCommand::Enqueue(call) => Some((call, reason)),
            // Only calls are sent here.
            _ => None,
        }
    }

    /// Requests a fresh kernel and counts the request as a pending call.
    pub(super) fn send_reset(
        &self,
        reply: oneshot::Sender<Result<u32, KernelError>>,
        limit: usize,
    ) -> Result<(), KernelError> {
        // Counted before it is sent: the worker may finish it immediately.
        self.status.call_accepted();
        self.commands
            .try_send(SessionCommand::Reset(reply))
            .map_err(|error| {
                self.status.call_finished();
                send_error(&error, limit)
            })
    }

    /// Stops the running job.
    pub(super) fn send_interrupt(
        &self,
        reply: oneshot::Sender<bool>,
        limit: usize,
    ) -> Result<(), KernelError> {
        self.commands
            .try_send(SessionCommand::Interrupt(reply))
            .map_err(|error| send_error(&error, limit))
    }

    /// The time since the last use; `None` while calls are pending.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        self.status
            .with(|status| (status.pending == 0).then(|| status.last_used.elapsed()))
    }

    /// Whether the session never had a kernel, starts none, and has no pending calls.
    pub(super) fn never_started(&self) -> bool {
        self.status.with(|status| {
            status.pending == 0 && status.generation == 0 && status.activity == Activity::Empty
        })
    }

    /// Ends the session and waits until its worker has finished.
    pub(super) async fn end(self) {
        self.end_handle.stop(StopReason::ShuttingDown);
        // A worker that panicked has finished, too.
        self.task.await.ok();
    }

    pub(super) fn report(&self, key: &RegistryKey) -> SessionReport {
        self.status.with(|status| SessionReport {
            id: self.id,
            key: key.session.clone(),
            private_to: key.private_to.clone(),
            owners: self.owners.iter().cloned().collect(),
            activity: status.activity.clone(),
            waiting: status.pending.saturating_sub(usize::from(matches!(
                status.activity,
                Activity::Busy { .. }
            ))),
            generation: status.generation,
            executions: status.executions,
            kernel: status.kernel.clone(),
            memory: None,
            age: status.created.elapsed(),
            idle: status.last_used.elapsed(),
        })
    }
}

/// The reason why a command could not be sent to a session.
fn send_error(error: &mpsc::error::TrySendError<SessionCommand>, limit: usize) -> KernelError {
    match error {
        mpsc::error::TrySendError::Full(_) => KernelError::QueueFull { limit },
        mpsc::error::TrySendError::Closed(_) => KernelError::SessionEnded,
    }
}
