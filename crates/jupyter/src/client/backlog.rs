//! [`Backlog`]: items that the I/O thread has read and the caller has not taken yet. Items that do not fit into memory
//! go to disk, so that reading never has to wait.

mod spool;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use cellwright_stdext::LockExt;
use tokio::sync::Notify;

use super::BacklogItem;
use crate::frame::Frame;
use spool::BacklogSpool;

/// Items that the I/O thread has read and the caller has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    state: Mutex<BacklogState>,
    /// An item was added, or the I/O thread has finished.
    changed: Notify,
    /// The caller has dropped the client.
    abandoned: Notify,
}

#[derive(Debug, Default)]
struct BacklogState {
    items: VecDeque<BacklogItem>,
    /// Bytes of the items in memory.
    bytes: usize,
    /// Bytes of items that may be in memory.
    limit: usize,
    /// Later items, on disk.
    spool: Option<BacklogSpool>,
    /// No more items are added.
    finished: bool,
}

impl Backlog {
    /// A backlog that keeps `limit` bytes in memory.
    pub(super) fn new(limit: usize) -> Self {
        let state = BacklogState {
            limit,
            ..BacklogState::default()
        };
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    /// Appends an item. Never waits for the caller to take one.
    pub(super) fn push(&self, item: BacklogItem) {
        self.lock().push(item);
        self.changed.notify_one();
    }

    /// Marks the backlog as finished: no more items are added.
    pub(super) fn finish(&self) {
        self.lock().finished = true;
        self.changed.notify_one();
    }

    /// Waits for the next item. Cancel-safe. Waits forever if no more items are added.
    pub(super) async fn next(&self) -> BacklogItem {
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
    pub(super) fn try_next(&self) -> Option<BacklogItem> {
        self.lock().pop()
    }

    /// Waits until no more items are added.
    pub(super) async fn wait_finished(&self) {
        loop {
            if self.lock().finished {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Ends the I/O thread: no items are taken any more.
    pub(super) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Waits until no items are taken any more.
    pub(super) async fn wait_abandoned(&self) {
        self.abandoned.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock_ignoring_poison()
    }
}

impl BacklogState {
    fn push(&mut self, item: BacklogItem) {
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

    fn pop(&mut self) -> Option<BacklogItem> {
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
fn memory_size(item: &BacklogItem) -> usize {
    match item {
        BacklogItem::Frames(_, frames) => {
            let list = size_of_val(&frames[..]);
            frames.iter().map(Frame::memory_size).sum::<usize>() + list
        }
        _ => 0,
    }
}
