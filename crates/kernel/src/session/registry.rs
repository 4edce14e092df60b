//! What the pool knows: the sessions by what tells them apart, and what became of those that are gone.

use std::collections::{HashMap, VecDeque};

use super::SessionKey;
use super::entry::Entry;
use super::job::Loss;
use super::pool::Call;
use super::report::SessionId;
use crate::stop::StopReason;

/// Of how many ended sessions is remembered what became of them, until somebody asks.
const REMEMBERED: usize = 1024;

#[derive(Default)]
pub(super) struct Registry {
    pub(super) entries: HashMap<Slot, Entry>,
    /// What became of sessions whose callers do not know yet.
    pub(super) losses: VecDeque<(Slot, Loss)>,
    /// Sessions that have been ended and whose kernels are on their way out.
    pub(super) leaving: Vec<Entry>,
    pub(super) last_id: u64,
    pub(super) closed: bool,
}

/// A key, and whose own it is if it was split off from a shared one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) key: SessionKey,
    pub(super) private_to: Option<String>,
}

impl Registry {
    /// Where a call goes; also says whether the caller is split off from others.
    pub(super) fn slot_for(&self, call: &Call) -> (Slot, bool) {
        if call.reset {
            return self.slot_for_fresh(call);
        }
        let private = Slot {
            key: call.key.clone(),
            private_to: Some(call.owner.clone()),
        };
        let key = call.key.clone();
        if self.has(&private) {
            (private, false)
        } else {
            (
                Slot {
                    key,
                    private_to: None,
                },
                false,
            )
        }
    }

    /// Whether somebody has, or had, such a session.
    pub(super) fn has(&self, slot: &Slot) -> bool {
        self.entries.contains_key(slot) || self.losses.iter().any(|(there, _)| there == slot)
    }

    /// Where a call goes that wants a fresh kernel.
    pub(super) fn slot_for_fresh(&self, call: &Call) -> (Slot, bool) {
        let private = Slot {
            key: call.key.clone(),
            private_to: Some(call.owner.clone()),
        };
        if self.has(&private) {
            return (private, false);
        }
        let shared = Slot {
            key: call.key.clone(),
            private_to: None,
        };
        let others = self
            .entries
            .get(&shared)
            .is_some_and(|entry| entry.owners.iter().any(|owner| *owner != call.owner));
        if others {
            (private, true)
        } else {
            (shared, false)
        }
    }

    /// The caller has a session of its own now.
    pub(super) fn move_out(&mut self, call: &Call) {
        let shared = Slot {
            key: call.key.clone(),
            private_to: None,
        };
        if let Some(entry) = self.entries.get_mut(&shared) {
            entry.owners.remove(&call.owner);
        }
    }

    pub(super) fn by_id(&mut self, id: SessionId) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.id == id)
    }

    pub(super) fn slot_of(&self, id: SessionId) -> Option<Slot> {
        let (slot, _) = self.entries.iter().find(|(_, entry)| entry.id == id)?;
        Some(slot.clone())
    }

    /// Ends a session that nobody uses; its next caller will be told if something was lost.
    pub(super) fn evict(&mut self, slot: &Slot, loss: Loss) {
        let Some(entry) = self.entries.remove(slot) else {
            return;
        };
        let (used, untold) = entry.face.with(|look| (look.executions > 0, look.untold));
        if let Some(loss) = used.then_some(loss).or(untold) {
            self.remember(slot.clone(), loss);
        }
        entry.end.stop(StopReason::ShuttingDown);
        self.leaving.retain(|entry| !entry.task.is_finished());
        self.leaving.push(entry);
    }

    pub(super) fn remember(&mut self, slot: Slot, loss: Loss) {
        self.losses.retain(|(there, _)| *there != slot);
        self.losses.push_back((slot, loss));
        if self.losses.len() > REMEMBERED {
            self.losses.pop_front();
        }
    }

    pub(super) fn take_loss(&mut self, slot: &Slot) -> Option<Loss> {
        let index = self.losses.iter().position(|(there, _)| there == slot)?;
        self.losses.remove(index).map(|(_, loss)| loss)
    }
}
