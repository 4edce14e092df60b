//! [`Outbox`]: the messages that wait to be written to one client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use cellwright_stdext::LockExt;
use tokio::sync::Notify;

/// A message or command that waits to be written to a client.
#[derive(Clone, Debug)]
pub(super) enum OutboxItem {
    /// The frames of a message, shared by all clients that get it.
    Message(Arc<[Bytes]>),
    /// The answer to a `PING`, with its data.
    Pong(Bytes),
}

/// The messages that wait to be written to one client.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    limit: usize,
    /// An item was added, or the outbox was closed.
    changed: Notify,
    /// The client was disconnected.
    disconnected: Notify,
}

#[derive(Debug, Default)]
struct OutboxState {
    items: VecDeque<OutboxItem>,
    /// Their total size in bytes.
    bytes: usize,
    /// New items are dropped; earlier ones are still written.
    closed: bool,
}

/// The item does not fit.
#[derive(Debug)]
pub(super) struct OutboxFull;

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            limit,
            changed: Notify::new(),
            disconnected: Notify::new(),
        }
    }

    /// Appends an item. A single one always fits, however large.
    pub(super) fn push(&self, item: OutboxItem) -> Result<(), OutboxFull> {
        let mut state = self.lock();
        if state.closed {
            return Ok(());
        }
        let size = item.size();
        if !state.items.is_empty() && state.bytes + size > self.limit {
            return Err(OutboxFull);
        }
        state.bytes += size;
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next item; `None` when the outbox is closed and empty.
    pub(super) async fn next(&self) -> Option<OutboxItem> {
        loop {
            {
                let mut state = self.lock();
                if let Some(item) = state.items.pop_front() {
                    state.bytes -= item.size();
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Drops new items; earlier ones are still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Drops all items and ends the connection.
    pub(super) fn disconnect(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.items.clear();
        state.bytes = 0;
        drop(state);
        self.disconnected.notify_one();
    }

    /// Waits until the client is disconnected.
    pub(super) async fn wait_disconnected(&self) {
        self.disconnected.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock_ignoring_poison()
    }
}

impl OutboxItem {
    /// Bytes that the item occupies, with the list of its frames.
    fn size(&self) -> usize {
        let frames: &[Bytes] = match self {
            Self::Message(frames) => frames,
            Self::Pong(data) => std::slice::from_ref(data),
        };
        let list = size_of_val(frames);
        frames.iter().map(Bytes::len).sum::<usize>() + list
    }
}
