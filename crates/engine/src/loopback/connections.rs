//! [`Connections`]: the open connections of a listener, what each of them does, and which one has to make room.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use cellwright_stdext::LockExt;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Limits of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// How many connections are open at once.
    pub connections_max: usize,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long an authenticated connection may stay open between two requests.
    pub idle_timeout: Duration,
}

impl ConnectionLimits {
    /// The usual timeouts, with this number of connections.
    pub const fn new(connections_max: usize) -> Self {
        Self {
            connections_max,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(2),
        }
    }
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first byte of a request. A new connection starts in [`Phase::Head`].
    Idle { since: Instant },
    /// The rest of the head of a request.
    Head { since: Instant },
    /// The end of a response.
    Request,
}

#[derive(Debug)]
struct Connection {
    phase: Phase,
    /// Whether a request with a valid token has arrived on it.
    authenticated: bool,
    evicted: bool,
    /// Wakes the task that reads from it.
    reader: Option<Waker>,
}

/// What the reader of a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// Wait for data without a limit.
    Wait,
    /// Wait until this time, then close.
    WaitUntil(Instant),
    /// The connection has to make room for another.
    Evicted,
}

/// The connections of a listener, by the order in which they were accepted.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<BTreeMap<u64, Connection>>,
    /// The number of the next connection. Numbers are not reused: handles outlive their connections.
    next_number: AtomicU64,
    /// Signals that a connection was closed, or may be evicted from now on. Only the listener waits.
    changed: Notify,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            next_number: AtomicU64::new(0),
            changed: Notify::new(),
        })
    }

    /// Adds a connection and returns its number. If there is no room, evicts another and waits until it is closed.
    pub(super) async fn add(&self) -> u64 {
        loop {
            if let Some(number) = self.try_add() {
                return number;
            }
            self.changed.notified().await;
        }
    }

    /// Adds a connection if there is room; otherwise evicts one, which leaves later.
    fn try_add(&self) -> Option<u64> {
        let mut open = self.lock();
        if open.len() < self.limits.connections_max {
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            let phase = Phase::Head {
                since: Instant::now(),
            };
            let connection = Connection {
                phase,
                authenticated: false,
                evicted: false,
                reader: None,
            };
            open.insert(number, connection);
            return Some(number);
        }
        // The evicted one signals when it is closed. Evicting a second one meanwhile would not be faster.
        if !open.values().any(|connection| connection.evicted) {
            evict(&mut open);
        }
        None
    }

    /// Records that the reader of a connection polls, and whether it has received data.
    pub(super) fn on_read(&self, number: u64, received: bool, reader: &Waker) -> ReadState {
        let mut open = self.lock();
        let Some(connection) = open.get_mut(&number) else {
            return ReadState::Evicted;
        };
        if connection.evicted {
            return ReadState::Evicted;
        }
        if received && matches!(connection.phase, Phase::Idle { .. }) {
            connection.phase = Phase::Head {
                since: Instant::now(),
            };
        }
        if !connection
            .reader
            .as_ref()
            .is_some_and(|known| known.will_wake(reader))
        {
            connection.reader = Some(reader.clone());
        }
        let head = self.limits.head_timeout;
        match connection.phase {
            Phase::Request => ReadState::Wait,
            Phase::Idle { since } if connection.authenticated => {
                ReadState::WaitUntil(since + self.limits.idle_timeout)
            }
            Phase::Head { since } | Phase::Idle { since } => ReadState::WaitUntil(since + head),
        }
    }

    fn set_phase(&self, number: u64, phase: Phase) {
        let reader = self.lock().get_mut(&number).and_then(|connection| {
            connection.phase = phase;
            // The reader has to notice the new limit.
            connection.reader.take()
        });
        if let Some(reader) = reader {
            reader.wake();
        }
        self.changed.notify_one();
    }

    fn set_authenticated(&self, number: u64) {
        if let Some(connection) = self.lock().get_mut(&number) {
            connection.authenticated = true;
        }
    }

    pub(super) fn remove(&self, number: u64) {
        self.lock().remove(&number);
        self.changed.notify_one();
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.open.lock_ignoring_poison()
    }
}

/// Evicts the oldest connection that has sent no valid token; otherwise the authenticated one that has been idle
/// longest. A connection whose request is being answered stays.
fn evict(open: &mut BTreeMap<u64, Connection>) {
    let oldest_unauthenticated = open
        .iter()
        .find(|(_, connection)| !connection.authenticated)
        .map(|(number, _)| *number);
    let longest_idle = || {
        let idle = open
            .iter()
            .filter_map(|(number, connection)| match connection.phase {
                Phase::Idle { since } => Some((since, *number)),
                Phase::Head { .. } | Phase::Request => None,
            });
        idle.min().map(|(_, number)| number)
    };
    let number = oldest_unauthenticated.or_else(longest_idle);
    if let Some(connection) = number.and_then(|number| open.get_mut(&number)) {
        connection.evicted = true;
        if let Some(reader) = connection.reader.take() {
            reader.wake();
        }
    }
}

/// The connection of a request. Handlers report through it what the connection does.
#[derive(Clone, Debug)]
pub struct ConnectionHandle {
    connections: Arc<Connections>,
    number: u64,
}

impl ConnectionHandle {
    pub(super) fn new(connections: &Arc<Connections>, number: u64) -> Self {
        Self {
            connections: Arc::clone(connections),
            number,
        }
    }

    /// Records that a request has a valid token: the connection does not have to make room while it is in use.
    pub fn set_authenticated(&self) {
        self.connections.set_authenticated(self.number);
    }

    /// Records that the head of a request has arrived. The connection has no time limit until the guard is dropped,
    /// which belongs to the end of the response.
    pub fn begin_request(&self) -> RequestGuard {
        self.connections.set_phase(self.number, Phase::Request);
        RequestGuard(self.clone())
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct RequestGuard(ConnectionHandle);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let since = Instant::now();
        let ConnectionHandle {
            connections,
            number,
        } = &self.0;
        connections.set_phase(*number, Phase::Idle { since });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_phase_has_its_time_limit() {
        let limits = ConnectionLimits::new(1);
        let connections = Connections::new(limits);
        let number = connections.add().await;
        let handle = ConnectionHandle::new(&connections, number);
        let wait = |received: bool| match connections.on_read(number, received, Waker::noop()) {
            ReadState::WaitUntil(deadline) => Some(deadline - Instant::now()),
            ReadState::Wait => None,
            ReadState::Evicted => panic!("evicted"),
        };
        // More of the head does not extend its limit.
        let first = wait(false).unwrap();
        assert!(first <= limits.head_timeout);
        assert!(wait(true).unwrap() <= first);
        let request = handle.begin_request();
        assert_eq!(wait(true), None);
        drop(request);
        // Without a token, a connection does not stay open longer.
        assert!(wait(false).unwrap() <= limits.head_timeout);
        let request = handle.begin_request();
        handle.set_authenticated();
        drop(request);
        assert!(wait(false).unwrap() > limits.head_timeout);
        // The head of the next request has the limit of the first.
        assert!(wait(true).unwrap() <= limits.head_timeout);
        connections.remove(number);
        let state = connections.on_read(number, false, Waker::noop());
        assert_eq!(state, ReadState::Evicted);
    }
}
