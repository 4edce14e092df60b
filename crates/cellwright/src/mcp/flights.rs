//! Calls that are under way, and what became of those that nobody waits for any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::notice::UserNotice;

/// How long a call waits for the end of one that was cancelled before it, to tell what became of that.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it looks.
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// Calls under way, by session.
#[derive(Default)]
pub(super) struct Flights(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    last: u64,
    under_way: HashMap<u64, (String, CancellationToken)>,
    /// What is to be told with the next answer.
    aftermath: HashMap<String, Vec<UserNotice>>,
}

/// A call under way; over when it is dropped.
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    number: u64,
    session: String,
}

impl Flights {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call on a session begins.
    pub(super) fn begin(&self, session: &str, cancelled: &CancellationToken) -> Flight<'_> {
        let mut inner = self.inner();
        inner.last += 1;
        let number = inner.last;
        let entry = (session.to_owned(), cancelled.clone());
        inner.under_way.insert(number, entry);
        Flight {
            flights: self,
            number,
            session: session.to_owned(),
        }
    }

    /// What became of earlier calls on a session, told once.
    pub(super) async fn aftermath(&self, session: &str) -> Vec<UserNotice> {
        let until = Instant::now() + PATIENCE;
        while self.is_ending(session) && Instant::now() < until {
            sleep(RETRY_DELAY).await;
        }
        self.inner().aftermath.remove(session).unwrap_or_default()
    }

    /// Whether a call on it was cancelled and has not come to its end.
    fn is_ending(&self, session: &str) -> bool {
        let inner = self.inner();
        let mut all = inner.under_way.values();
        all.any(|(name, cancelled)| name == session && cancelled.is_cancelled())
    }
}

impl Flight<'_> {
    /// What is to be told with the next answer: nobody reads the one of this call.
    pub(super) fn leave_word(&self, told: UserNotice) {
        let mut inner = self.flights.inner();
        let words = inner.aftermath.entry(self.session.clone()).or_default();
        words.push(told);
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.inner().under_way.remove(&self.number);
    }
}
