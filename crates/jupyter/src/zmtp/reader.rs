//! [`Reader`]: reads messages and commands from a connection.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::ZmtpError;
use super::flag;
use super::stream::ReadHalf;
use crate::frame_store::{FrameStore, FrameWriter, InMemory};

/// Bytes to read at once when the length of the next frame is unknown.
const READ_SIZE: usize = 64 * 1024;

/// The buffer grows when it has less room than this.
const READ_SIZE_MIN: usize = 4 * 1024;

/// A frame from this size on gets its own memory.
const LARGE_FRAME_SIZE: usize = 32 * 1024;

/// Memory that is allocated for a frame before any of it has arrived; it grows as bytes arrive. Untouched memory
/// costs nothing, and the usual messages of a kernel fit into this.
const INITIAL_CAPACITY_LIMIT: usize = 8 << 20;

/// Total size of the frames that are retained for their memory. It is more than a client's backlog holds, so
/// in a flood there is nearly always one that is free.
const RETAINED_BYTES_LIMIT: usize = 32 << 20;

/// Number of the frames that are retained for their memory.
const RETAINED_FRAMES_LIMIT: usize = 8;

/// Bytes of a frame that are passed to the [`FrameStore`] at once: few enough to stay in the processor's cache.
const STORE_CHUNK_SIZE: usize = 512 * 1024;

/// Limits on a message. A reader never accepts more, whatever the peer announces.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in all frames together.
    pub message_bytes: u64,
    /// Number of frames.
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

/// A message or a command from the peer. `F` is a frame, as the reader's [`FrameStore`] returns it.
#[derive(Debug, PartialEq, Eq)]
pub enum ReceivedItem<F = Bytes> {
    /// The frames of a message.
    Message(Vec<F>),
    /// A command of the protocol: its name and its data.
    Command(Bytes, Bytes),
}

/// Reads messages and commands from a connection. `S` decides which frames stay in memory.
#[derive(Debug)]
pub struct Reader<R = ReadHalf, S: FrameStore = InMemory> {
    half: R,
    limits: Limits,
    store: S,
    /// Bytes that were read and not parsed yet.
    buffer: BytesMut,
    /// The frames so far of the current message.
    frames: Vec<S::Frame>,
    /// Their total size in bytes.
    frames_bytes: u64,
    /// A large frame of which only a part has arrived.
    partial: Option<PartialFrame<S::Writer>>,
    /// The latest large frames. If the receiver has dropped one when the next arrives, its memory is reused: to touch
    /// new memory costs more than to read into it.
    retained: VecDeque<Bytes>,
    /// Whether the current message has a large frame in memory.
    is_large: bool,
}

/// A large frame of which only a part has arrived.
#[derive(Debug)]
enum PartialFrame<W> {
    InMemory(MemoryFrame),
    InStore(StoreFrame<W>),
}

/// A frame that is received into its own memory.
#[derive(Debug)]
struct MemoryFrame {
    flags: u8,
    length: usize,
    bytes: BytesMut,
}

/// A frame that is received into the [`FrameStore`].
#[derive(Debug)]
struct StoreFrame<W> {
    flags: u8,
    length: usize,
    writer: W,
    /// Bytes that the writer has.
    pushed: usize,
    /// Bytes that were read after those.
    buffer: Vec<u8>,
}

impl<W> StoreFrame<W> {
    /// Bytes that have not been read yet.
    fn unread(&self) -> usize {
        self.length - self.pushed - self.buffer.len()
    }
}

/// A frame, all of which has arrived.
enum WholeFrame<F> {
    /// A command, which is always in memory.
    Command(Bytes),
    /// A part of a message.
    Part {
        frame: F,
        /// Its length in bytes.
        length: usize,
        /// Whether it completes its message.
        is_last: bool,
    },
}

impl<F: From<Bytes>> WholeFrame<F> {
    fn in_memory(flags: u8, bytes: Bytes) -> Self {
        if flags & flag::COMMAND != 0 {
            return Self::Command(bytes);
        }
        let length = bytes.len();
        Self::part(flags, length, bytes.into())
    }

    fn part(flags: u8, length: usize, frame: F) -> Self {
        let is_last = flags & flag::MORE == 0;
        Self::Part {
            frame,
            length,
            is_last,
        }
    }
}

/// The first bytes of a frame.
struct FrameHeader {
    flags: u8,
    /// Size of the header itself in bytes.
    size: usize,
    /// Announced length of the frame in bytes.
    length: u64,
}

