//! [`Sessions`]: the pool of sessions. It routes calls, records owners, and evicts sessions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cellwright_stdext::LockExt;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::group::{PoolGroup, Pools};
use super::job::{Job, KernelLoss, reject_job};
use super::kernel_slot::KernelSlot;
use super::launcher::KernelLauncher;
use super::mailbox::Mailbox;
use super::queue::{QueuedCall, queue_stop};
use super::registry::{Registry, RegistryKey, SessionHandle};
use super::spare::SpareKernels;
use super::status::{SessionId, SessionReport, StatusCell};
use super::worker::Worker;
use super::{Policy, SessionKey};
use crate::error::KernelError;
use crate::kernel::KernelQuery;
use crate::process::ProcessTable;
use crate::stop::{StopReason, StopSignal};

/// The longest interval between two searches for idle sessions.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A pool of sessions. Clones share it.
#[derive(Clone)]
pub struct Sessions {
    registry: Arc<Mutex<Registry>>,
    /// The pools that share the limit on sessions and the spare kernels with this one.
    group: Arc<PoolGroup>,
    policy: Policy,
    spares: SpareKernels,
}

/// The caller, and the session it calls.
pub struct SessionCall {
    /// The key of the session.
    pub key: SessionKey,
    /// The owner that calls.
    pub owner: String,
    /// Starts the session's kernel if needed.
    pub launcher: Arc<dyn KernelLauncher>,
    /// Whether the caller needs a fresh kernel. Other owners of the session keep theirs.
    pub reset: bool,
}

/// A job that a session accepted.
#[derive(Clone, Debug)]
pub struct SubmitOutcome {
    /// The session.
    pub id: SessionId,
    /// Whether the session was created for this call.
    pub created: bool,
}

/// The result of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetOutcome {
    /// The caller's session.
    pub id: SessionId,
    /// The generation of its kernel; 0 if the next call will start it.
    pub generation: u32,
    /// Whether the session is private to the caller, because other owners keep the previous kernel.
    pub private: bool,
}

impl Sessions {
    /// An empty pool.
    pub fn new(policy: Policy, spares: SpareKernels) -> Self {
        Self::in_group(Arc::default(), policy, spares)
    }

    /// An empty pool that shares the limit on sessions and the spare kernels with this one, but no session.
    #[must_use]
    pub fn sibling(&self) -> Self {
        let group = Arc::clone(&self.group);
        Self::in_group(group, self.policy.clone(), self.spares.clone())
    }

    fn in_group(group: Arc<PoolGroup>, policy: Policy, spares: SpareKernels) -> Self {
        let registry = Arc::default();
        group.lock().add(&registry);
        Self {
            registry,
            group,
            policy,
            spares,
        }
    }

    /// Sends a job to a session, which is created if there is none. Returns `None` if no session
    /// accepted it; the job's observer has received the reason. Must be called within a tokio runtime.
    pub fn submit(&self, call: &SessionCall, mut job: Job) -> Option<SubmitOutcome> {
        let reset = call.reset || job.cells.needs_reset(0);
        let group = self.group.lock();
        let mut registry = self.lock();
        let (key, split) = if reset {
            registry.key_for_reset(call)
        } else {
            (registry.key_for(call), false)
        };
        // The cells before a later reset need the kernel that the other owners keep.
        if let Some(cell) = job.cells.later_reset()
            && registry.has_other_owners(&key, &call.owner)
        {
            drop(registry);
            reject_job(job.observer, KernelError::SharedReset { cell });
            return None;
        }
        let found = self.find_or_create(&group, &mut registry, (&key, split), call);
        drop(group);
        let (session, created) = match found {
            Ok(found) => found,
            Err(error) => {
                drop(registry);
                reject_job(job.observer, error);
                return None;
            }
        };
        job.cells.set_reset_first(reset && !created);
        let id = session.id;
        job.observer.on_accepted(id);
        let queued = QueuedCall::Run {
            queue_stop: queue_stop(&job),
            resets_seen: session.status.with(|status| status.resets),
            launcher: Arc::clone(&call.launcher),
            job: Box::new(job),
        };
        let rejected = session.submit(queued, self.policy.queue_limit);
        if rejected.is_none() {
            session.owners.insert(call.owner.clone());
            if split {
                registry.remove_shared_owner(call);
            }
        }
        drop(registry);
        if let Some((queued, error)) = rejected {
            queued.reject(error);
            return None;
        }
        Some(SubmitOutcome { id, created })
    }

