//! Buffers bytes between a file and the lexer.
//!
//! There are two policies. `buffered` keeps everything that was read, for a document that will be
//! edited. `windowed` keeps only the ranges that the lexer marks, for a document that is only read:
//! the outputs of a 100 MB notebook never stay in memory. In both cases the bytes are scanned and
//! hashed while they are in the processor's cache.

use std::borrow::Cow;
use std::io::{self, Read};

use super::read_ahead::{ReadAhead, ReadAheadChunk, read_retrying};
use super::utf8::Utf8Checker;
use crate::revision::{BLOCK_SIZE, Digest, Revision};

/// Large enough to make system calls cheap, small enough for the second-level cache, and one
/// block of the revision. In bytes.
pub(crate) const WINDOW_SIZE: usize = BLOCK_SIZE;

pub(crate) struct Input<'r> {
    source: InputSource<'r>,
    buffer: Cow<'r, [u8]>,
    filled: usize,
    /// The next byte to scan, as an index into `buffer`.
    pub(crate) pos: usize,
    /// File offset of `buffer[0]`.
    base: usize,
    /// Index of the first byte that must survive a refill.
    keep: Option<usize>,
    policy: BufferPolicy,
    utf8: Utf8Checker,
    hashed: Option<HashedRange>,
}

/// Where more bytes come from.
enum InputSource<'r> {
    Reader(&'r mut dyn Read, Box<Digest>),
    ReadAhead(ReadAhead),
    /// The end of the input, with its revision if it came from a reader.
    Ended(Option<Revision>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BufferPolicy {
    Whole,
    Window,
}

/// A range of the input with its own hash (a cell).
struct HashedRange {
    start: usize,
    /// Set once the range crosses a refill. Until then, one call hashes the slice.
    digest: Option<Digest>,
}

impl<'r> InputSource<'r> {
    fn reader(reader: &'r mut dyn Read) -> Self {
        Self::Reader(reader, Box::new(Digest::new()))
    }
}

impl<'r> Input<'r> {
    /// Keeps everything; [`Input::into_bytes`] returns it. `expected` is the likely size in
    /// bytes.
    pub(crate) fn buffered(reader: &'r mut dyn Read, expected: usize) -> Self {
        // One byte more than expected, so that the end is noticed without growing.
        let buffer = vec![0; expected + 1];
        Self::new(
            InputSource::reader(reader),
            buffer.into(),
            BufferPolicy::Whole,
        )
    }

    /// Keeps only the ranges that the lexer marks.
    pub(crate) fn windowed(reader: &'r mut dyn Read) -> Self {
        Self::new(
            InputSource::reader(reader),
            vec![0; WINDOW_SIZE].into(),
            BufferPolicy::Window,
        )
    }

    /// Like [`Input::windowed`], but the bytes come from a second thread.
    pub(crate) fn from_read_ahead(ahead: ReadAhead) -> Self {
        Self::new(
            InputSource::ReadAhead(ahead),
            Vec::new().into(),
            BufferPolicy::Window,
        )
    }

    /// Reads bytes in memory.
    pub(crate) fn from_slice(bytes: &'r [u8]) -> Self {
        let mut input = Self::new(InputSource::Ended(None), bytes.into(), BufferPolicy::Whole);
        input.filled = bytes.len();
        input.utf8 = Utf8Checker::check_all(bytes);
        input
    }

    fn new(source: InputSource<'r>, buffer: Cow<'r, [u8]>, policy: BufferPolicy) -> Self {
        Self {
            source,
            buffer,
            filled: 0,
            pos: 0,
            base: 0,
            keep: None,
            policy,
            utf8: Utf8Checker::default(),
            hashed: None,
        }
    }

    /// The buffered bytes from the next one on.
    pub(crate) fn buffered_rest(&self) -> &[u8] {
        &self.buffer[self.pos..self.filled]
    }

    /// File offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.pos
    }

    /// The next byte, or `None` at the end.
    pub(crate) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.pos < self.filled || self.refill()? {
            Ok(Some(self.buffer[self.pos]))
        } else {
            Ok(None)
        }
    }

    /// Buffers and returns the next `count` bytes; fewer only at the end of the input.
    pub(crate) fn peek_many(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.filled - self.pos < count {
            let had_mark = self.keep.is_some();
            if !had_mark {
                self.keep = Some(self.pos);
            }
            let more = self.refill()?;
            if !had_mark {
                self.keep = None;
            }
            if !more {
                break;
            }
        }
        let end = self.filled.min(self.pos + count);
        Ok(&self.buffer[self.pos..end])
    }

    /// Keeps all bytes from here on, until [`Input::take_kept`] returns them.
    pub(crate) fn start_keeping(&mut self) {
        self.keep = Some(self.pos);
    }

    /// Returns the bytes since [`Input::start_keeping`].
    pub(crate) fn take_kept(&mut self) -> &[u8] {
        let start = self.keep.take().unwrap_or(self.pos);
        &self.buffer[start..self.pos]
    }

    /// Starts a range with its own hash.
    pub(crate) fn start_hash(&mut self) {
        self.hashed = Some(HashedRange {
            start: self.pos,
            digest: None,
        });
    }

    /// Ends the range and returns its hash.
    pub(crate) fn finish_hash(&mut self) -> Revision {
        match self.hashed.take() {
            Some(HashedRange {
                start,
                digest: Some(mut digest),
            }) => {
                digest.update(&self.buffer[start..self.pos]);
                digest.finish()
            }
            Some(HashedRange {
                start,
                digest: None,
            }) => Revision::compute(&self.buffer[start..self.pos]),
            None => Revision::compute(&[]),
        }
    }

    /// Reads more; returns `false` at the end of the input.
    pub(crate) fn refill(&mut self) -> io::Result<bool> {
        if matches!(self.source, InputSource::Ended(_)) {
            return Ok(false);
        }
        if self.policy == BufferPolicy::Window {
            self.discard_consumed();
        }
        match &mut self.source {
            InputSource::Ended(_) => Ok(false),
            InputSource::Reader(reader, digest) => {
                let buffer = self.buffer.to_mut();
                // Each read has the size of one revision block, whatever is kept before it.
                let needed = match self.policy {
                    BufferPolicy::Whole => self.filled + 1,
                    BufferPolicy::Window => self.filled + WINDOW_SIZE,
                };
                if buffer.len() < needed {
                    let longer = (buffer.len() * 2).max(needed);
                    buffer.resize(longer, 0);
                }
                // Bounded, so that each part is scanned while it is in the cache.
                let until = buffer.len().min(self.filled + WINDOW_SIZE);
                let count = read_retrying(*reader, &mut buffer[self.filled..until])?;
                let new = &buffer[self.filled..self.filled + count];
                digest.update(new);
                self.utf8.push(new);
                self.filled += count;
                if count == 0 {
                    self.utf8.finish();
                    self.source = InputSource::Ended(Some(digest.finish()));
                }
                Ok(count > 0)
            }
            InputSource::ReadAhead(ahead) => match ahead.next_chunk()? {
                ReadAheadChunk::End(revision, utf8) => {
                    self.utf8 = utf8;
                    self.source = InputSource::Ended(Some(revision));
                    Ok(false)
                }
                ReadAheadChunk::Bytes(chunk) => {
                    let buffer = self.buffer.to_mut();
                    if self.filled == 0 {
                        // Nothing to keep: swap the buffers.
                        ahead.return_buffer(std::mem::replace(buffer, chunk));
                    } else {
                        buffer.truncate(self.filled);
                        buffer.extend_from_slice(&chunk);
                        ahead.return_buffer(chunk);
                    }
                    self.filled = self.buffer.len();
                    Ok(true)
                }
            },
        }
    }

    /// Drops bytes that are no longer needed.
    fn discard_consumed(&mut self) {
        if let Some(hashed) = &mut self.hashed {
            hashed
                .digest
                .get_or_insert_with(Digest::new)
                .update(&self.buffer[hashed.start..self.pos]);
        }
        let from = self.keep.unwrap_or(self.pos);
        if from < self.filled {
            self.buffer.to_mut().copy_within(from..self.filled, 0);
        }
        self.base += from;
        self.pos -= from;
        self.filled -= from;
        self.keep = self.keep.map(|_| 0);
        if let Some(hashed) = &mut self.hashed {
            // Not the end of the buffer: the lexer may have buffered more than it consumed.
            hashed.start = self.pos;
        }
    }

    /// The revision of everything that was read; valid at the end of the input.
    pub(crate) fn revision(&self) -> Revision {
        match self.source {
            InputSource::Ended(Some(revision)) => revision,
            InputSource::Ended(None) | InputSource::Reader(..) | InputSource::ReadAhead(_) => {
                Revision::compute(self.buffered_bytes())
            }
        }
    }

    /// Offset of the first byte read so far that is not UTF-8.
    pub(crate) fn invalid_utf8(&self) -> Option<usize> {
        self.utf8.invalid_at
    }

    /// The bytes read so far; all of them with [`Input::buffered`].
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.buffer.into_owned();
        bytes.truncate(self.filled);
        bytes
    }

    pub(crate) fn buffered_bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}
