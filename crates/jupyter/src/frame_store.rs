//! [`FrameStore`]: decides which frames of a message a transport keeps out of memory, and stores them.
//!
//! A transport knows the lengths and bytes of frames, but not which of them belong on disk. It calls a store for every
//! frame; the store knows the messages, and may also compute a signature while a frame arrives. All calls are dispatched
//! statically.

use std::convert::Infallible;
use std::fmt::Debug;
use std::io;

use bytes::Bytes;

/// Decides which frames of a message are stored outside of the transport's memory, and stores them.
pub trait FrameStore: Debug {
    /// A whole frame. A frame that the transport received into its own memory is converted from its bytes.
    type Frame: From<Bytes> + Debug;
    /// Receives the bytes of one frame.
    type Writer: FrameWriter<Frame = Self::Frame>;

    /// Opens a writer for the next frame of a message. `earlier` are the frames of the message so far, `length` is the
    /// announced length of the next one in bytes.
    ///
    /// Returns `None` if the transport must keep the frame in memory. Transports call this for every frame, so that
    /// answer must be cheap.
    fn open(&mut self, earlier: &[Self::Frame], length: usize) -> Option<Self::Writer>;
}

/// Receives the bytes of one frame.
pub trait FrameWriter: Debug {
    /// The finished frame.
    type Frame;

    /// Appends bytes. After an error the transport [reads back](Self::read_back) the bytes of all earlier calls and
    /// keeps the frame in memory.
    fn push(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns the bytes that were appended so far.
    fn read_back(&self) -> io::Result<Vec<u8>>;

    /// Returns the frame, all of whose bytes were appended.
    fn finish(self) -> Self::Frame;
}

/// A [`FrameStore`] that leaves every frame in the transport's memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct InMemory;

impl FrameStore for InMemory {
    type Frame = Bytes;
    type Writer = Infallible;

    fn open(&mut self, _: &[Bytes], _: usize) -> Option<Infallible> {
        None
    }
}

/// The writer of a store that stores nothing: it never exists.
impl FrameWriter for Infallible {
    type Frame = Bytes;

    fn push(&mut self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    fn read_back(&self) -> io::Result<Vec<u8>> {
        match *self {}
    }

    fn finish(self) -> Bytes {
        match self {}
    }
}
