//! Reads a large file on a second thread, so that the lexer does not wait for the kernel to copy
//! it.
//!
//! Buffers circulate: filled ones go to the lexer, used ones come back. The thread also computes
//! the revision and checks UTF-8.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;

use super::utf8::Utf8Checker;
use crate::revision::{Digest, Revision};

/// Number of filled buffers in the queue. More would only fall out of the cache.
const QUEUE_CAPACITY: usize = 4;

/// The lexer's end of the queue.
pub(crate) struct ReadAhead {
    filled: Receiver<io::Result<ReadAheadChunk>>,
    used: Sender<Vec<u8>>,
}

/// A message from the reading thread.
pub(crate) enum ReadAheadChunk {
    Bytes(Vec<u8>),
    /// The end of the input, with its revision and the UTF-8 check.
    End(Revision, Utf8Checker),
}

impl ReadAhead {
    /// Starts reading chunks of `size` bytes. The thread ends with the input, or when this is
    /// dropped.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        reader: &'scope mut (dyn Read + Send),
        size: usize,
    ) -> Self {
        let (to_lexer, filled) = sync_channel(QUEUE_CAPACITY);
        let (used, from_lexer) = channel();
        scope.spawn(move || {
            if let Err(error) = read_loop(reader, size, &to_lexer, &from_lexer) {
                // The receiver is gone: the error is no longer needed.
                to_lexer.send(Err(error)).ok();
            }
        });
        Self { filled, used }
    }

    /// The next chunk.
    pub(crate) fn next_chunk(&mut self) -> io::Result<ReadAheadChunk> {
        let ended = |_| io::Error::other("the reading thread has ended");
        self.filled.recv().map_err(ended)?
    }

    /// Returns a buffer for reuse.
    pub(crate) fn return_buffer(&self, buffer: Vec<u8>) {
        // At the end of the input the thread is gone and needs no more buffers.
        self.used.send(buffer).ok();
    }
}

fn read_loop(
    reader: &mut dyn Read,
    size: usize,
    to_lexer: &SyncSender<io::Result<ReadAheadChunk>>,
    from_lexer: &Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut digest = Digest::new();
    let mut utf8 = Utf8Checker::default();
    loop {
        let mut buffer = from_lexer.try_recv().unwrap_or_default();
        buffer.resize(size, 0);
        let count = read_retrying(reader, &mut buffer)?;
        buffer.truncate(count);
        digest.update(&buffer);
        utf8.push(&buffer);
        let chunk = if count == 0 {
            utf8.finish();
            ReadAheadChunk::End(digest.finish(), std::mem::take(&mut utf8))
        } else {
            ReadAheadChunk::Bytes(buffer)
        };
        if to_lexer.send(Ok(chunk)).is_err() || count == 0 {
            return Ok(());
        }
    }
}

/// One read, repeated if a signal interrupts it.
pub(crate) fn read_retrying(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
