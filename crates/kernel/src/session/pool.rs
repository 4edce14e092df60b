//! [`Sessions`]: which sessions there are, whose they are, and which must go.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::entry::Entry;
use super::job::{Job, Loss, refused};
use super::launch::Launch;
use super::queue::{Task, first_stop};
use super::registry::{Registry, Slot};
use super::report::{Face, SessionId, SessionReport};
use super::spare::Spares;
use super::worker::{Making, Worker};
use super::{Policy, SessionKey};
use crate::error::KernelError;
use crate::kernel::Question;
use crate::process::Processes;
use crate::stop::{Stop, StopReason};

/// How often is looked for sessions that have been idle too long, at the most.
const SWEEP: Duration = Duration::from_secs(1);

/// The sessions. Clones are the same pool.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Mutex<Registry>>,
    policy: Policy,
    spares: Spares,
}

/// Who calls which session.
pub struct Call {
    /// Which session.
    pub key: SessionKey,
    /// On whose behalf.
    pub owner: String,
    /// How to start its kernel, if one must be started.
    pub launch: Arc<dyn Launch>,
    /// Whether a fresh kernel is wanted. Others who share the session keep theirs.
    pub reset: bool,
}

/// A job that a session took.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The session.
    pub id: SessionId,
    /// Whether it was made for this call.
    pub new: bool,
}

/// What a reset gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The session that the caller has now.
    pub id: SessionId,
    /// The number of its kernel; 0 if the next call will start it.
    pub generation: u32,
    /// Whether it is the caller's own now, because others go on with the kernel there was.
    pub private: bool,
}

