//! [`Backlog`]: items that an I/O thread has read and the caller has not taken yet. Items that do not fit into memory
//! go to disk, so that reading never has to wait.

mod spool;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use cellwright_stdext::LockExt;
use tokio::sync::Notify;

use crate::connection::Channel;
use crate::frame::Frame;
use spool::BacklogSpool;

/// An entry of a backlog.
#[derive(Debug)]
pub enum BacklogItem<E> {
    /// The frames of a message.
    Frames(Channel, Vec<Frame>),
    /// An event of the connection. It stays in memory.
    Event(E),
}

/// Items that an I/O thread has read and the caller has not taken yet.
#[derive(Debug)]
pub struct Backlog<E> {
    state: Mutex<BacklogState<E>>,
    /// An item was added, or the I/O thread has finished.
    changed: Notify,
    /// The caller has dropped the client.
    abandoned: Notify,
}

#[derive(Debug)]
struct BacklogState<E> {
    items: VecDeque<BacklogItem<E>>,
    /// Bytes of the items in memory.
    bytes: usize,
    /// Bytes of items that may be in memory.
    limit: usize,
    /// Later items, on disk.
    spool: Option<BacklogSpool<E>>,
    /// No more items are added.
    finished: bool,
}

impl<E> Backlog<E> {
    /// A backlog that keeps `limit` bytes in memory.
    pub fn new(limit: usize) -> Self {
        let state = BacklogState {
            items: VecDeque::new(),
            bytes: 0,
            limit,
            spool: None,
            finished: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            abandoned: Notify::new(),
        }
    }

    /// Appends an item. Never waits for the caller to take one.
    pub fn push(&self, item: BacklogItem<E>) {
        self.lock().push(item);
        self.changed.notify_one();
    }

    /// Appends an event.
    pub fn push_event(&self, event: E) {
        self.push(BacklogItem::Event(event));
    }

    /// Marks the backlog as finished: no more items are added.
    pub fn finish(&self) {
        self.lock().finished = true;
        self.changed.notify_one();
    }

    /// Waits for the next item. Cancel-safe. Waits forever if no more items are added.
    pub async fn next(&self) -> BacklogItem<E> {
        // A caller that drains a full backlog must yield to other tasks and timers.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(item) = self.try_next() {
                return item;
            }
            self.changed.notified().await;
        }
    }

    /// Returns the next item, if there is one.
    pub fn try_next(&self) -> Option<BacklogItem<E>> {
        self.lock().pop()
    }

    /// Waits until no more items are added.
    pub async fn wait_finished(&self) {
        loop {
            if self.lock().finished {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Ends the I/O thread: no items are taken any more.
    pub fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Waits until no items are taken any more.
    pub async fn wait_abandoned(&self) {
        self.abandoned.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BacklogState<E>> {
        self.state.lock_ignoring_poison()
    }
}

impl<E> BacklogState<E> {
    fn push(&mut self, item: BacklogItem<E>) {
        let size = memory_size(&item);
        let fits = self.items.is_empty() || self.bytes + size <= self.limit;
        let item = if fits && self.spool.is_none() {
            item
        } else {
            // A later item must not overtake those on disk. If the disk is full, the item stays in memory: nothing is
            // lost.
            match BacklogSpool::push(&mut self.spool, item) {
                Ok(()) => return,
                Err(item) => item,
            }
        };
        self.bytes += size;
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<BacklogItem<E>> {
        if let Some(item) = self.items.pop_front() {
            self.bytes -= memory_size(&item);
            return Some(item);
        }
        let item = self.spool.as_mut()?.pop();
        if item.is_none() {
            self.spool = None;
        }
        item
    }
}

/// Bytes that an item occupies in memory. The list of frames counts too: a message can consist of empty frames only.
fn memory_size<E>(item: &BacklogItem<E>) -> usize {
    match item {
        BacklogItem::Frames(_, frames) => {
            let list = size_of_val(&frames[..]);
            frames.iter().map(Frame::memory_size).sum::<usize>() + list
        }
        BacklogItem::Event(_) => 0,
    }
}
