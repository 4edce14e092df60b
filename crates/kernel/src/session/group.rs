//! [`PoolGroup`]: pools that share one limit on sessions, and the spare kernels.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use cellwright_stdext::LockExt;

use super::job::KernelLoss;
use super::registry::{Registry, RegistryKey};

/// Pools that share a limit. Its lock is taken before the lock of a registry: only the holder of the group locks the
/// registries of several pools.
#[derive(Default)]
pub(super) struct PoolGroup(Mutex<Pools>);

impl PoolGroup {
    pub(super) fn lock(&self) -> MutexGuard<'_, Pools> {
        self.0.lock_ignoring_poison()
    }
}

/// The pools of a group.
#[derive(Default)]
pub(super) struct Pools(Vec<Weak<Mutex<Registry>>>);

/// An idle session of another pool.
pub(super) struct SiblingSession {
    pub(super) idle: Duration,
    registry: Arc<Mutex<Registry>>,
    key: RegistryKey,
}

impl Pools {
    pub(super) fn add(&mut self, registry: &Arc<Mutex<Registry>>) {
        self.0.retain(|pool| pool.strong_count() > 0);
        self.0.push(Arc::downgrade(registry));
    }

    /// Whether no pool accepts calls.
    pub(super) fn is_closed(&self) -> bool {
        let mut pools = self.0.iter().filter_map(Weak::upgrade);
        pools.all(|registry| registry.lock_ignoring_poison().closed)
    }

    /// The number of sessions of the other pools, and the one of them that has been idle longest.
    pub(super) fn siblings(&self, own: &Arc<Mutex<Registry>>) -> (usize, Option<SiblingSession>) {
        let (mut count, mut longest) = (0, None::<SiblingSession>);
        let pools = self.0.iter().filter_map(Weak::upgrade);
        for registry in pools.filter(|registry| !Arc::ptr_eq(registry, own)) {
            let idle = {
                let locked = registry.lock_ignoring_poison();
                count += locked.sessions.len();
                locked.longest_idle(None)
            };
            if let Some((idle, key)) = idle
                && longest.as_ref().is_none_or(|longest| idle > longest.idle)
            {
                longest = Some(SiblingSession {
                    idle,
                    registry,
                    key,
                });
            }
        }
        (count, longest)
    }
}

impl SiblingSession {
    /// Ends the session, unless a call has arrived meanwhile.
    pub(super) fn evict(self, loss: KernelLoss) {
        let mut registry = self.registry.lock_ignoring_poison();
        let is_idle = registry
            .sessions
            .get(&self.key)
            .is_some_and(|session| session.idle_for().is_some());
        if is_idle {
            registry.evict(&self.key, loss);
        }
    }
}
