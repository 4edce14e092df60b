//! [`Reader`]: the messages that come over a connection.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::ZmtpError;
use super::flag;
use super::stream::ReadHalf;
use crate::frame::{Frame, Room, Shelf};
use crate::seal::{DELIMITER, Growing, Sealer};

/// How much is read at once when nothing is known about what comes.
const CHUNK: usize = 64 * 1024;

/// How much is read at once at least.
const SMALLEST_READ: usize = 4 * 1024;

/// A frame from this size on gets memory of its own.
const LARGE: usize = 32 * 1024;

/// How much memory a frame gets before any of it has come; more as it comes. Memory that nothing was
/// written to is not there, and a kernel's usual messages fit into this.
const ADVANCE: usize = 8 << 20;

/// Frames up to this size, together, may leave their memory to the next ones. It is more than may wait to be taken, so
/// in a flood there is nearly always one that is free.
const KEPT: usize = 32 << 20;

/// How many of them.
const KEPT_FRAMES: usize = 8;

/// How much of a frame that goes to disk is put there at once: as little as the processor has near at hand.
const POURED: usize = 512 * 1024;

/// What a message may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Its bytes, in all its frames.
    pub message_bytes: u64,
    /// Its frames.
    pub frames: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // More than any kernel sends on purpose: one message must fit into memory several times.
            message_bytes: 2 << 30,
            frames: 65_536,
        }
    }
}

/// What comes over a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The frames of a message.
    Message(Vec<Bytes>),
    /// The same, but some of them are on disk; only from a reader that [stores](Reader::storing) them.
    Large(Vec<Frame>),
    /// A command of the protocol: its name, and what it carries.
    Command(Bytes, Bytes),
}

/// Reads what comes over a connection.
#[derive(Debug)]
pub struct Reader<R = Half> {
    half: R,
    limits: Limits,
    /// What has come and was not looked at.
    buffer: BytesMut,
    /// The frames so far of the message that comes; empty ones in the place of those on disk.
    frames: Vec<Bytes>,
    frames_bytes: u64,
    /// Those on disk, and which they are.
    stored: Vec<(usize, Frame)>,
    /// The frame that comes.
    frame: Option<Partial>,
    /// The frame that comes to disk.
    poured: Option<Poured>,
    /// A frame from this size on goes to disk.
    store_from: usize,
    /// … and one of a message with text from this size on.
    store_text_from: usize,
    /// Finds out what a message should be signed with while its content goes to disk.
    sealer: Option<Sealer>,
    shelf: Shelf,
    /// The latest large frames. One that nobody has any more when the next one comes leaves it its memory:
    /// memory that is touched for the first time costs more than to read into it.
    kept: VecDeque<Bytes>,
    /// Whether a frame of the message that comes is large.
    is_large: bool,
}

/// The reading half of a connection.
#[derive(Debug)]
pub struct Half(pub(super) ReadHalf);

impl AsyncRead for Half {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

/// A large frame that comes into memory of its own.
#[derive(Debug)]
struct Partial {
    flags: u8,
    length: usize,
    bytes: BytesMut,
}

/// A frame that comes to disk.
#[derive(Debug)]
struct Poured {
    flags: u8,
    room: Room,
    /// What has come and is not there yet.
    buffer: Vec<u8>,
    seal: Option<Growing>,
}

impl Poured {
    /// How many bytes have not come yet.
    fn to_come(&self) -> u64 {
        self.room.missing() - self.buffer.len() as u64
    }
}

/// What the bytes that have come are.
enum Parsed {
    /// Not a whole frame yet.
    More,
    Frame(u8, Frame),
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads from anything that has a connection's bytes, from behind the greeting on.
    pub fn new(half: R, limits: Limits) -> Self {
        Self {
            half,
            limits,
            buffer: BytesMut::new(),
            frames: Vec::new(),
            frames_bytes: 0,
            stored: Vec::new(),
            frame: None,
            poured: None,
            store_from: usize::MAX,
            store_text_from: usize::MAX,
            sealer: None,
            shelf: Shelf::default(),
            kept: VecDeque::new(),
            is_large: false,
        }
    }

