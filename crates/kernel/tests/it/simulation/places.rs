//! Who must be where: the sessions and their owners, as they should be.

use super::world::{Place, SessionState, State};

impl State {
    /// The session that lives in a place.
    pub(super) fn live_in(&self, place: Place) -> Option<u64> {
        let id = *self.latest.get(&place)?;
        self.is_live(id).then_some(id)
    }

    /// Where a call must go; also whether that splits it off from others.
    pub(super) fn place_for(&self, key: usize, owner: usize, fresh: bool) -> (Place, bool) {
        if self.privates.contains(&(key, owner)) {
            return ((key, Some(owner)), false);
        }
        let others = self.live_in((key, None)).is_some_and(|id| {
            let owners = &self.sessions[&id].owners;
            owners.iter().any(|other| *other != owner)
        });
        if fresh && others {
            ((key, Some(owner)), true)
        } else {
            ((key, None), false)
        }
    }

    /// Somebody uses a session; `launch` is that of a new one.
    pub(super) fn joined(&mut self, id: u64, place: Place, owner: usize, launch: Option<u32>) {
        if let Some(launch) = launch {
            let before = self.latest.insert(place, id);
            // What the pool took away is missed; what somebody ended is not.
            let before = before
                .map(|before| &self.sessions[&before])
                .filter(|before| !before.ended);
            let resets = before.map_or(0, |before| before.resets);
            let counted_on = before
                .and_then(|before| before.counted_on)
                .map(|(kernel, _)| (kernel, true));
            self.owned.insert(launch, id);
            let session = SessionState {
                place,
                counted_on,
                resets,
                ..SessionState::default()
            };
            self.sessions.insert(id, session);
        }
        let right = self.latest.get(&place) == Some(&id);
        self.check(right, &format!("{place:?} is not in session {id}"));
        self.sessions.get_mut(&id).unwrap().owners.insert(owner);
    }

    /// An owner was split off from a shared session.
    pub(super) fn moved_out(&mut self, key: usize, owner: usize) {
        self.privates.insert((key, owner));
        if let Some(id) = self.live_in((key, None)) {
            self.sessions.get_mut(&id).unwrap().owners.remove(&owner);
        } else {
            self.wrong("a reset ended the kernel of others");
        }
    }

    pub(super) fn ended_by_somebody(&mut self, id: u64) {
        self.note(&format!("session {id}: ended by somebody"));
        let session = self.sessions.get_mut(&id).unwrap();
        session.ended = true;
        if let (key, Some(owner)) = session.place {
            self.privates.remove(&(key, owner));
        }
    }

    pub(super) fn reset_asked(&mut self, id: u64) {
        let session = self.sessions.get_mut(&id).unwrap();
        session.resets += 1;
        session.forgiven = true;
        session.fewest_restarts = 0;
    }

    /// Resets at the same time give one kernel.
    pub(super) fn reset_answered(&mut self, id: u64, round: usize, generation: Option<u32>) {
        let session = self.sessions.get_mut(&id).unwrap();
        session.resets_under_way -= 1;
        let first = session.renewed;
        // 0: none could be started.
        if let Some(generation) = generation.filter(|number| *number > 0)
            && session.round == round
        {
            session.renewed.get_or_insert(generation);
            self.check(
                first.is_none_or(|first| first == generation),
                &format!("session {id}: resets at once gave {first:?} and {generation}"),
            );
        }
        let session = self.sessions.get_mut(&id).unwrap();
        if session.resets_under_way == 0 {
            session.renewed = None;
        }
    }

    /// Who uses which session, as the pool says.
    pub(super) fn check_owners(&mut self) {
        let reports = self.pool.as_ref().unwrap().list();
        for report in reports {
            let owners: Vec<String> = self.sessions[&report.id.0]
                .owners
                .iter()
                .map(usize::to_string)
                .collect();
            self.check(
                owners == report.owners,
                &format!("session {}: {:?}, not {owners:?}", report.id, report.owners),
            );
        }
    }
}