    /// Gives the caller a fresh kernel: in the same session, or in a private one if the session has
    /// other owners.
    pub async fn reset(&self, call: &SessionCall) -> Result<ResetOutcome, KernelError> {
        let (reply, answer) = oneshot::channel();
        let (id, private) = {
            let group = self.group.lock();
            let mut registry = self.lock();
            let (key, split) = registry.key_for_reset(call);
            let private = key.private_to.is_some();
            let (session, created) =
                self.find_or_create(&group, &mut registry, (&key, split), call)?;
            drop(group);
            let id = session.id;
            if !created {
                session.send_reset(reply, self.policy.queue_limit)?;
            }
            session.owners.insert(call.owner.clone());
            if split {
                registry.remove_shared_owner(call);
            }
            if created {
                let generation = 0;
                return Ok(ResetOutcome {
                    id,
                    generation,
                    private,
                });
            }
            (id, private)
        };
        let generation = answer.await.map_err(|_| KernelError::SessionEnded)??;
        Ok(ResetOutcome {
            id,
            generation,
            private,
        })
    }

    /// Sends a query to the kernel of a session.
    pub async fn query(
        &self,
        id: SessionId,
        query: KernelQuery,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut registry = self.lock();
            let session = registry.by_id(id).ok_or(KernelError::NoSession)?;
            let queued = QueuedCall::Query {
                query,
                stop: stop.clone(),
                reply,
            };
            if let Some((queued, error)) = session.submit(queued, self.policy.queue_limit) {
                queued.reject(error);
            }
        }
        answer.await.map_err(|_| KernelError::SessionEnded)?
    }

    /// Stops the running job of a session. Returns whether one was running.
    pub async fn interrupt(&self, id: SessionId) -> Result<bool, KernelError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut registry = self.lock();
            let session = registry.by_id(id).ok_or(KernelError::NoSession)?;
            session.send_interrupt(reply, self.policy.queue_limit)?;
        }
        answer.await.map_err(|_| KernelError::SessionEnded)
    }

    /// Removes an owner from a session. Returns whether it was the last one, which ends the session.
    pub async fn leave(&self, id: SessionId, owner: &str) -> Result<bool, KernelError> {
        let session = {
            let mut registry = self.lock();
            let session = registry.by_id(id).ok_or(KernelError::NoSession)?;
            session.owners.remove(owner);
            if !session.owners.is_empty() {
                return Ok(false);
            }
            // Under the same lock, before another owner can join.
            registry.remove(id)
        };
        if let Some(session) = session {
            session.end().await;
        }
        Ok(true)
    }

    /// Ends a session for all owners.
    pub async fn end(&self, id: SessionId) -> Result<(), KernelError> {
        let session = self.lock().remove(id).ok_or(KernelError::NoSession)?;
        session.end().await;
        Ok(())
    }

    /// Ends all sessions. Later calls are rejected. Shuts the spare kernels down unless a sibling uses them.
    pub async fn close(&self) {
        let sessions: Vec<SessionHandle> = {
            let mut registry = self.lock();
            registry.closed = true;
            let ending = std::mem::take(&mut registry.ending);
            let sessions = std::mem::take(&mut registry.sessions);
            sessions.into_values().chain(ending).collect()
        };
        // Stop all of them before waiting for the first, so that they end concurrently.
        for session in &sessions {
            session.end_handle.stop(StopReason::ShuttingDown);
        }
        for session in sessions {
            session.end().await;
        }
        if self.group.lock().is_closed() {
            self.spares.close().await;
        }
    }

    /// The current sessions, oldest first, without their memory use.
    pub fn list(&self) -> Vec<SessionReport> {
        let mut reports: Vec<SessionReport> = {
            let registry = self.lock();
            registry
                .sessions
                .iter()
                .map(|(key, session)| session.report(key))
                .collect()
        };
        reports.sort_by_key(|report| report.id);
        reports
    }

    /// The current sessions with their memory use, which reads the process table of the machine.
    pub fn list_with_memory(&self) -> Vec<SessionReport> {
        let mut reports = self.list();
        let processes = ProcessTable::capture();
        for report in &mut reports {
            let pid = report.kernel.as_ref().and_then(|kernel| kernel.pid);
            report.memory = pid.and_then(|pid| processes.tree_memory(pid));
        }
        reports
    }

    /// Discards sessions that never had a kernel and have no pending calls. Private sessions stay:
    /// their owner returns to them.
    pub fn discard_never_started(&self) {
        let mut registry = self.lock();
        let discardable = |(key, session): (&RegistryKey, &SessionHandle)| {
            let discard = key.private_to.is_none() && session.never_started();
            discard.then(|| key.clone())
        };
        let keys: Vec<RegistryKey> = registry.sessions.iter().filter_map(discardable).collect();
        for key in keys {
            // The loss is never recorded: the session has no variables.
            registry.evict(&key, KernelLoss::Broken);
        }
    }

    /// The number of sessions.
    pub fn count(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Records that a session's kernel is lost, so that its next caller is notified.
    pub fn record_loss(&self, key: SessionKey, private_to: Option<String>, loss: KernelLoss) {
        let key = RegistryKey {
            session: key,
            private_to,
        };
        self.lock().record_loss(key, Some(loss));
    }

    /// Ends sessions that exceed the idle timeout, periodically. Never returns; the caller spawns it.
    pub async fn evict_idle(&self) {
        let Some(limit) = self.policy.idle_timeout else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(IDLE_CHECK_INTERVAL.min(limit)).await;
            let mut registry = self.lock();
            let keys: Vec<RegistryKey> = registry
                .sessions
                .iter()
                .filter(|(_, session)| session.idle_for().is_some_and(|idle| idle >= limit))
                .map(|(key, _)| key.clone())
                .collect();
            for key in keys {
                registry.evict(&key, KernelLoss::Idle(limit));
            }
        }
    }

    /// The session with this key, created if there is none; also whether it was created. `split`: it is
    /// split off from a shared session.
    fn find_or_create<'a>(
        &self,
        group: &Pools,
        registry: &'a mut Registry,
        (key, split): (&RegistryKey, bool),
        call: &SessionCall,
    ) -> Result<(&'a mut SessionHandle, bool), KernelError> {
        if registry.closed {
            return Err(KernelError::SessionEnded);
        }
        let broken = registry
            .sessions
            .get(key)
            .is_some_and(|session| session.commands.is_closed());
        if broken {
            // Its worker panicked. A new worker replaces it.
            registry.sessions.remove(key);
            registry.record_loss(key.clone(), Some(KernelLoss::Broken));
        }
        let created = !registry.sessions.contains_key(key);
        if created {
            // Splitting off must not evict the shared session that the other owners keep.
            let shared = split.then(|| RegistryKey::shared(call));
            self.evict_to_limit(group, registry, shared.as_ref())?;
            let session = self.create(registry, key, &call.launcher);
            registry.sessions.insert(key.clone(), session);
        }
        let session = registry
            .sessions
            .get_mut(key)
            .ok_or(KernelError::NoSession)?;
        Ok((session, created))
    }

    /// Ends the sessions of the group that have been idle longest until there is room for one more, but never `keep`.
    fn evict_to_limit(
        &self,
        group: &Pools,
        registry: &mut Registry,
        keep: Option<&RegistryKey>,
    ) -> Result<(), KernelError> {
        let limit = self.policy.max_sessions;
        let loss = KernelLoss::Evicted { limit };
        loop {
            let (sibling_count, sibling) = group.siblings(&self.registry);
            if registry.sessions.len() + sibling_count < limit {
                return Ok(());
            }
            let own = registry.longest_idle(keep);
            let sibling_idle = sibling.as_ref().map(|session| session.idle);
            if let Some((idle, key)) = own
                && sibling_idle.is_none_or(|other| idle >= other)
            {
                registry.evict(&key, loss);
            } else if let Some(sibling) = sibling {
                sibling.evict(loss);
            } else {
                return Err(KernelError::TooManySessions { limit });
            }
        }
    }

    fn create(
        &self,
        registry: &mut Registry,
        key: &RegistryKey,
        launcher: &Arc<dyn KernelLauncher>,
    ) -> SessionHandle {
        registry.last_id += 1;
        let (commands, receiver) = mpsc::channel(self.policy.queue_limit.max(1) + 16);
        let (end_handle, end_signal) = StopSignal::new();
        let status = StatusCell::new();
        status.with(|status| status.unreported_loss = registry.take_loss(key));
        let worker = Worker::new(
            Mailbox::new(receiver, end_signal, status.clone()),
            KernelSlot::new(
                Arc::clone(launcher),
                self.spares.clone(),
                self.policy.clone(),
                status.clone(),
            ),
        );
        SessionHandle {
            id: SessionId(registry.last_id),
            commands,
            status,
            owners: BTreeSet::new(),
            end_handle,
            task: tokio::spawn(worker.run()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock_ignoring_poison()
    }
}
