//! [`Backlog`]: what was read and nobody has taken yet. What does not fit into memory waits on disk, so
//! that reading never has to.

mod spill;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Item;
use crate::frame::Frame;
use spill::Spill;

/// What was read and nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    inner: Mutex<Inner>,
    /// Something came, or it has ended.
    changed: Notify,
    /// Nobody will take anything any more.
    abandoned: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<Item>,
    /// How much they are.
    bytes: usize,
    /// How much they may be.
    limit: usize,
    /// What came after them and is on disk.
    spill: Option<Spill>,
    /// Nothing more will come.
    ended: bool,
}

impl Backlog {
    /// So many bytes wait in memory.
    pub(super) fn new(limit: usize) -> Self {
        let inner = Inner {
            limit,
            ..Inner::default()
        };
        Self {
            inner: Mutex::new(inner),
            ..Self::default()
        }
    }

    /// Takes something in. Never waits for whoever takes it out.
    pub(super) fn push(&self, item: Item) {
        self.lock().push(item);
        self.changed.notify_one();
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// The next item. Cancel-safe. Waits for ever if there will be none.
    pub(super) async fn next(&self) -> Item {
        // Whoever takes from a backlog that never empties must let others have their turn: their clocks, too.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(item) = self.already() {
                return item;
            }
            self.changed.notified().await;
        }
    }

    /// The next item, if there is one.
    pub(super) fn already(&self) -> Option<Item> {
        self.lock().pop()
    }

    /// Waits until nothing more will come.
    pub(super) async fn ended(&self) {
        loop {
            if self.lock().ended {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Nobody will take anything any more.
    pub(super) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Waits until nobody will take anything any more.
    pub(super) async fn is_abandoned(&self) {
        self.abandoned.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn push(&mut self, item: Item) {
        let size = size(&item);
        let fits = self.items.is_empty() || self.bytes + size <= self.limit;
        let item = if fits && self.spill.is_none() {
            item
        } else {
            // What comes later must not overtake what is on disk already. If the disk takes no more, memory
            // has to: nothing is lost.
            match Spill::write(&mut self.spill, item) {
                Ok(()) => return,
                Err(item) => item,
            }
        };
        self.bytes += size;
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        if let Some(item) = self.items.pop_front() {
            self.bytes -= size(&item);
            return Some(item);
        }
        let item = self.spill.as_mut()?.read();
        if item.is_none() {
            self.spill = None;
        }
        item
    }
}

/// What it takes, with what surrounds its frames: a message can be made of nothing but empty ones.
fn size(item: &Item) -> usize {
    match item {
        Item::Frames(_, frames) => {
            let around = size_of_val(&frames[..]);
            frames.iter().map(Frame::held).sum::<usize>() + around
        }
        _ => 0,
    }
}