impl FrameHeader {
    /// Parses the header at the beginning of the buffer. Returns `None` if more bytes are needed.
    fn parse(buffer: &[u8]) -> Result<Option<Self>, ZmtpError> {
        let Some(&flags) = buffer.first() else {
            return Ok(None);
        };
        if flags & !(flag::MORE | flag::LONG | flag::COMMAND) != 0 {
            let violation = "unknown flags";
            return Err(ZmtpError::Malformed { violation });
        }
        if flags & flag::COMMAND != 0 && flags & flag::MORE != 0 {
            let violation = "a command with the MORE flag";
            return Err(ZmtpError::Malformed { violation });
        }
        let (size, length) = if flags & flag::LONG == 0 {
            (2, buffer.get(1).map(|&length| u64::from(length)))
        } else {
            let length = buffer.get(1..9).and_then(|bytes| bytes.try_into().ok());
            (9, length.map(u64::from_be_bytes))
        };
        Ok(length.map(|length| Self {
            flags,
            size,
            length,
        }))
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// A reader of a connection's bytes after the handshake. It keeps all frames in memory.
    pub fn new(half: R, limits: Limits) -> Self {
        Self {
            half,
            limits,
            store: InMemory,
            buffer: BytesMut::new(),
            frames: Vec::new(),
            frames_bytes: 0,
            partial: None,
            retained: VecDeque::new(),
            is_large: false,
        }
    }

    /// Replaces the limits from the next frame on.
    pub(super) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Replaces the store from the next frame on.
    pub fn with_store<S: FrameStore>(self, store: S) -> Reader<R, S> {
        Reader {
            half: self.half,
            limits: self.limits,
            store,
            buffer: self.buffer,
            frames: self.frames.into_iter().map(S::Frame::from).collect(),
            frames_bytes: self.frames_bytes,
            partial: self.partial.map(|partial| match partial {
                PartialFrame::InMemory(frame) => PartialFrame::InMemory(frame),
                PartialFrame::InStore(frame) => match frame.writer {},
            }),
            retained: self.retained,
            is_large: self.is_large,
        }
    }
}

impl<R: AsyncRead + Unpin, S: FrameStore> Reader<R, S> {
    /// Returns the next message or command; `None` when the peer has closed the connection between two messages.
    /// Cancel-safe: bytes that were read stay in the reader.
    pub async fn next(&mut self) -> Result<Option<ReceivedItem<S::Frame>>, ZmtpError> {
        loop {
            match self.next_frame()? {
                Some(WholeFrame::Command(bytes)) => return parse_command(bytes).map(Some),
                Some(WholeFrame::Part {
                    frame,
                    length,
                    is_last,
                }) => {
                    self.add_frame(frame, length)?;
                    if is_last {
                        return Ok(Some(ReceivedItem::Message(self.finish_message())));
                    }
                }
                None => {
                    if !self.read().await? {
                        let is_between_frames = self.buffer.is_empty() && self.partial.is_none();
                        if is_between_frames && self.frames.is_empty() {
                            return Ok(None);
                        }
                        return Err(ZmtpError::Io(std::io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }

    /// Reads some bytes. Returns false at the end of the connection.
    async fn read(&mut self) -> Result<bool, ZmtpError> {
        let read = match &mut self.partial {
            Some(PartialFrame::InStore(frame)) => {
                let mut limited = (&mut self.half).take(frame.unread() as u64);
                let read = limited.read_buf(&mut frame.buffer).await?;
                if frame.buffer.len() == frame.buffer.capacity() || frame.unread() == 0 {
                    self.push_to_store()?;
                }
                read
            }
            Some(PartialFrame::InMemory(frame)) => {
                let missing = frame.length - frame.bytes.len();
                if frame.bytes.capacity() == frame.bytes.len() {
                    // Memory follows the bytes that have arrived, not the announced length.
                    frame.bytes.reserve(missing.min(frame.bytes.len()));
                }
                let mut limited = (&mut self.half).take(missing as u64);
                limited.read_buf(&mut frame.bytes).await?
            }
            None => {
                // Small frames are slices of this buffer and keep it alive: the rest of it is used before more is
                // allocated.
                if self.buffer.capacity() - self.buffer.len() < READ_SIZE_MIN {
                    self.buffer.reserve(READ_SIZE);
                }
                self.half.read_buf(&mut self.buffer).await?
            }
        };
        Ok(read > 0)
    }

    /// Passes the buffered bytes of the partial frame to the store. If the store fails, the frame continues in memory.
    fn push_to_store(&mut self) -> Result<(), ZmtpError> {
        let Some(PartialFrame::InStore(frame)) = &mut self.partial else {
            return Ok(());
        };
        if frame.writer.push(&frame.buffer).is_ok() {
            frame.pushed += frame.buffer.len();
            frame.buffer.clear();
            return Ok(());
        }
        let mut bytes = BytesMut::from(&frame.writer.read_back()?[..]);
        bytes.extend_from_slice(&frame.buffer);
        self.partial = Some(PartialFrame::InMemory(MemoryFrame {
            flags: frame.flags,
            length: frame.length,
            bytes,
        }));
        Ok(())
    }

    /// Returns the next frame; `None` if more bytes are needed.
    fn next_frame(&mut self) -> Result<Option<WholeFrame<S::Frame>>, ZmtpError> {
        if self.partial.is_some() {
            return Ok(self.finish_partial());
        }
        let Some(header) = FrameHeader::parse(&self.buffer)? else {
            return Ok(None);
        };
        let limit = self.limits.message_bytes;
        let length = self
            .frames_bytes
            .checked_add(header.length)
            .filter(|bytes| *bytes <= limit)
            .and_then(|_| usize::try_from(header.length).ok())
            .ok_or(ZmtpError::TooLarge { limit })?;
        let flags = header.flags;
        if flags & flag::COMMAND == 0
            && let Some(writer) = self.store.open(&self.frames, length)
        {
            self.buffer.advance(header.size);
            self.begin_in_store(flags, length, writer)?;
            return Ok(self.finish_partial());
        }
        if length >= LARGE_FRAME_SIZE {
            self.buffer.advance(header.size);
            self.begin_in_memory(flags, length);
            return Ok(self.finish_partial());
        }
        if self.buffer.len() < header.size + length {
            return Ok(None);
        }
        self.buffer.advance(header.size);
        let bytes = self.buffer.split_to(length).freeze();
        Ok(Some(WholeFrame::in_memory(flags, bytes)))
    }

    /// Moves the bytes of a frame that have arrived into the store.
    fn begin_in_store(
        &mut self,
        flags: u8,
        length: usize,
        writer: S::Writer,
    ) -> Result<(), ZmtpError> {
        let arrived = length.min(self.buffer.len());
        let mut buffer = Vec::with_capacity(STORE_CHUNK_SIZE.max(arrived + READ_SIZE_MIN));
        buffer.extend_from_slice(&self.buffer.split_to(arrived));
        self.partial = Some(PartialFrame::InStore(StoreFrame {
            flags,
            length,
            writer,
            pushed: 0,
            buffer,
        }));
        if arrived == length {
            self.push_to_store()?;
        }
        Ok(())
    }

    /// Moves the bytes of a large frame that have arrived into its own memory.
    fn begin_in_memory(&mut self, flags: u8, length: usize) {
        let mut bytes = self.allocate(length);
        let arrived = length.min(self.buffer.len());
        bytes.extend_from_slice(&self.buffer.split_to(arrived));
        self.partial = Some(PartialFrame::InMemory(MemoryFrame {
            flags,
            length,
            bytes,
        }));
    }

    /// Returns the partial frame if all of it has arrived.
    fn finish_partial(&mut self) -> Option<WholeFrame<S::Frame>> {
        match self.partial.take()? {
            PartialFrame::InStore(frame) if frame.pushed == frame.length => {
                let whole = frame.writer.finish();
                Some(WholeFrame::part(frame.flags, frame.length, whole))
            }
            PartialFrame::InMemory(frame) if frame.bytes.len() == frame.length => {
                let bytes = frame.bytes.freeze();
                self.is_large = true;
                self.retain(&bytes);
                Some(WholeFrame::in_memory(frame.flags, bytes))
            }
            unfinished => {
                self.partial = Some(unfinished);
                None
            }
        }
    }

    /// Returns memory for a large frame, that of an earlier frame if possible.
    fn allocate(&mut self, length: usize) -> BytesMut {
        for _ in 0..self.retained.len() {
            match self.retained.pop_front().map(Bytes::try_into_mut) {
                // A buffer much larger than the frame would be wasted on it.
                Some(Ok(mut unused)) if unused.capacity() / 2 <= length => {
                    unused.clear();
                    return unused;
                }
                Some(Err(in_use)) => self.retained.push_back(in_use),
                _ => {}
            }
        }
        BytesMut::with_capacity(length.min(INITIAL_CAPACITY_LIMIT))
    }

    /// Retains a large frame for its memory.
    fn retain(&mut self, frame: &Bytes) {
        self.retained.push_back(frame.clone());
        let total = |retained: &VecDeque<Bytes>| retained.iter().map(Bytes::len).sum::<usize>();
        while self.retained.len() > RETAINED_FRAMES_LIMIT
            || total(&self.retained) > RETAINED_BYTES_LIMIT
        {
            self.retained.pop_front();
        }
    }

    /// Adds a frame of `length` bytes to the current message.
    fn add_frame(&mut self, frame: S::Frame, length: usize) -> Result<(), ZmtpError> {
        if self.frames.len() >= self.limits.frames {
            let limit = self.limits.frames;
            return Err(ZmtpError::TooManyFrames { limit });
        }
        self.frames_bytes += length as u64;
        self.frames.push(frame);
        Ok(())
    }

    /// Returns the frames of the current message, which is complete.
    fn finish_message(&mut self) -> Vec<S::Frame> {
        self.frames_bytes = 0;
        if !std::mem::take(&mut self.is_large) {
            // The flood is over.
            self.retained.clear();
        }
        std::mem::take(&mut self.frames)
    }
}

/// Splits a command into its name and its data.
fn parse_command<F>(mut bytes: Bytes) -> Result<ReceivedItem<F>, ZmtpError> {
    let length = bytes.first().map(|length| usize::from(*length));
    match length {
        Some(length) if length > 0 && bytes.len() > length => {
            bytes.advance(1);
            let name = bytes.split_to(length);
            Ok(ReceivedItem::Command(name, bytes))
        }
        _ => {
            let violation = "a command without a name";
            Err(ZmtpError::Malformed { violation })
        }
    }
}
