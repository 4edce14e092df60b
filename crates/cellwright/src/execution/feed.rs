//! [`OutputFeed`]: output of running code on its way to a viewer. The writer never waits. Items that the reader has not
//! taken wait in memory up to a limit, then on disk or not at all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellwright_output::Stream;
use tokio::sync::Notify;

use super::CellEvent;

/// How much may wait in memory for a reader.
const MEMORY_LIMIT: usize = 8 * 1024 * 1024;

/// One piece on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FeedItem {
    /// A cell begins.
    CellStart,
    /// Text as it came, in any pieces.
    Text(Stream, Vec<u8>),
    /// A whole piece of text that stands for something displayed.
    Display(Stream, String),
    /// Something happened to a cell of a notebook.
    CellEvent(Box<CellEvent>),
    /// So many bytes were not kept for this reader.
    Dropped(u64),
}

/// What a thread that waited was given.
#[derive(Debug, PartialEq)]
pub(crate) enum FeedPoll {
    Item(FeedItem),
    /// Nothing came in time.
    TimedOut,
    /// Nothing more will come.
    Closed,
}

/// What happens to what the reader does not take in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// It is kept on disk.
    Spill,
    /// It is counted.
    Drop,
}

/// Both ends; clones share it.
#[derive(Clone)]
pub(crate) struct OutputFeed(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    for_threads: Condvar,
    for_tasks: Notify,
}

struct Queue {
    items: VecDeque<FeedItem>,
    bytes: usize,
    overflow: Overflow,
    spill: Option<Spill>,
    closed: bool,
}

impl OutputFeed {
    pub(crate) fn new(beyond: Overflow) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::new(Queue {
                items: VecDeque::new(),
                bytes: 0,
                overflow: beyond,
                spill: None,
                closed: false,
            }),
            for_threads: Condvar::new(),
            for_tasks: Notify::new(),
        }))
    }

    /// Adds a chunk. Never waits for the reader.
    pub(crate) fn push(&self, chunk: FeedItem) {
        self.lock().push(chunk);
        self.0.for_threads.notify_one();
        self.0.for_tasks.notify_one();
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.0.for_threads.notify_all();
        self.0.for_tasks.notify_one();
    }

    /// What is there, for a thread that waits, so long at the most.
    pub(crate) fn poll_timeout(&self, patience: Option<Duration>) -> FeedPoll {
        let mut queue = self.lock();
        let condition = &self.0.for_threads;
        loop {
            if let Some(chunk) = queue.pop() {
                return FeedPoll::Item(chunk);
            }
            if queue.closed {
                return FeedPoll::Closed;
            }
            let Some(patience) = patience else {
                queue = condition
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = condition.wait_timeout(queue, patience);
            let (locked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            if timeout.timed_out() && queue.is_empty() && !queue.closed {
                return FeedPoll::TimedOut;
            }
        }
    }

    /// What is there, for a task that waits; `None` at the end. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<FeedItem> {
        loop {
            {
                let mut queue = self.lock();
                if let Some(chunk) = queue.pop() {
                    return Some(chunk);
                }
                if queue.closed {
                    return None;
                }
            }
            self.0.for_tasks.notified().await;
        }
    }

    /// Whether somebody else holds the other end.
    pub(crate) fn has_reader(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Whether nothing is there to be taken.
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.spill.is_none()
    }

    fn push(&mut self, chunk: FeedItem) {
        if self.closed {
            return;
        }
        if let Some(spill) = &mut self.spill {
            if spill.write(&chunk).is_ok() {
                return;
            }
        } else if self.bytes + item_size(&chunk) <= MEMORY_LIMIT {
            self.bytes += item_size(&chunk);
            self.add(chunk);
            return;
        } else if self.overflow == Overflow::Spill {
            match Spill::new().and_then(|mut spill| spill.write(&chunk).map(|()| spill)) {
                Ok(spill) => {
                    self.spill = Some(spill);
                    return;
                }
                // Without a disk there is nothing else to be done.
                Err(_) => self.overflow = Overflow::Drop,
            }
        }
        let bytes = item_size(&chunk) as u64;
        match self.items.back_mut() {
            Some(FeedItem::Dropped(lost)) => *lost += bytes,
            _ => self.items.push_back(FeedItem::Dropped(bytes)),
        }
    }

    /// Many small writes of one stream are read as one.
    fn add(&mut self, chunk: FeedItem) {
        if let (FeedItem::Text(stream, bytes), Some(FeedItem::Text(last, before))) =
            (&chunk, self.items.back_mut())
            && stream == last
            && before.len() < 64 * 1024
        {
            before.extend_from_slice(bytes);
        } else {
            self.items.push_back(chunk);
        }
    }

    fn pop(&mut self) -> Option<FeedItem> {
        if let Some(chunk) = self.items.pop_front() {
            self.bytes = self.bytes.saturating_sub(item_size(&chunk));
            return Some(chunk);
        }
        let spill = self.spill.as_mut()?;
        match spill.read() {
            Ok(Some(chunk)) => Some(chunk),
            // All of it was read: from here on memory will do.
            Ok(None) => {
                self.spill = None;
                None
            }
            Err(_) => {
                let lost = spill.written - spill.taken;
                self.spill = None;
                Some(FeedItem::Dropped(lost))
            }
        }
    }
}

