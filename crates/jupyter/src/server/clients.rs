//! [`Clients`]: the connected clients and their subscriptions.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{BufMut, Bytes, BytesMut};
use cellwright_stdext::LockExt;
use tokio::sync::mpsc;
use tracing::debug;

use super::outbox::{Outbox, OutboxItem};
use crate::connection::Channel;

/// Number of subscriptions of a client, and bytes of each: more than any client needs.
const TOPIC_COUNT_LIMIT: usize = 1024;
const TOPIC_SIZE_LIMIT: usize = 4096;

/// Counts of rejected messages and clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCounts {
    /// Messages that were not signed with the key, were replays or were malformed.
    pub invalid_messages: u64,
    /// Connections without a valid handshake in time.
    pub failed_handshakes: u64,
    /// Connections beyond the limit.
    pub rejected_connections: u64,
    /// Clients that were disconnected because they did not read, or subscribed to too much.
    pub disconnected_clients: u64,
}

/// The connected clients and their subscriptions.
#[derive(Debug)]
pub(super) struct Clients {
    state: Mutex<ClientsState>,
    /// Bytes that may wait for each client.
    queue_bytes: usize,
    /// Reports clients that were disconnected.
    disconnects: mpsc::UnboundedSender<(Channel, Bytes)>,
}

#[derive(Debug, Default)]
struct ClientsState {
    /// Clients of shell, stdin and control by identity.
    routes: HashMap<(Channel, Bytes), Arc<Outbox>>,
    subscribers: Vec<Subscriber>,
    counts: ServerCounts,
    closed: bool,
}

#[derive(Debug)]
struct Subscriber {
    outbox: Arc<Outbox>,
    identity: Bytes,
    topics: HashSet<Bytes>,
}

