//! [`Outbox`]: what waits to be written to one client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// What is written to a client.
#[derive(Clone, Debug)]
pub(super) enum Letter {
    /// The frames of a message, shared by all who get it.
    Message(Arc<[Bytes]>),
    /// The answer to a `PING`, with what it carried.
    Pong(Bytes),
}

/// What waits to be written to one client.
#[derive(Debug)]
pub(super) struct Outbox {
    inner: Mutex<Inner>,
    limit: usize,
    /// Something came, or nothing more will.
    changed: Notify,
    /// The client is cut off.
    cut: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    letters: VecDeque<Letter>,
    /// How much they are.
    bytes: usize,
    /// Nothing more is taken; what is there still goes out.
    closed: bool,
}

/// There is no room.
#[derive(Debug)]
pub(super) struct Full;

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit,
            changed: Notify::new(),
            cut: Notify::new(),
        }
    }

    /// Takes a letter. A single one always fits, however large.
    pub(super) fn push(&self, letter: Letter) -> Result<(), Full> {
        let mut inner = self.lock();
        if inner.closed {
            return Ok(());
        }
        let size = letter.size();
        if !inner.letters.is_empty() && inner.bytes + size > self.limit {
            return Err(Full);
        }
        inner.bytes += size;
        inner.letters.push_back(letter);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// The next letter; `None` when it is closed and empty.
    pub(super) async fn next(&self) -> Option<Letter> {
        loop {
            {
                let mut inner = self.lock();
                if let Some(letter) = inner.letters.pop_front() {
                    inner.bytes -= letter.size();
                    return Some(letter);
                }
                if inner.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Takes nothing more; what is there still goes out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Ends the connection as it is.
    pub(super) fn cut(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.letters.clear();
        inner.bytes = 0;
        drop(inner);
        self.cut.notify_one();
    }

    /// Waits until the connection is to end as it is.
    pub(super) async fn is_cut(&self) {
        self.cut.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letter {
    /// What it takes, with what surrounds its frames.
    fn size(&self) -> usize {
        let frames: &[Bytes] = match self {
            Self::Message(frames) => frames,
            Self::Pong(context) => std::slice::from_ref(context),
        };
        let around = size_of_val(frames);
        frames.iter().map(Bytes::len).sum::<usize>() + around
    }
}
