//! The expected sessions and their owners.

use super::model::{ModelKey, ModelSession, ModelState};

impl ModelState {
    /// The live session with this key.
    pub(super) fn live_session(&self, model_key: ModelKey) -> Option<u64> {
        let id = *self.latest.get(&model_key)?;
        self.is_live(id).then_some(id)
    }

    /// The key that a call must go to; also whether it splits the caller off from other owners.
    pub(super) fn key_for(&self, key: usize, owner: usize, fresh: bool) -> (ModelKey, bool) {
        if self.private_owners.contains(&(key, owner)) {
            return ((key, Some(owner)), false);
        }
        let others = self.live_session((key, None)).is_some_and(|id| {
            let owners = &self.sessions[&id].owners;
            owners.iter().any(|other| *other != owner)
        });
        if fresh && others {
            ((key, Some(owner)), true)
        } else {
            ((key, None), false)
        }
    }

    /// An owner joins a session; `launcher` is the launcher of a new one.
    pub(super) fn joined(
        &mut self,
        id: u64,
        model_key: ModelKey,
        owner: usize,
        launcher: Option<u32>,
    ) {
        if let Some(launcher) = launcher {
            let before = self.latest.insert(model_key, id);
            // An eviction by the pool must be reported; an end by a caller must not.
            let before = before
                .map(|before| &self.sessions[&before])
                .filter(|before| !before.ended);
            let resets = before.map_or(0, |before| before.resets);
            let state_kernel = before
                .and_then(|before| before.state_kernel)
                .map(|(kernel, _)| (kernel, true));
            self.launcher_sessions.insert(launcher, id);
            let session = ModelSession {
                key: model_key,
                state_kernel,
                resets,
                ..ModelSession::default()
            };
            self.sessions.insert(id, session);
        }
        let expected = self.latest.get(&model_key) == Some(&id);
        self.check(
            expected,
            &format!("{model_key:?} is not served by session {id}"),
        );
        self.sessions.get_mut(&id).unwrap().owners.insert(owner);
    }

    /// An owner was split off from a shared session.
    pub(super) fn owner_split_off(&mut self, key: usize, owner: usize) {
        self.private_owners.insert((key, owner));
        if let Some(id) = self.live_session((key, None)) {
            self.sessions.get_mut(&id).unwrap().owners.remove(&owner);
        } else {
            self.violation("a reset ended the kernel of other owners");
        }
    }

    pub(super) fn ended_by_caller(&mut self, id: u64) {
        self.note(&format!("session {id}: ended by a caller"));
        let session = self.sessions.get_mut(&id).unwrap();
        session.ended = true;
        if let (key, Some(owner)) = session.key {
            self.private_owners.remove(&(key, owner));
        }
    }

    pub(super) fn reset_requested(&mut self, id: u64) {
        let session = self.sessions.get_mut(&id).unwrap();
        session.resets += 1;
        session.reset_since_start = true;
        session.min_restarts = 0;
    }

    /// Concurrent resets must give one kernel.
    pub(super) fn reset_finished(&mut self, id: u64, round: usize, generation: Option<u32>) {
        let session = self.sessions.get_mut(&id).unwrap();
        session.pending_resets -= 1;
        let first = session.reset_generation;
        // 0: no kernel could be started.
        if let Some(generation) = generation.filter(|number| *number > 0)
            && session.round == round
        {
            session.reset_generation.get_or_insert(generation);
            self.check(
                first.is_none_or(|first| first == generation),
                &format!("session {id}: concurrent resets gave {first:?} and {generation}"),
            );
        }
        let session = self.sessions.get_mut(&id).unwrap();
        if session.pending_resets == 0 {
            session.reset_generation = None;
        }
    }

    /// Compares the owners of each session with those that the pool reports.
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