impl Clients {
    pub(super) fn new(
        queue_bytes: usize,
        disconnects: mpsc::UnboundedSender<(Channel, Bytes)>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            queue_bytes,
            disconnects,
        }
    }

    /// Adds a client with the identity that it sent, or with a random one if that is empty. An earlier client with the
    /// same identity is disconnected. Returns `None` once the server is closed.
    pub(super) fn add(&self, channel: Channel, sent: Bytes) -> Option<(Bytes, Arc<Outbox>)> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let identity = if sent.is_empty() {
            random_identity()
        } else {
            sent
        };
        let outbox = Arc::new(Outbox::new(self.queue_bytes));
        if channel == Channel::Iopub {
            state.subscribers.push(Subscriber {
                outbox: Arc::clone(&outbox),
                identity: identity.clone(),
                topics: HashSet::new(),
            });
        } else {
            let route = (channel, identity.clone());
            if let Some(earlier) = state.routes.insert(route, Arc::clone(&outbox)) {
                earlier.disconnect();
            }
        }
        Some((identity, outbox))
    }

    /// Removes a client that has disconnected.
    pub(super) fn remove(&self, channel: Channel, identity: &Bytes, outbox: &Arc<Outbox>) {
        self.lock().remove(channel, identity, outbox);
    }

    /// Subscribes a client of iopub to all topics that begin with `topic`. A new subscription is confirmed with
    /// `welcome`.
    pub(super) fn subscribe(
        &self,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        topic: &Bytes,
        welcome: impl FnOnce() -> OutboxItem,
    ) {
        let mut state = self.lock();
        let Some(subscriber) = state.subscriber(outbox) else {
            return;
        };
        let exceeds_limits =
            topic.len() > TOPIC_SIZE_LIMIT || subscriber.topics.len() >= TOPIC_COUNT_LIMIT;
        if exceeds_limits {
            return self.disconnect(&mut state, Channel::Iopub, identity, outbox);
        }
        // A copy, because a slice would keep a large buffer alive.
        if subscriber.topics.insert(Bytes::copy_from_slice(topic)) {
            self.deliver(&mut state, Channel::Iopub, identity, outbox, welcome());
        }
    }

    /// Removes a subscription.
    pub(super) fn unsubscribe(&self, outbox: &Arc<Outbox>, topic: &Bytes) {
        if let Some(subscriber) = self.lock().subscriber(outbox) {
            subscriber.topics.remove(topic);
        }
    }

    /// Sends to all clients that have subscribed to `topic`.
    pub(super) fn publish(&self, topic: &[u8], item: &OutboxItem) {
        let mut state = self.lock();
        let receivers: Vec<(Bytes, Arc<Outbox>)> = state
            .subscribers
            .iter()
            .filter(|subscriber| subscriber.is_subscribed_to(topic))
            .map(|subscriber| (subscriber.identity.clone(), Arc::clone(&subscriber.outbox)))
            .collect();
        for (identity, outbox) in receivers {
            self.deliver(&mut state, Channel::Iopub, &identity, &outbox, item.clone());
        }
    }

    /// Sends to one client. Returns false if it is not connected.
    pub(super) fn send(&self, channel: Channel, identity: &Bytes, item: OutboxItem) -> bool {
        let mut state = self.lock();
        let route = (channel, identity.clone());
        let Some(outbox) = state.routes.get(&route).cloned() else {
            return false;
        };
        self.deliver(&mut state, channel, identity, &outbox, item)
    }

    /// Answers a `PING` on the connection that it came from.
    pub(super) fn send_pong(
        &self,
        channel: Channel,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        item: OutboxItem,
    ) {
        self.deliver(&mut self.lock(), channel, identity, outbox, item);
    }

    /// Accepts no more clients; queued messages are still written.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let subscribers = state
            .subscribers
            .iter()
            .map(|subscriber| &subscriber.outbox);
        for outbox in state.routes.values().chain(subscribers) {
            outbox.close();
        }
    }

    pub(super) fn counts(&self) -> ServerCounts {
        self.lock().counts
    }

    pub(super) fn count_invalid_message(&self) {
        self.lock().counts.invalid_messages += 1;
    }

    pub(super) fn count_failed_handshake(&self) {
        self.lock().counts.failed_handshakes += 1;
    }

    pub(super) fn count_rejected_connection(&self) {
        self.lock().counts.rejected_connections += 1;
    }

    fn deliver(
        &self,
        state: &mut ClientsState,
        channel: Channel,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        item: OutboxItem,
    ) -> bool {
        let fits = outbox.push(item).is_ok();
        if !fits {
            self.disconnect(state, channel, identity, outbox);
        }
        fits
    }

    fn disconnect(
        &self,
        state: &mut ClientsState,
        channel: Channel,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
    ) {
        debug!(?channel, "client disconnected, its frames are dropped");
        outbox.disconnect();
        state.counts.disconnected_clients += 1;
        state.remove(channel, identity, outbox);
        // An error means that the server was dropped.
        self.disconnects.send((channel, identity.clone())).ok();
    }

    fn lock(&self) -> MutexGuard<'_, ClientsState> {
        self.state.lock_ignoring_poison()
    }
}

impl ClientsState {
    fn subscriber(&mut self, outbox: &Arc<Outbox>) -> Option<&mut Subscriber> {
        let mut all = self.subscribers.iter_mut();
        all.find(|subscriber| Arc::ptr_eq(&subscriber.outbox, outbox))
    }

    /// Removes a client, unless a later one has replaced it.
    fn remove(&mut self, channel: Channel, identity: &Bytes, outbox: &Arc<Outbox>) {
        if channel == Channel::Iopub {
            self.subscribers
                .retain(|subscriber| !Arc::ptr_eq(&subscriber.outbox, outbox));
            return;
        }
        let route = (channel, identity.clone());
        if self
            .routes
            .get(&route)
            .is_some_and(|current| Arc::ptr_eq(current, outbox))
        {
            self.routes.remove(&route);
        }
    }
}

impl Subscriber {
    fn is_subscribed_to(&self, topic: &[u8]) -> bool {
        self.topics
            .iter()
            .any(|subscribed| topic.starts_with(subscribed))
    }
}

/// An identity for a client that sent none. As in `ZeroMQ`, only generated identities begin with a zero byte.
fn random_identity() -> Bytes {
    let mut identity = BytesMut::with_capacity(17);
    identity.put_u8(0);
    identity.put_slice(crate::message::random_id().as_bytes());
    identity.freeze()
}
