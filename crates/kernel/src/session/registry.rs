//! What the pool knows: the sessions by what tells them apart, and what became of those that are gone.

use std::collections::{BTreeMap, VecDeque};

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
    pub(super) entries: BTreeMap<Slot, Entry>,
    /// What became of sessions whose callers do not know yet. Those of one owner are remembered even
    /// if nothing was lost, so that their owner does not fall back to the one it was split off from.
    pub(super) losses: VecDeque<(Slot, Option<Loss>)>,
    /// Sessions that have been ended and whose kernels are on their way out.
    pub(super) leaving: Vec<Entry>,
    pub(super) last_id: u64,
    pub(super) closed: bool,
}

/// A key, and whose own it is if it was split off from a shared one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) key: SessionKey,
    pub(super) private_to: Option<String>,
}

impl Slot {
    pub(super) fn shared(call: &Call) -> Self {
        Self {
            key: call.key.clone(),
            private_to: None,
        }
    }

    fn private(call: &Call) -> Self {
        Self {
            key: call.key.clone(),
            private_to: Some(call.owner.clone()),
        }
    }
}

impl Registry {
    /// Where a call goes.
    pub(super) fn slot_for(&self, call: &Call) -> Slot {
        let private = Slot::private(call);
        if self.has(&private) {
            private
        } else {
            Slot::shared(call)
        }
    }

    /// Where a call goes that wants a fresh kernel; also says whether the caller is split off from
    /// others.
    pub(super) fn slot_for_fresh(&self, call: &Call) -> (Slot, bool) {
        let slot = self.slot_for(call);
        if self.has_others(&slot, &call.owner) {
            (Slot::private(call), true)
        } else {
            (slot, false)
        }
    }

    /// Whether somebody has, or had, such a session.
    fn has(&self, slot: &Slot) -> bool {
        self.entries.contains_key(slot) || self.losses.iter().any(|(there, _)| there == slot)
    }

    /// Whether anybody else uses it.
    pub(super) fn has_others(&self, slot: &Slot, owner: &str) -> bool {
        self.entries
            .get(slot)
            .is_some_and(|entry| entry.owners.iter().any(|other| other != owner))
    }

    /// The caller has a session of its own now.
    pub(super) fn move_out(&mut self, call: &Call) {
        if let Some(entry) = self.entries.get_mut(&Slot::shared(call)) {
            entry.owners.remove(&call.owner);
        }
    }

    pub(super) fn by_id(&mut self, id: SessionId) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.id == id)
    }

    /// Takes a session out, for good.
    pub(super) fn remove(&mut self, id: SessionId) -> Option<Entry> {
        let (slot, _) = self.entries.iter().find(|(_, entry)| entry.id == id)?;
        let slot = slot.clone();
        self.entries.remove(&slot)
    }

    /// Ends a session that nobody uses; its next caller will be told if something was lost.
    pub(super) fn evict(&mut self, slot: &Slot, loss: Loss) {
        let Some(entry) = self.entries.remove(slot) else {
            return;
        };
        let (used, untold) = entry.face.with(|look| (look.executions > 0, look.untold));
        let loss = used.then_some(loss).or(untold);
        if loss.is_some() || slot.private_to.is_some() {
            self.remember(slot.clone(), loss);
        }
        entry.end.stop(StopReason::ShuttingDown);
        self.leaving.retain(|entry| !entry.task.is_finished());
        self.leaving.push(entry);
    }

    pub(super) fn remember(&mut self, slot: Slot, loss: Option<Loss>) {
        self.losses.retain(|(there, _)| *there != slot);
        self.losses.push_back((slot, loss));
        if self.losses.len() > REMEMBERED {
            self.losses.pop_front();
        }
    }

    pub(super) fn take_loss(&mut self, slot: &Slot) -> Option<Loss> {
        let index = self.losses.iter().position(|(there, _)| there == slot)?;
        self.losses.remove(index).and_then(|(_, loss)| loss)
    }
}