fn item_size(chunk: &FeedItem) -> usize {
    match chunk {
        FeedItem::Text(_, bytes) => bytes.len(),
        FeedItem::Display(_, text) => text.len(),
        FeedItem::CellEvent(_) => size_of::<CellEvent>(),
        FeedItem::CellStart | FeedItem::Dropped(_) => 0,
    }
}

/// Chunks in a file that has no name and goes with us.
struct Spill {
    file: File,
    written: u64,
    taken: u64,
}

impl Spill {
    fn new() -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            written: 0,
            taken: 0,
        })
    }

    fn write(&mut self, chunk: &FeedItem) -> io::Result<()> {
        let json;
        let (kind, bytes): (u8, &[u8]) = match chunk {
            FeedItem::CellStart => (0, &[]),
            FeedItem::Text(Stream::Stdout, bytes) => (1, bytes),
            FeedItem::Text(Stream::Stderr, bytes) => (2, bytes),
            FeedItem::Display(Stream::Stdout, text) => (3, text.as_bytes()),
            FeedItem::Display(Stream::Stderr, text) => (4, text.as_bytes()),
            FeedItem::Dropped(bytes) => (5, &bytes.to_le_bytes()),
            FeedItem::CellEvent(mark) => {
                json = serde_json::to_vec(mark)?;
                (6, &json)
            }
        };
        let mut record = vec![kind];
        record.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        record.extend_from_slice(bytes);
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(&record)?;
        self.written += record.len() as u64;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<FeedItem>> {
        if self.taken == self.written {
            return Ok(None);
        }
        self.file.seek(SeekFrom::Start(self.taken))?;
        let mut head = [0; 9];
        self.file.read_exact(&mut head)?;
        let mut length = [0; 8];
        length.copy_from_slice(&head[1..]);
        let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read_exact(&mut bytes)?;
        self.taken += 9 + length as u64;
        let text = |bytes| String::from_utf8(bytes).map_err(io::Error::other);
        Ok(Some(match head[0] {
            0 => FeedItem::CellStart,
            1 => FeedItem::Text(Stream::Stdout, bytes),
            2 => FeedItem::Text(Stream::Stderr, bytes),
            3 => FeedItem::Display(Stream::Stdout, text(bytes)?),
            4 => FeedItem::Display(Stream::Stderr, text(bytes)?),
            6 => FeedItem::CellEvent(serde_json::from_slice(&bytes)?),
            _ => {
                let mut lost = [0; 8];
                lost.copy_from_slice(bytes.get(..8).unwrap_or(&[0; 8]));
                FeedItem::Dropped(u64::from_le_bytes(lost))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(feed: &OutputFeed) -> Option<FeedItem> {
        match feed.poll_timeout(None) {
            FeedPoll::Item(chunk) => Some(chunk),
            _ => None,
        }
    }

    fn text(bytes: &[u8]) -> FeedItem {
        FeedItem::Text(Stream::Stdout, bytes.to_vec())
    }

    #[test]
    fn items_beyond_memory_wait_on_disk() {
        let feed = OutputFeed::new(Overflow::Spill);
        let block = vec![b'x'; 1024 * 1024];
        for number in 0..20_u8 {
            feed.push(text(&block));
            feed.push(FeedItem::Display(Stream::Stderr, number.to_string()));
        }
        feed.close();
        let (mut bytes, mut pieces) = (0, Vec::new());
        while let Some(chunk) = wait(&feed) {
            match chunk {
                FeedItem::Text(_, text) => bytes += text.len(),
                FeedItem::Display(_, piece) => pieces.push(piece),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bytes, 20 * block.len());
        let expected: Vec<String> = (0..20).map(|number: u8| number.to_string()).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn dropped_items_are_counted_in_their_place() {
        let feed = OutputFeed::new(Overflow::Drop);
        let block = vec![b'x'; MEMORY_LIMIT / 2];
        for _ in 0..4 {
            feed.push(text(&block));
        }
        assert_eq!(wait(&feed), Some(text(&block)));
        feed.push(text(b"after"));
        feed.close();
        let rest: Vec<FeedItem> = std::iter::from_fn(|| wait(&feed)).collect();
        let lost = FeedItem::Dropped(2 * block.len() as u64);
        assert_eq!(rest, [text(&block), lost, text(b"after")]);
    }
}
