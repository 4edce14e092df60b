//! [`OutputFeed`]: the items of a running execution queued for a viewer. The writer never waits. Items that the
//! reader has not taken wait in memory up to a limit, then on disk or not at all.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellwright_stdext::{LockExt, SpoolFile};
use tokio::sync::Notify;

pub use super::feed_item::{DisplayItem, FeedItem, ItemHead};

/// Size in bytes of the items that may wait in memory for a reader.
const MEMORY_LIMIT: usize = 8 * 1024 * 1024;

/// Size in bytes up to which consecutive text of one stream becomes one item.
const JOINED_TEXT_MAX: usize = 64 * 1024;

/// Result of [`OutputFeed::poll_timeout`].
#[derive(Debug, PartialEq)]
pub enum FeedPoll {
    /// The next item.
    Item(FeedItem),
    /// No item arrived in time.
    TimedOut,
    /// No item follows.
    Closed,
}

/// What happens to items above the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// They wait on disk.
    Spill,
    /// They are dropped and their bytes are counted.
    Drop,
}

/// The feed of one reader; clones share it.
#[derive(Clone)]
pub struct OutputFeed(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    for_threads: Condvar,
    for_tasks: Notify,
}

struct Queue {
    items: VecDeque<FeedItem>,
    /// Size of the items in memory.
    bytes: usize,
    overflow: Overflow,
    spool: Option<FeedSpool>,
    closed: bool,
}

impl OutputFeed {
    /// Creates an empty feed.
    pub fn new(overflow: Overflow) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::new(Queue {
                items: VecDeque::new(),
                bytes: 0,
                overflow,
                spool: None,
                closed: false,
            }),
            for_threads: Condvar::new(),
            for_tasks: Notify::new(),
        }))
    }

    /// Adds an item. Never waits for the reader.
    pub fn push(&self, item: FeedItem) {
        self.lock().push(item);
        self.0.for_threads.notify_one();
        self.0.for_tasks.notify_one();
    }

    /// Ends the feed: the reader receives the remaining items and then [`FeedPoll::Closed`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.0.for_threads.notify_all();
        self.0.for_tasks.notify_one();
    }

    /// Returns the next item, for a thread that waits at most `timeout`.
    pub fn poll_timeout(&self, timeout: Option<Duration>) -> FeedPoll {
        let mut queue = self.lock();
        let condition = &self.0.for_threads;
        loop {
            if let Some(item) = queue.pop() {
                return FeedPoll::Item(item);
            }
            if queue.closed {
                return FeedPoll::Closed;
            }
            let Some(timeout) = timeout else {
                queue = condition
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = condition.wait_timeout(queue, timeout);
            let (locked, result) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            if result.timed_out() && queue.is_empty() && !queue.closed {
                return FeedPoll::TimedOut;
            }
        }
    }

    /// Returns the next item, for a task; `None` at the end. Cancel-safe.
    pub async fn next(&self) -> Option<FeedItem> {
        loop {
            {
                let mut queue = self.lock();
                if let Some(item) = queue.pop() {
                    return Some(item);
                }
                if queue.closed {
                    return None;
                }
            }
            self.0.for_tasks.notified().await;
        }
    }

    /// Whether the reader still holds its clone of the feed.
    pub fn has_reader(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock_ignoring_poison()
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.spool.is_none()
    }

    fn push(&mut self, item: FeedItem) {
        if self.closed {
            return;
        }
        let size = item.size();
        if let Some(spool) = &mut self.spool {
            if spool.write(&item).is_ok() {
                return;
            }
        } else if self.bytes + size <= MEMORY_LIMIT {
            self.bytes += size;
            self.append(item);
            return;
        } else if self.overflow == Overflow::Spill {
            match FeedSpool::new().and_then(|mut spool| spool.write(&item).map(|()| spool)) {
                Ok(spool) => {
                    self.spool = Some(spool);
                    return;
                }
                Err(_) => self.overflow = Overflow::Drop,
            }
        }
        let size = size as u64;
        match self.items.back_mut() {
            Some(FeedItem::Dropped(bytes)) => *bytes += size,
            _ => self.items.push_back(FeedItem::Dropped(size)),
        }
    }

    /// Appends an item, or joins it with the text before it.
    fn append(&mut self, item: FeedItem) {
        if let (FeedItem::Text(stream, bytes), Some(FeedItem::Text(last_stream, last))) =
            (&item, self.items.back_mut())
            && stream == last_stream
            && last.len() < JOINED_TEXT_MAX
        {
            last.extend_from_slice(bytes);
        } else {
            self.items.push_back(item);
        }
    }

    fn pop(&mut self) -> Option<FeedItem> {
        if let Some(item) = self.items.pop_front() {
            self.bytes = self.bytes.saturating_sub(item.size());
            return Some(item);
        }
        let spool = self.spool.as_mut()?;
        match spool.read() {
            Ok(Some(item)) => Some(item),
            // The spool is empty: the next items wait in memory again.
            Ok(None) => {
                self.spool = None;
                None
            }
            Err(_) => {
                let unread = spool.unread();
                self.spool = None;
                Some(FeedItem::Dropped(unread))
            }
        }
    }
}

/// Items in a spool file, each as the sizes of head and data, head and data.
struct FeedSpool {
    file: SpoolFile,
    /// Number of bytes read.
    read: u64,
}

/// Size in bytes of the sizes before an item.
const SIZES: usize = 2 * size_of::<u64>();

impl FeedSpool {
    fn new() -> io::Result<Self> {
        Ok(Self {
            file: SpoolFile::create()?,
            read: 0,
        })
    }

    fn write(&mut self, item: &FeedItem) -> io::Result<()> {
        let (head, data) = item.encode()?;
        let head = serde_json::to_vec(&head)?;
        let mut record = Vec::with_capacity(SIZES + head.len() + data.len());
        record.extend_from_slice(&(head.len() as u64).to_le_bytes());
        record.extend_from_slice(&(data.len() as u64).to_le_bytes());
        record.extend_from_slice(&head);
        record.extend_from_slice(&data);
        self.file.append(&record)?;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<FeedItem>> {
        if self.unread() == 0 {
            return Ok(None);
        }
        let sizes = self.read_bytes(SIZES as u64)?;
        let (head, data) = sizes.split_at(SIZES / 2);
        let head = self.read_bytes(decode_size(head)?)?;
        let data = self.read_bytes(decode_size(data)?)?;
        FeedItem::decode(serde_json::from_slice(&head)?, data).map(Some)
    }

    fn read_bytes(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let bytes = self.file.read(self.read..self.read + size)?;
        self.read += size;
        Ok(bytes)
    }

    /// Number of bytes that were not read.
    fn unread(&self) -> u64 {
        self.file.end() - self.read
    }
}

fn decode_size(bytes: &[u8]) -> io::Result<u64> {
    let bytes = bytes.try_into().map_err(io::Error::other)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use cellwright_output::Stream;

    use super::*;

    fn wait(feed: &OutputFeed) -> Option<FeedItem> {
        match feed.poll_timeout(None) {
            FeedPoll::Item(item) => Some(item),
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
            feed.push(FeedItem::plain_text(number.to_string()));
        }
        feed.close();
        let (mut bytes, mut displays) = (0, Vec::new());
        while let Some(item) = wait(&feed) {
            match item {
                FeedItem::Text(_, text) => bytes += text.len(),
                display => displays.push(display),
            }
        }
        assert_eq!(bytes, 20 * block.len());
        let expected: Vec<FeedItem> = (0..20_u8)
            .map(|number| FeedItem::plain_text(number.to_string()))
            .collect();
        assert_eq!(displays, expected);
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