    /// The same, and from now on with other limits.
    pub(super) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, and frames from a size on go to disk as they come. If the disk takes no more, they are in
    /// memory.
    #[must_use]
    pub fn storing(mut self, from: usize) -> Self {
        self.store_from = from;
        self.store_text_from = from;
        self
    }

    /// The same, but what is printed may be larger before it goes to disk: it passes, where what is displayed
    /// stays.
    #[must_use]
    pub fn storing_text(mut self, from: usize) -> Self {
        self.store_text_from = from;
        self
    }

    /// The same for messages that are signed with a key: if the content of one goes to disk, it is found out
    /// on the way which signature it should have. Whoever decodes it need not read it for that.
    #[must_use]
    pub fn signed_with(mut self, key: &str) -> Self {
        self.sealer = Sealer::new(key);
        self
    }

    /// The next thing that comes; `None` when the other side has closed the connection between two
    /// messages. Cancel-safe: what has come so far stays.
    pub async fn next(&mut self) -> Result<Option<Incoming>, ZmtpError> {
        loop {
            match self.parse()? {
                Parsed::Frame(flags, frame) => {
                    if let Some(incoming) = self.take(flags, frame)? {
                        return Ok(Some(incoming));
                    }
                }
                Parsed::More => {
                    if !self.read().await? {
                        let whole = self.frame.is_none() && self.poured.is_none();
                        let between = self.buffer.is_empty() && whole;
                        if between && self.frames.is_empty() {
                            return Ok(None);
                        }
                        return Err(ZmtpError::Io(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }

    /// Reads something; false at the end.
    async fn read(&mut self) -> Result<bool, ZmtpError> {
        let read = if let Some(poured) = &mut self.poured {
            let mut limited = (&mut self.half).take(poured.to_come());
            let read = limited.read_buf(&mut poured.buffer).await?;
            if poured.buffer.len() == poured.buffer.capacity() || poured.to_come() == 0 {
                self.pour()?;
            }
            read
        } else if let Some(frame) = &mut self.frame {
            let missing = frame.length - frame.bytes.len();
            if frame.bytes.capacity() == frame.bytes.len() {
                // Memory follows what has come, not what was announced.
                frame.bytes.reserve(missing.min(frame.bytes.len()));
            }
            let mut limited = (&mut self.half).take(missing as u64);
            limited.read_buf(&mut frame.bytes).await?
        } else {
            // Small frames stay where they were read to, and hold on to it: what is left of that is used
            // up before there is more.
            if self.buffer.capacity() - self.buffer.len() < SMALLEST_READ {
                self.buffer.reserve(CHUNK);
            }
            self.half.read_buf(&mut self.buffer).await?
        };
        Ok(read > 0)
    }

    /// Puts what has come of a frame onto disk.
    fn pour(&mut self) -> Result<(), ZmtpError> {
        let Some(poured) = &mut self.poured else {
            return Ok(());
        };
        if poured.room.push(&poured.buffer).is_ok() {
            if let Some(seal) = &mut poured.seal {
                seal.push(&poured.buffer);
            }
            poured.buffer.clear();
            return Ok(());
        }
        // The disk takes no more: memory has to.
        let missing = poured.room.missing();
        let mut bytes = BytesMut::from(&poured.room.come()?[..]);
        let length = bytes
            .len()
            .saturating_add(usize::try_from(missing).unwrap_or(usize::MAX));
        bytes.extend_from_slice(&poured.buffer);
        self.frame = Some(Partial {
            flags: poured.flags,
            length,
            bytes,
        });
        self.poured = None;
        Ok(())
    }

    fn parse(&mut self) -> Result<Parsed, ZmtpError> {
        if let Some(poured) = self.poured.take() {
            if poured.room.missing() > 0 {
                self.poured = Some(poured);
                return Ok(Parsed::More);
            }
            let seal = poured.seal.map(Growing::finish);
            let frame = Frame::Stored(poured.room.finish(seal));
            return Ok(Parsed::Frame(poured.flags, frame));
        }
        if let Some(frame) = &self.frame {
            if frame.bytes.len() < frame.length {
                return Ok(Parsed::More);
            }
            let whole = self.frame.take().map(|frame| (frame.flags, frame.bytes));
            let (flags, bytes) = whole.unwrap_or_default();
            let bytes = bytes.freeze();
            self.is_large = true;
            self.keep(&bytes);
            return Ok(Parsed::Frame(flags, Frame::Held(bytes)));
        }
        let Some(&flags) = self.buffer.first() else {
            return Ok(Parsed::More);
        };
        if flags & !(flag::MORE | flag::LONG | flag::COMMAND) != 0 {
            let what = "its flags are unknown";
            return Err(ZmtpError::Malformed { what });
        }
        if flags & flag::COMMAND != 0 && flags & flag::MORE != 0 {
            let what = "a command goes on";
            return Err(ZmtpError::Malformed { what });
        }
        let (head, length) = if flags & flag::LONG == 0 {
            let Some(&length) = self.buffer.get(1) else {
                return Ok(Parsed::More);
            };
            (2, u64::from(length))
        } else {
            let Some(length) = self
                .buffer
                .get(1..9)
                .and_then(|bytes| bytes.try_into().ok())
            else {
                return Ok(Parsed::More);
            };
            (9, u64::from_be_bytes(length))
        };
        let limit = self.limits.message_bytes;
        let length = self
            .frames_bytes
            .checked_add(length)
            .filter(|bytes| *bytes <= limit)
            .and_then(|_| usize::try_from(length).ok())
            .ok_or(ZmtpError::TooLarge { limit })?;
        if length >= self.store_from.min(self.store_text_from)
            && length >= self.store_from_here()
            && flags & flag::COMMAND == 0
            && let Ok(room) = self.shelf.reserve(length as u64)
        {
            self.buffer.advance(head);
            let come = length.min(self.buffer.len());
            let mut buffer = Vec::with_capacity(POURED.max(come + SMALLEST_READ));
            buffer.extend_from_slice(&self.buffer.split_to(come));
            // What is on disk already cannot be looked at on the way.
            let sealer = self.sealer.as_ref().filter(|_| self.stored.is_empty());
            let seal = sealer.and_then(|sealer| sealer.before_content(&self.frames));
            self.poured = Some(Poured {
                flags,
                room,
                buffer,
                seal,
            });
            if come == length {
                self.pour()?;
            }
            return self.parse();
        }
        if length >= LARGE {
            self.buffer.advance(head);
            let mut bytes = self.memory(length);
            let come = length.min(self.buffer.len());
            bytes.extend_from_slice(&self.buffer.split_to(come));
            self.frame = Some(Partial {
                flags,
                length,
                bytes,
            });
            return self.parse();
        }
        if self.buffer.len() < head + length {
            return Ok(Parsed::More);
        }
        self.buffer.advance(head);
        let frame = Frame::Held(self.buffer.split_to(length).freeze());
        Ok(Parsed::Frame(flags, frame))
    }

    /// From which size on the frame that comes goes to disk.
    fn store_from_here(&self) -> usize {
        let at = self.frames.iter().position(|frame| frame == DELIMITER);
        let header = at.and_then(|at| self.frames.get(at + 2));
        let is_text = |header: &Bytes| {
            let kind = br#""stream""#;
            header.windows(kind.len()).any(|word| word == kind)
        };
        if header.is_some_and(is_text) {
            self.store_text_from
        } else {
            self.store_from
        }
    }

    /// Memory for a large frame.
    fn memory(&mut self, length: usize) -> BytesMut {
        for _ in 0..self.kept.len() {
            match self.kept.pop_front().map(Bytes::try_into_mut) {
                // Much more than it needs would be kept for nothing.
                Some(Ok(mut kept)) if kept.capacity() / 2 <= length => {
                    kept.clear();
                    return kept;
                }
                Some(Err(taken)) => self.kept.push_back(taken),
                _ => {}
            }
        }
        BytesMut::with_capacity(length.min(ADVANCE))
    }

    /// Keeps a large frame for the sake of its memory.
    fn keep(&mut self, frame: &Bytes) {
        self.kept.push_back(frame.clone());
        let bytes = |kept: &VecDeque<Bytes>| kept.iter().map(Bytes::len).sum::<usize>();
        while self.kept.len() > KEPT_FRAMES || bytes(&self.kept) > KEPT {
            self.kept.pop_front();
        }
    }

    /// Takes a frame; what it completes comes back.
    fn take(&mut self, flags: u8, frame: Frame) -> Result<Option<Incoming>, ZmtpError> {
        let size = frame.size();
        let bytes = match frame {
            Frame::Held(bytes) if flags & flag::COMMAND != 0 => return command(bytes).map(Some),
            Frame::Held(bytes) => bytes,
            stored @ Frame::Stored(_) => {
                self.stored.push((self.frames.len(), stored));
                Bytes::new()
            }
        };
        if self.frames.len() >= self.limits.frames {
            let limit = self.limits.frames;
            return Err(ZmtpError::TooManyFrames { limit });
        }
        self.frames_bytes += size;
        self.frames.push(bytes);
        if flags & flag::MORE != 0 {
            return Ok(None);
        }
        self.frames_bytes = 0;
        if !std::mem::take(&mut self.is_large) {
            // The flood is over.
            self.kept.clear();
        }
        let frames = std::mem::take(&mut self.frames);
        if self.stored.is_empty() {
            return Ok(Some(Incoming::Message(frames)));
        }
        let mut frames: Vec<Frame> = frames.into_iter().map(Frame::Held).collect();
        for (at, stored) in self.stored.drain(..) {
            if let Some(frame) = frames.get_mut(at) {
                *frame = stored;
            }
        }
        Ok(Some(Incoming::Large(frames)))
    }
}

fn command(mut bytes: Bytes) -> Result<Incoming, ZmtpError> {
    let what = "a command without a name";
    let length = bytes.first().map(|length| usize::from(*length));
    match length {
        Some(length) if length > 0 && bytes.len() > length => {
            bytes.advance(1);
            let name = bytes.split_to(length);
            Ok(Incoming::Command(name, bytes))
        }
        _ => Err(ZmtpError::Malformed { what }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_frame_that_the_disk_does_not_take_is_in_memory() {
        let content = vec![7; 3 * POURED];
        let mut bytes = vec![flag::LONG];
        bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(&[0, 1, b'n']);
        let mut reader = Reader::new(&bytes[..], Limits::default()).storing(POURED);
        let full = File::options().read(true).write(true).open("/dev/full");
        reader.shelf = Shelf::of(Arc::new(full.unwrap()));
        let came = reader.next().await.unwrap();
        assert!(came == Some(Incoming::Message(vec![content.into()])));
        let next = reader.next().await.unwrap();
        assert!(next == Some(Incoming::Message(vec![Bytes::from_static(b"n")])));
    }

    #[tokio::test]
    async fn what_is_printed_may_be_larger_than_what_is_displayed_before_it_goes_to_disk() {
        let is_on_disk = async |kind: &str, length: usize| {
            let header = format!(r#"{{"msg_id": "1", "msg_type": "{kind}"}}"#);
            let frames = [DELIMITER, b"signature", header.as_bytes(), b"{}", b"{}"];
            let mut frames: Vec<Bytes> = frames.into_iter().map(Bytes::copy_from_slice).collect();
            frames.push(vec![b'x'; length].into());
            let mut bytes = Vec::new();
            super::super::Writer::new(&mut bytes)
                .send(&frames)
                .await
                .unwrap();
            let reader = Reader::new(&bytes[..], Limits::default());
            let mut reader = reader.storing(1000).storing_text(2000);
            matches!(reader.next().await, Ok(Some(Incoming::Large(_))))
        };
        assert!(!is_on_disk("display_data", 999).await);
        assert!(is_on_disk("display_data", 1000).await);
        assert!(!is_on_disk("stream", 1999).await);
        assert!(is_on_disk("stream", 2000).await);
    }
}
