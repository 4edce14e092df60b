//! [`Clients`]: who is connected, and what each wants to hear.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;

use super::outbox::{Letter, Outbox};
use crate::connection::Channel;

/// More subscriptions, or longer ones, than any client has.
const TOPICS: usize = 1024;
const TOPIC_BYTES: usize = 4096;

/// What has been turned away so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Messages that were not signed with the key, came before, or made no sense.
    pub refused: u64,
    /// Connections that did not say in time, or not in our language, who they are.
    pub strangers: u64,
    /// Connections that were one too many.
    pub turned_away: u64,
    /// Clients that did not read what was sent to them, or broke the rules of their channel.
    pub cut: u64,
}

/// Who is connected, and what each wants to hear.
#[derive(Debug)]
pub(super) struct Clients {
    inner: Mutex<Inner>,
    queue_bytes: usize,
    told: mpsc::UnboundedSender<(Channel, Bytes)>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Those of shell, stdin and control, by their identities.
    routes: HashMap<(Channel, Bytes), Arc<Outbox>>,
    subscribers: Vec<Subscriber>,
    counts: Counts,
    closed: bool,
}

#[derive(Debug)]
struct Subscriber {
    outbox: Arc<Outbox>,
    identity: Bytes,
    topics: HashSet<Bytes>,
}

impl Clients {
    pub(super) fn new(queue_bytes: usize, told: mpsc::UnboundedSender<(Channel, Bytes)>) -> Self {
        Self {
            inner: Mutex::default(),
            queue_bytes,
            told,
        }
    }

    /// Lets a client in under the identity that it gave, or under a fresh one; whoever had it before has
    /// to go. Nobody comes in once it is closed.
    pub(super) fn enter(&self, channel: Channel, given: Bytes) -> Option<(Bytes, Arc<Outbox>)> {
        let mut inner = self.lock();
        if inner.closed {
            return None;
        }
        let identity = if given.is_empty() { fresh() } else { given };
        let outbox = Arc::new(Outbox::new(self.queue_bytes));
        if channel == Channel::Iopub {
            inner.subscribers.push(Subscriber {
                outbox: Arc::clone(&outbox),
                identity: identity.clone(),
                topics: HashSet::new(),
            });
        } else {
            let place = (channel, identity.clone());
            if let Some(before) = inner.routes.insert(place, Arc::clone(&outbox)) {
                before.cut();
            }
        }
        Some((identity, outbox))
    }

    /// A client has gone.
    pub(super) fn leave(&self, channel: Channel, identity: &Bytes, outbox: &Arc<Outbox>) {
        self.lock().remove(channel, identity, outbox);
    }

    /// A client of iopub wants to hear what begins with `topic`; `welcome` is the first of it, unless it
    /// wanted that before.
    pub(super) fn subscribe(
        &self,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        topic: &Bytes,
        welcome: impl FnOnce() -> Letter,
    ) {
        let mut inner = self.lock();
        let Some(subscriber) = inner.subscriber(outbox) else {
            return;
        };
        let too_much = topic.len() > TOPIC_BYTES || subscriber.topics.len() >= TOPICS;
        if too_much {
            return self.cut(&mut inner, Channel::Iopub, identity, outbox);
        }
        // A copy, so that a short word does not hold on to a large buffer.
        if subscriber.topics.insert(Bytes::copy_from_slice(topic)) {
            self.deliver(&mut inner, Channel::Iopub, identity, outbox, welcome());
        }
    }

    /// It does not want that any more.
    pub(super) fn unsubscribe(&self, outbox: &Arc<Outbox>, topic: &Bytes) {
        if let Some(subscriber) = self.lock().subscriber(outbox) {
            subscriber.topics.remove(topic);
        }
    }

    /// Writes to everybody who wants to hear about `topic`.
    pub(super) fn publish(&self, topic: &[u8], letter: &Letter) {
        let mut inner = self.lock();
        let wanting: Vec<(Bytes, Arc<Outbox>)> = inner
            .subscribers
            .iter()
            .filter(|subscriber| subscriber.wants(topic))
            .map(|subscriber| (subscriber.identity.clone(), Arc::clone(&subscriber.outbox)))
            .collect();
        for (identity, outbox) in wanting {
            self.deliver(
                &mut inner,
                Channel::Iopub,
                &identity,
                &outbox,
                letter.clone(),
            );
        }
    }

    /// Writes to one client; false if there is no such client.
    pub(super) fn send(&self, channel: Channel, identity: &Bytes, letter: Letter) -> bool {
        let mut inner = self.lock();
        let place = (channel, identity.clone());
        let Some(outbox) = inner.routes.get(&place).cloned() else {
            return false;
        };
        self.deliver(&mut inner, channel, identity, &outbox, letter)
    }

    /// Answers a client on its own connection.
    pub(super) fn answer(
        &self,
        channel: Channel,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        letter: Letter,
    ) {
        self.deliver(&mut self.lock(), channel, identity, outbox, letter);
    }

    /// Lets nobody in any more; what waits still goes out.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let subscribers = inner
            .subscribers
            .iter()
            .map(|subscriber| &subscriber.outbox);
        for outbox in inner.routes.values().chain(subscribers) {
            outbox.close();
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    pub(super) fn refused(&self) {
        self.lock().counts.refused += 1;
    }

    pub(super) fn stranger(&self) {
        self.lock().counts.strangers += 1;
    }

    pub(super) fn turned_away(&self) {
        self.lock().counts.turned_away += 1;
    }

    fn deliver(
        &self,
        inner: &mut Inner,
        channel: Channel,
        identity: &Bytes,
        outbox: &Arc<Outbox>,
        letter: Letter,
    ) -> bool {
        let fits = outbox.push(letter).is_ok();
        if !fits {
            self.cut(inner, channel, identity, outbox);
        }
        fits
    }

    fn cut(&self, inner: &mut Inner, channel: Channel, identity: &Bytes, outbox: &Arc<Outbox>) {
        outbox.cut();
        inner.counts.cut += 1;
        inner.remove(channel, identity, outbox);
        // Whoever owned the server has let it go, and wants to know nothing any more.
        self.told.send((channel, identity.clone())).ok();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn subscriber(&mut self, outbox: &Arc<Outbox>) -> Option<&mut Subscriber> {
        let mut all = self.subscribers.iter_mut();
        all.find(|subscriber| Arc::ptr_eq(&subscriber.outbox, outbox))
    }

    /// Takes a client out, unless somebody else has its place by now.
    fn remove(&mut self, channel: Channel, identity: &Bytes, outbox: &Arc<Outbox>) {
        if channel == Channel::Iopub {
            self.subscribers
                .retain(|subscriber| !Arc::ptr_eq(&subscriber.outbox, outbox));
            return;
        }
        let place = (channel, identity.clone());
        if self
            .routes
            .get(&place)
            .is_some_and(|now| Arc::ptr_eq(now, outbox))
        {
            self.routes.remove(&place);
        }
    }
}

impl Subscriber {
    fn wants(&self, topic: &[u8]) -> bool {
        self.topics.iter().any(|wanted| topic.starts_with(wanted))
    }
}

/// An identity for a client that gives none. As `ZeroMQ` has it, only these begin with a zero.
fn fresh() -> Bytes {
    let mut identity = BytesMut::with_capacity(17);
    identity.put_u8(0);
    identity.put_slice(crate::message::fresh_id().as_bytes());
    identity.freeze()
}
