//! Reads a large file on a second thread, so that the lexer does not wait for the kernel to copy it.
//!
//! Buffers go round: filled ones to the lexer, used ones back. What has to be known of every byte
//! (the revision, whether it is UTF-8) is worked out over there, too.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;

use super::utf8::Utf8;
use crate::revision::{Digest, Revision};

/// Filled buffers that may wait; more would only fall out of the cache.
const WAITING: usize = 4;

/// The lexer's end.
pub(crate) struct Ahead {
    filled: Receiver<io::Result<Chunk>>,
    used: Sender<Vec<u8>>,
}

/// What comes over.
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    /// The end of the input, and what all of it was.
    End(Revision, Utf8),
}

impl Ahead {
    /// Starts reading pieces of `size`. The thread ends with the input, or when this is dropped.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        reader: &'scope mut (dyn Read + Send),
        size: usize,
    ) -> Self {
        let (to_lexer, filled) = sync_channel(WAITING);
        let (used, from_lexer) = channel();
        scope.spawn(move || {
            if let Err(error) = pump(reader, size, &to_lexer, &from_lexer) {
                // If nobody listens any more, nobody misses the error.
                to_lexer.send(Err(error)).ok();
            }
        });
        Self { filled, used }
    }

    /// The next piece.
    pub(crate) fn next(&mut self) -> io::Result<Chunk> {
        let gone = || io::Error::other("the reading thread has gone");
        self.filled.recv().map_err(|_| gone())?
    }

    /// Gives a buffer back for more bytes.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        // At the end of the input the thread has gone and needs no more.
        self.used.send(buffer).ok();
    }
}

fn pump(
    reader: &mut dyn Read,
    size: usize,
    to_lexer: &SyncSender<io::Result<Chunk>>,
    from_lexer: &Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut digest = Digest::new();
    let mut utf8 = Utf8::default();
    loop {
        let mut buffer = from_lexer.try_recv().unwrap_or_default();
        buffer.resize(size, 0);
        let count = read_some(reader, &mut buffer)?;
        buffer.truncate(count);
        digest.update(&buffer);
        utf8.check(&buffer);
        let chunk = if count == 0 {
            utf8.end();
            Chunk::End(digest.finish(), std::mem::take(&mut utf8))
        } else {
            Chunk::Bytes(buffer)
        };
        if to_lexer.send(Ok(chunk)).is_err() || count == 0 {
            return Ok(());
        }
    }
}

/// One read that a signal does not spoil.
pub(crate) fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