impl Sessions {
    /// An empty pool.
    pub fn new(policy: Policy, spares: Spares) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Registry::default())),
            policy,
            spares,
        }
    }

    /// Hands a job to a session, which is made if there is none. `None`: no session took it, and the
    /// job's audience knows why. Must be called within a runtime.
    pub fn submit(&self, call: &Call, mut job: Job) -> Option<Accepted> {
        let reset = call.reset || job.cells.first().is_some_and(|cell| cell.reset);
        let mut inner = self.lock();
        let (slot, split) = if reset {
            inner.slot_for_fresh(call)
        } else {
            (inner.slot_for(call), false)
        };
        // What runs before it needs the kernel that others go on with.
        if let Some(cell) = job.cells.iter().skip(1).position(|cell| cell.reset)
            && inner.has_others(&slot, &call.owner)
        {
            drop(inner);
            refused(job.audience, KernelError::SharedReset { cell: cell + 1 });
            return None;
        }
        let (entry, new) = match self.entry(&mut inner, (&slot, split), call) {
            Ok(found) => found,
            Err(error) => {
                drop(inner);
                refused(job.audience, error);
                return None;
            }
        };
        if let Some(first) = job.cells.first_mut() {
            first.reset = reset && !new;
        }
        let id = entry.id;
        job.audience.accepted(id);
        let task = Task::Run {
            first: first_stop(&job),
            resets: entry.face.with(|look| look.resets),
            launch: Arc::clone(&call.launch),
            job: Box::new(job),
        };
        let left = entry.send(task, self.policy.queue);
        if left.is_none() {
            entry.owners.insert(call.owner.clone());
            if split {
                inner.move_out(call);
            }
        }
        drop(inner);
        if let Some((task, error)) = left {
            task.refuse(error);
            return None;
        }
        Some(Accepted { id, new })
    }

    /// Gives the caller a fresh kernel: in place of the one there is, or beside it if others use that.
    pub async fn reset(&self, call: &Call) -> Result<Renewed, KernelError> {
        let (reply, answer) = oneshot::channel();
        let (id, private) = {
            let mut inner = self.lock();
            let (slot, split) = inner.slot_for_fresh(call);
            let private = slot.private_to.is_some();
            let (entry, new) = self.entry(&mut inner, (&slot, split), call)?;
            let id = entry.id;
            if !new {
                entry.send_reset(reply, self.policy.queue)?;
            }
            entry.owners.insert(call.owner.clone());
            if split {
                inner.move_out(call);
            }
            if new {
                let generation = 0;
                return Ok(Renewed {
                    id,
                    generation,
                    private,
                });
            }
            (id, private)
        };
        let generation = answer.await.map_err(|_| KernelError::SessionEnded)??;
        Ok(Renewed {
            id,
            generation,
            private,
        })
    }

    /// Asks the kernel of a session something.
    pub async fn ask(
        &self,
        id: SessionId,
        question: Question,
        stop: &Stop,
    ) -> Result<Value, KernelError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut inner = self.lock();
            let entry = inner.by_id(id).ok_or(KernelError::NoSession)?;
            let task = Task::Ask {
                question,
                stop: stop.clone(),
                reply,
            };
            if let Some((task, error)) = entry.send(task, self.policy.queue) {
                task.refuse(error);
            }
        }
        answer.await.map_err(|_| KernelError::SessionEnded)?
    }

    /// Stops what a session runs now; says whether something did.
    pub async fn interrupt(&self, id: SessionId) -> Result<bool, KernelError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut inner = self.lock();
            let entry = inner.by_id(id).ok_or(KernelError::NoSession)?;
            entry.send_interrupt(reply, self.policy.queue)?;
        }
        answer.await.map_err(|_| KernelError::SessionEnded)
    }

    /// An owner leaves a session; says whether it was the last one, with whom the session ends.
    pub async fn leave(&self, id: SessionId, owner: &str) -> Result<bool, KernelError> {
        let entry = {
            let mut inner = self.lock();
            let entry = inner.by_id(id).ok_or(KernelError::NoSession)?;
            entry.owners.remove(owner);
            if !entry.owners.is_empty() {
                return Ok(false);
            }
            // Now, not after somebody else has come.
            inner.remove(id)
        };
        if let Some(entry) = entry {
            entry.end().await;
        }
        Ok(true)
    }

    /// Ends a session for everybody.
    pub async fn end(&self, id: SessionId) -> Result<(), KernelError> {
        let entry = self.lock().remove(id).ok_or(KernelError::NoSession)?;
        entry.end().await;
        Ok(())
    }

    /// Ends everything.
    pub async fn close(&self) {
        let entries: Vec<Entry> = {
            let mut inner = self.lock();
            inner.closed = true;
            let leaving = std::mem::take(&mut inner.leaving);
            let entries = std::mem::take(&mut inner.entries);
            entries.into_values().chain(leaving).collect()
        };
        // All of them are told before the first is waited for.
        for entry in &entries {
            entry.end.stop(StopReason::ShuttingDown);
        }
        for entry in entries {
            entry.end().await;
        }
        self.spares.close().await;
    }

    /// The sessions as they are now, oldest first, without their memory.
    pub fn list(&self) -> Vec<SessionReport> {
        let mut reports: Vec<SessionReport> = {
            let inner = self.lock();
            inner
                .entries
                .iter()
                .map(|(slot, entry)| entry.report(slot))
                .collect()
        };
        reports.sort_by_key(|report| report.id);
        reports
    }

    /// The sessions as they are now, with the memory they use. That takes a look at every process of
    /// the machine.
    pub fn list_with_memory(&self) -> Vec<SessionReport> {
        let mut reports = self.list();
        let processes = Processes::now();
        for report in &mut reports {
            let pid = report.kernel.as_ref().and_then(|kernel| kernel.pid);
            report.memory = pid.and_then(|pid| processes.memory_of(pid));
        }
        reports
    }

    /// Lets go of sessions that never came to have a kernel and that nobody uses. Those that somebody
    /// was split off into stay: their owner comes back to them.
    pub fn discard_unborn(&self) {
        let mut inner = self.lock();
        let unborn = |(slot, entry): (&Slot, &Entry)| {
            let nothing = slot.private_to.is_none() && entry.is_unborn();
            nothing.then(|| slot.clone())
        };
        let slots: Vec<Slot> = inner.entries.iter().filter_map(unborn).collect();
        for slot in slots {
            // It has nothing to lose.
            inner.evict(&slot, Loss::Broken);
        }
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.lock().entries.len()
    }

    /// Remembers that a session's kernel is lost, so that its next caller is told.
    pub fn remember_loss(&self, key: SessionKey, private_to: Option<String>, loss: Loss) {
        self.lock().remember(Slot { key, private_to }, Some(loss));
    }

    /// Ends sessions that have been idle too long, now and again. Never ends; whoever wants that done
    /// keeps it going.
    pub async fn sweep(&self) {
        let Some(limit) = self.policy.idle else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(SWEEP.min(limit)).await;
            let mut inner = self.lock();
            let slots: Vec<Slot> = inner
                .entries
                .iter()
                .filter(|(_, entry)| entry.idle_for().is_some_and(|idle| idle >= limit))
                .map(|(slot, _)| slot.clone())
                .collect();
            for slot in slots {
                inner.evict(&slot, Loss::Idle(limit));
            }
        }
    }

    /// The entry of a slot, made if need be; says whether it was. `split`: beside a shared one.
    fn entry<'a>(
        &self,
        inner: &'a mut Registry,
        (slot, split): (&Slot, bool),
        call: &Call,
    ) -> Result<(&'a mut Entry, bool), KernelError> {
        if inner.closed {
            return Err(KernelError::SessionEnded);
        }
        let broken = inner
            .entries
            .get(slot)
            .is_some_and(|entry| entry.commands.is_closed());
        if broken {
            // Its task came to grief, which must not be the end of the session.
            inner.entries.remove(slot);
            inner.remember(slot.clone(), Some(Loss::Broken));
        }
        let new = !inner.entries.contains_key(slot);
        if new {
            // Whoever is split off must not take away from the others what they go on with.
            let shared = split.then(|| Slot::shared(call));
            self.make_room(inner, shared.as_ref())?;
            let entry = self.make(inner, slot, &call.launch);
            inner.entries.insert(slot.clone(), entry);
        }
        let entry = inner.entries.get_mut(slot).ok_or(KernelError::NoSession)?;
        Ok((entry, new))
    }

    /// Ends the session that has been idle longest if there are too many, but not `keep`.
    fn make_room(&self, inner: &mut Registry, keep: Option<&Slot>) -> Result<(), KernelError> {
        let limit = self.policy.most_sessions;
        while inner.entries.len() >= limit {
            let oldest = inner
                .entries
                .iter()
                .filter(|(slot, _)| Some(*slot) != keep)
                .filter_map(|(slot, entry)| Some((entry.idle_for()?, Reverse(entry.id), slot)))
                .max()
                .map(|(.., slot)| slot.clone());
            let Some(slot) = oldest else {
                return Err(KernelError::TooManySessions { limit });
            };
            inner.evict(&slot, Loss::Crowded { limit });
        }
        Ok(())
    }

    fn make(&self, inner: &mut Registry, slot: &Slot, launch: &Arc<dyn Launch>) -> Entry {
        inner.last_id += 1;
        let (commands, receiver) = mpsc::channel(self.policy.queue.max(1) + 16);
        let (end, stop) = Stop::new();
        let face = Face::new();
        face.with(|look| look.untold = inner.take_loss(slot));
        let worker = Worker::new(Making {
            launch: Arc::clone(launch),
            spares: self.spares.clone(),
            policy: self.policy.clone(),
            commands: receiver,
            end: stop,
            face: face.clone(),
        });
        Entry {
            id: SessionId(inner.last_id),
            commands,
            face,
            owners: BTreeSet::new(),
            end,
            task: tokio::spawn(worker.run()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
