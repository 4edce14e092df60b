//! [`LauncherCache`]: the launcher of each session, for calls that need a new kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cellwright_kernel::session::{KernelLauncher, SessionKey, SessionReport};
use cellwright_stdext::LockExt;

/// The launches of the sessions there are. Whoever does not care which kernel a session has brings along
/// how to start its own; when that of the session is lost, it must be the same kernel again.
#[derive(Default)]
pub(super) struct LauncherCache(Mutex<HashMap<SessionKey, Arc<dyn KernelLauncher>>>);

impl LauncherCache {
    /// The latest call that wanted this very kernel knows best how to start it.
    pub(super) fn insert(&self, key: &SessionKey, launch: &Arc<dyn KernelLauncher>) {
        self.lock().insert(key.clone(), Arc::clone(launch));
    }

    pub(super) fn get(&self, key: &SessionKey) -> Option<Arc<dyn KernelLauncher>> {
        self.lock().get(key).cloned()
    }

    /// Forgets those of other sessions.
    pub(super) fn retain(&self, sessions: &[SessionReport]) {
        self.lock()
            .retain(|key, _| sessions.iter().any(|report| report.key == *key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, Arc<dyn KernelLauncher>>> {
        self.0.lock_ignoring_poison()
    }
}
