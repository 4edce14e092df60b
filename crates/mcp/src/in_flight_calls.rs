//! [`InFlightCalls`]: running calls by session, and the notices of cancelled calls.
//!
//! The client discards the reply of a call that it cancelled. The notices of such a call are deferred to the next reply
//! on the same session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use cellwright_diagnostics::notice::UserNotice;
use cellwright_stdext::LockExt;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How long a call waits for a cancelled call to end, in order to report its notices.
const CANCELLED_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two checks whether the cancelled call has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Running calls, and the notices to report with the next reply of each session.
#[derive(Default)]
pub(super) struct InFlightCalls(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    last_number: u64,
    /// Session and cancellation of each running call.
    running: HashMap<u64, (String, CancellationToken)>,
    /// Notices of cancelled calls, by session.
    deferred: HashMap<String, Vec<UserNotice>>,
}

/// A running call. It ends when this is dropped.
pub(super) struct InFlightCall<'a> {
    calls: &'a InFlightCalls,
    number: u64,
    session: String,
}

impl InFlightCalls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock_ignoring_poison()
    }

    /// Registers a call on a session.
    pub(super) fn begin(&self, session: &str, cancelled: &CancellationToken) -> InFlightCall<'_> {
        let mut inner = self.inner();
        inner.last_number += 1;
        let number = inner.last_number;
        let call = (session.to_owned(), cancelled.clone());
        inner.running.insert(number, call);
        InFlightCall {
            calls: self,
            number,
            session: session.to_owned(),
        }
    }

    /// Returns the deferred notices of a session and removes them. Waits for its cancelled calls to end.
    pub(super) async fn take_deferred(&self, session: &str) -> Vec<UserNotice> {
        let deadline = Instant::now() + CANCELLED_CALL_TIMEOUT;
        while self.has_cancelled_call(session) && Instant::now() < deadline {
            sleep(CHECK_INTERVAL).await;
        }
        self.inner().deferred.remove(session).unwrap_or_default()
    }

    fn has_cancelled_call(&self, session: &str) -> bool {
        let inner = self.inner();
        let mut calls = inner.running.values();
        calls.any(|(name, cancelled)| name == session && cancelled.is_cancelled())
    }
}

impl InFlightCall<'_> {
    /// Stores a notice for the next reply on the session.
    pub(super) fn defer_notice(&self, notice: UserNotice) {
        let mut inner = self.calls.inner();
        let notices = inner.deferred.entry(self.session.clone()).or_default();
        notices.push(notice);
    }
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.calls.inner().running.remove(&self.number);
    }
}
