//! Calls that are under way, and what became of those that nobody waits for any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::notice::UserNotice;

/// How long a call waits for the end of one that was cancelled before it, to tell what became of that.
const CANCELLED_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often it looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Calls under way, by session.
#[derive(Default)]
pub(super) struct InFlightCalls(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    last: u64,
    running: HashMap<u64, (String, CancellationToken)>,
    /// What is to be told with the next answer.
    deferred: HashMap<String, Vec<UserNotice>>,
}

/// A call under way; over when it is dropped.
pub(super) struct InFlightCall<'a> {
    calls: &'a InFlightCalls,
    number: u64,
    session: String,
}

impl InFlightCalls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call on a session begins.
    pub(super) fn begin(&self, session: &str, cancelled: &CancellationToken) -> InFlightCall<'_> {
        let mut inner = self.inner();
        inner.last += 1;
        let number = inner.last;
        let entry = (session.to_owned(), cancelled.clone());
        inner.running.insert(number, entry);
        InFlightCall {
            calls: self,
            number,
            session: session.to_owned(),
        }
    }

    /// What became of earlier calls on a session, told once.
    pub(super) async fn take_deferred(&self, session: &str) -> Vec<UserNotice> {
        let until = Instant::now() + CANCELLED_CALL_TIMEOUT;
        while self.is_ending(session) && Instant::now() < until {
            sleep(CHECK_INTERVAL).await;
        }
        self.inner().deferred.remove(session).unwrap_or_default()
    }

    /// Whether a call on it was cancelled and has not come to its end.
    fn is_ending(&self, session: &str) -> bool {
        let inner = self.inner();
        let mut all = inner.running.values();
        all.any(|(name, cancelled)| name == session && cancelled.is_cancelled())
    }
}

impl InFlightCall<'_> {
    /// What is to be told with the next answer: nobody reads the one of this call.
    pub(super) fn defer_notice(&self, told: UserNotice) {
        let mut inner = self.calls.inner();
        let words = inner.deferred.entry(self.session.clone()).or_default();
        words.push(told);
    }
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.calls.inner().running.remove(&self.number);
    }
}
