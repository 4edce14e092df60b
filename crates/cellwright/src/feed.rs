//! What running code says, on its way to whoever looks on. Whoever writes never waits; what the
//! reader has not taken yet is kept up to a bound, beyond that on disk or not at all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellwright_output::Stream;
use tokio::sync::Notify;

use crate::evaluation::Mark;

/// How much may wait in memory for a reader.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// One piece on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chunk {
    /// A cell begins.
    Cell,
    /// Text as it came, in any pieces.
    Text(Stream, Vec<u8>),
    /// A whole piece of text that stands for something displayed.
    Piece(Stream, String),
    /// Something happened to a cell of a notebook.
    Mark(Box<Mark>),
    /// So many bytes were not kept for this reader.
    Lost(u64),
}

/// What a thread that waited was given.
#[derive(Debug, PartialEq)]
pub(crate) enum Fed {
    Chunk(Chunk),
    /// Nothing came in time.
    Nothing,
    /// Nothing more will come.
    End,
}

/// What happens to what the reader does not take in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// It is kept on disk.
    Disk,
    /// It is counted.
    Lost,
}

/// Both ends; clones share it.
#[derive(Clone)]
pub(crate) struct Feed(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    for_threads: Condvar,
    for_tasks: Notify,
}

struct Queue {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    beyond: Beyond,
    spill: Option<Spill>,
    closed: bool,
}

impl Feed {
    pub(crate) fn new(beyond: Beyond) -> Self {
        Self(Arc::new(Shared {
            queue: Mutex::new(Queue {
                chunks: VecDeque::new(),
                bytes: 0,
                beyond,
                spill: None,
                closed: false,
            }),
            for_threads: Condvar::new(),
            for_tasks: Notify::new(),
        }))
    }

    /// Adds a chunk. Never waits for the reader.
    pub(crate) fn push(&self, chunk: Chunk) {
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
    pub(crate) fn wait_for(&self, patience: Option<Duration>) -> Fed {
        let mut queue = self.lock();
        let condition = &self.0.for_threads;
        loop {
            if let Some(chunk) = queue.pop() {
                return Fed::Chunk(chunk);
            }
            if queue.closed {
                return Fed::End;
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
                return Fed::Nothing;
            }
        }
    }

    /// What is there, for a task that waits; `None` at the end. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<Chunk> {
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
        self.chunks.is_empty() && self.spill.is_none()
    }

    fn push(&mut self, chunk: Chunk) {
        if self.closed {
            return;
        }
        if let Some(spill) = &mut self.spill {
            if spill.write(&chunk).is_ok() {
                return;
            }
        } else if self.bytes + size(&chunk) <= MOST_BYTES {
            self.bytes += size(&chunk);
            self.add(chunk);
            return;
        } else if self.beyond == Beyond::Disk {
            match Spill::new().and_then(|mut spill| spill.write(&chunk).map(|()| spill)) {
                Ok(spill) => {
                    self.spill = Some(spill);
                    return;
                }
                // Without a disk there is nothing else to be done.
                Err(_) => self.beyond = Beyond::Lost,
            }
        }
        let bytes = size(&chunk) as u64;
        match self.chunks.back_mut() {
            Some(Chunk::Lost(lost)) => *lost += bytes,
            _ => self.chunks.push_back(Chunk::Lost(bytes)),
        }
    }

    /// Many small writes of one stream are read as one.
    fn add(&mut self, chunk: Chunk) {
        if let (Chunk::Text(stream, bytes), Some(Chunk::Text(last, before))) =
            (&chunk, self.chunks.back_mut())
            && stream == last
            && before.len() < 64 * 1024
        {
            before.extend_from_slice(bytes);
        } else {
            self.chunks.push_back(chunk);
        }
    }

    fn pop(&mut self) -> Option<Chunk> {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes = self.bytes.saturating_sub(size(&chunk));
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
                Some(Chunk::Lost(lost))
            }
        }
    }
}

fn size(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Text(_, bytes) => bytes.len(),
        Chunk::Piece(_, text) => text.len(),
        Chunk::Mark(_) => size_of::<Mark>(),
        Chunk::Cell | Chunk::Lost(_) => 0,
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

    fn write(&mut self, chunk: &Chunk) -> io::Result<()> {
        let json;
        let (kind, bytes): (u8, &[u8]) = match chunk {
            Chunk::Cell => (0, &[]),
            Chunk::Text(Stream::Stdout, bytes) => (1, bytes),
            Chunk::Text(Stream::Stderr, bytes) => (2, bytes),
            Chunk::Piece(Stream::Stdout, text) => (3, text.as_bytes()),
            Chunk::Piece(Stream::Stderr, text) => (4, text.as_bytes()),
            Chunk::Lost(bytes) => (5, &bytes.to_le_bytes()),
            Chunk::Mark(mark) => {
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

    fn read(&mut self) -> io::Result<Option<Chunk>> {
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
            0 => Chunk::Cell,
            1 => Chunk::Text(Stream::Stdout, bytes),
            2 => Chunk::Text(Stream::Stderr, bytes),
            3 => Chunk::Piece(Stream::Stdout, text(bytes)?),
            4 => Chunk::Piece(Stream::Stderr, text(bytes)?),
            6 => Chunk::Mark(serde_json::from_slice(&bytes)?),
            _ => {
                let mut lost = [0; 8];
                lost.copy_from_slice(bytes.get(..8).unwrap_or(&[0; 8]));
                Chunk::Lost(u64::from_le_bytes(lost))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(feed: &Feed) -> Option<Chunk> {
        match feed.wait_for(None) {
            Fed::Chunk(chunk) => Some(chunk),
            _ => None,
        }
    }

    fn text(bytes: &[u8]) -> Chunk {
        Chunk::Text(Stream::Stdout, bytes.to_vec())
    }

    #[test]
    fn what_a_slow_reader_has_not_taken_waits_on_disk() {
        let feed = Feed::new(Beyond::Disk);
        let block = vec![b'x'; 1024 * 1024];
        for number in 0..20_u8 {
            feed.push(text(&block));
            feed.push(Chunk::Piece(Stream::Stderr, number.to_string()));
        }
        feed.close();
        let (mut bytes, mut pieces) = (0, Vec::new());
        while let Some(chunk) = wait(&feed) {
            match chunk {
                Chunk::Text(_, text) => bytes += text.len(),
                Chunk::Piece(_, piece) => pieces.push(piece),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bytes, 20 * block.len());
        let expected: Vec<String> = (0..20).map(|number: u8| number.to_string()).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_is_not_kept_is_counted_in_its_place() {
        let feed = Feed::new(Beyond::Lost);
        let block = vec![b'x'; MOST_BYTES / 2];
        for _ in 0..4 {
            feed.push(text(&block));
        }
        assert_eq!(wait(&feed), Some(text(&block)));
        feed.push(text(b"after"));
        feed.close();
        let rest: Vec<Chunk> = std::iter::from_fn(|| wait(&feed)).collect();
        let lost = Chunk::Lost(2 * block.len() as u64);
        assert_eq!(rest, [text(&block), lost, text(b"after")]);
    }
}
