//! Bytes on their way from a file to the lexer.
//!
//! Two ways to hold them: `whole` keeps everything that was read (a document that will be
//! edited), `window` keeps only what the lexer asked to keep (a document that is only looked at:
//! the outputs of a 100 MB notebook never stay in memory). Either way the bytes are scanned and
//! hashed while they are still in the processor's cache.

use std::borrow::Cow;
use std::io::{self, Read};

use super::ahead::{Ahead, Chunk, read_some};
use super::utf8::Utf8;
use crate::revision::{BLOCK, Digest, Revision};

/// Large enough to make system calls cheap, small enough to stay in the second-level cache; and one
/// block of the revision.
pub(crate) const WINDOW: usize = BLOCK;

pub(crate) struct Input<'r> {
    feed: Feed<'r>,
    buffer: Cow<'r, [u8]>,
    filled: usize,
    /// Next byte to look at, as an index into `buffer`.
    pub(crate) pos: usize,
    /// Offset in the file of `buffer[0]`.
    base: usize,
    /// Index of the first byte that must survive a refill.
    keep: Option<usize>,
    policy: Policy,
    utf8: Utf8,
    piece: Option<Piece>,
}

/// Where more bytes come from.
enum Feed<'r> {
    Reader(&'r mut dyn Read, Box<Digest>),
    Ahead(Ahead),
    /// Nowhere; this is what all of them were, if they came from somewhere.
    Ended(Option<Revision>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Whole,
    Window,
}

/// A stretch of the input that gets a hash of its own (a cell).
struct Piece {
    start: usize,
    /// Set once the stretch crosses a refill; until then one call over the slice will do.
    digest: Option<Digest>,
}

impl<'r> Feed<'r> {
    fn reader(reader: &'r mut dyn Read) -> Self {
        Self::Reader(reader, Box::new(Digest::new()))
    }
}

impl<'r> Input<'r> {
    /// Keeps everything; [`Input::into_bytes`] gives it back. `expected` is the likely size.
    pub(crate) fn whole(reader: &'r mut dyn Read, expected: usize) -> Self {
        // One more than expected, so that the end is noticed without growing.
        let buffer = vec![0; expected + 1];
        Self::new(Feed::reader(reader), buffer.into(), Policy::Whole)
    }

    /// Keeps only what the lexer marks.
    pub(crate) fn window(reader: &'r mut dyn Read) -> Self {
        Self::new(Feed::reader(reader), vec![0; WINDOW].into(), Policy::Window)
    }

    /// The same, fed by a thread of its own.
    pub(crate) fn ahead(ahead: Ahead) -> Self {
        Self::new(Feed::Ahead(ahead), Vec::new().into(), Policy::Window)
    }

    /// Bytes that are in memory already.
    pub(crate) fn slice(bytes: &'r [u8]) -> Self {
        let mut input = Self::new(Feed::Ended(None), bytes.into(), Policy::Whole);
        input.filled = bytes.len();
        input.utf8 = Utf8::checked(bytes);
        input
    }

    fn new(feed: Feed<'r>, buffer: Cow<'r, [u8]>, policy: Policy) -> Self {
        Self {
            feed,
            buffer,
            filled: 0,
            pos: 0,
            base: 0,
            keep: None,
            policy,
            utf8: Utf8::default(),
            piece: None,
        }
    }

    /// Everything between the next byte and the end of what is loaded.
    pub(crate) fn loaded_ahead(&self) -> &[u8] {
        &self.buffer[self.pos..self.filled]
    }

    /// Offset in the file of the next byte.
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

    /// Loads until at least `count` bytes are ahead; fewer only at the end of the input.
    pub(crate) fn look(&mut self, count: usize) -> io::Result<&[u8]> {
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

    /// From here on bytes survive refills, until [`Input::kept_since`] takes them.
    pub(crate) fn mark(&mut self) {
        self.keep = Some(self.pos);
    }

    /// Ends a [`mark`](Input::mark) and gives the bytes since it.
    pub(crate) fn kept_since(&mut self) -> &[u8] {
        let start = self.keep.take().unwrap_or(self.pos);
        &self.buffer[start..self.pos]
    }

    /// Begins a stretch with a hash of its own.
    pub(crate) fn begin_piece(&mut self) {
        self.piece = Some(Piece {
            start: self.pos,
            digest: None,
        });
    }

    /// Ends the stretch and gives its hash.
    pub(crate) fn end_piece(&mut self) -> Revision {
        match self.piece.take() {
            Some(Piece {
                start,
                digest: Some(mut digest),
            }) => {
                digest.update(&self.buffer[start..self.pos]);
                digest.finish()
            }
            Some(Piece {
                start,
                digest: None,
            }) => Revision::of(&self.buffer[start..self.pos]),
            None => Revision::of(&[]),
        }
    }

    /// Loads more; `false` at the end of the input.
    pub(crate) fn refill(&mut self) -> io::Result<bool> {
        if matches!(self.feed, Feed::Ended(_)) {
            return Ok(false);
        }
        if self.policy == Policy::Window {
            self.slide();
        }
        match &mut self.feed {
            Feed::Ended(_) => Ok(false),
            Feed::Reader(reader, digest) => {
                let buffer = self.buffer.to_mut();
                // Reads of one size, whatever is kept before them: each is one block of the
                // revision.
                let room = match self.policy {
                    Policy::Whole => self.filled + 1,
                    Policy::Window => self.filled + WINDOW,
                };
                if buffer.len() < room {
                    let longer = (buffer.len() * 2).max(room);
                    buffer.resize(longer, 0);
                }
                // Bounded, so that each part is scanned while it is still warm.
                let until = buffer.len().min(self.filled + WINDOW);
                let count = read_some(*reader, &mut buffer[self.filled..until])?;
                let new = &buffer[self.filled..self.filled + count];
                digest.update(new);
                self.utf8.check(new);
                self.filled += count;
                if count == 0 {
                    self.utf8.end();
                    self.feed = Feed::Ended(Some(digest.finish()));
                }
                Ok(count > 0)
            }
            Feed::Ahead(ahead) => match ahead.next()? {
                Chunk::End(revision, utf8) => {
                    self.utf8 = utf8;
                    self.feed = Feed::Ended(Some(revision));
                    Ok(false)
                }
                Chunk::Bytes(chunk) => {
                    let buffer = self.buffer.to_mut();
                    if self.filled == 0 {
                        // Nothing to keep: the new buffer takes the place of the old one.
                        ahead.give_back(std::mem::replace(buffer, chunk));
                    } else {
                        buffer.truncate(self.filled);
                        buffer.extend_from_slice(&chunk);
                        ahead.give_back(chunk);
                    }
                    self.filled = self.buffer.len();
                    Ok(true)
                }
            },
        }
    }

    /// Forgets what nobody needs any more.
    fn slide(&mut self) {
        if let Some(piece) = &mut self.piece {
            piece
                .digest
                .get_or_insert_with(Digest::new)
                .update(&self.buffer[piece.start..self.pos]);
        }
        let from = self.keep.unwrap_or(self.pos);
        if from < self.filled {
            self.buffer.to_mut().copy_within(from..self.filled, 0);
        }
        self.base += from;
        self.pos -= from;
        self.filled -= from;
        self.keep = self.keep.map(|_| 0);
        if let Some(piece) = &mut self.piece {
            // Not the end of what is loaded: whoever looks ahead loads more than it takes.
            piece.start = self.pos;
        }
    }

    /// The revision of all that was read from a reader; meaningful at the end of the input.
    pub(crate) fn revision(&self) -> Revision {
        match self.feed {
            Feed::Ended(Some(revision)) => revision,
            Feed::Ended(None) | Feed::Reader(..) | Feed::Ahead(_) => Revision::of(self.loaded()),
        }
    }

    /// Offset of the first byte that is not UTF-8, among those that were loaded.
    pub(crate) fn not_utf8(&self) -> Option<usize> {
        self.utf8.bad
    }

    /// The bytes read so far (all of them with [`Input::whole`]).
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.buffer.into_owned();
        bytes.truncate(self.filled);
        bytes
    }

    pub(crate) fn loaded(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}
