//! [`Launches`]: how the kernel of each session was started, for calls that would start another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_kernel::session::{Launch, SessionKey, SessionReport};

/// The launches of the sessions there are. Whoever does not care which kernel a session has brings along
/// how to start its own; when that of the session is lost, it must be the same kernel again.
#[derive(Default)]
pub(super) struct Launches(Mutex<HashMap<SessionKey, Arc<dyn Launch>>>);

impl Launches {
    /// The latest call that wanted this very kernel knows best how to start it.
    pub(super) fn remember(&self, key: &SessionKey, launch: &Arc<dyn Launch>) {
        self.lock().insert(key.clone(), Arc::clone(launch));
    }

    pub(super) fn of(&self, key: &SessionKey) -> Option<Arc<dyn Launch>> {
        self.lock().get(key).cloned()
    }

    /// Forgets those of other sessions.
    pub(super) fn keep(&self, sessions: &[SessionReport]) {
        self.lock()
            .retain(|key, _| sessions.iter().any(|report| report.key == *key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, Arc<dyn Launch>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
