//! [`LauncherCache`]: the launcher of each session, for calls that need a new kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cellwright_kernel::session::{KernelLauncher, SessionKey, SessionReport};
use cellwright_stdext::LockExt;

/// The launchers of the existing sessions. A call that accepts any kernel brings a launcher for its own default; when
/// the kernel of the session is lost, the session needs the launcher of that kernel.
#[derive(Default)]
pub(super) struct LauncherCache(Mutex<HashMap<SessionKey, Arc<dyn KernelLauncher>>>);

impl LauncherCache {
    /// Stores the launcher of the latest call that names the kernel of the session.
    pub(super) fn insert(&self, key: &SessionKey, launcher: &Arc<dyn KernelLauncher>) {
        self.lock().insert(key.clone(), Arc::clone(launcher));
    }

    pub(super) fn get(&self, key: &SessionKey) -> Option<Arc<dyn KernelLauncher>> {
        self.lock().get(key).cloned()
    }

    /// Removes the launchers of all other sessions.
    pub(super) fn retain(&self, sessions: &[SessionReport]) {
        self.lock()
            .retain(|key, _| sessions.iter().any(|report| report.key == *key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, Arc<dyn KernelLauncher>>> {
        self.0.lock_ignoring_poison()
    }
}
