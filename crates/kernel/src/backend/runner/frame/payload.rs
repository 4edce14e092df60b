//! [`Payload`]: raw bytes after the line of a frame, in memory or on disk.

use std::io::Write;

use cellwright_output::{Data, Encoding, Scratch, ScratchWriter};

/// Payloads of at least this size are written to disk while they arrive.
pub(super) const LARGE_PAYLOAD_SIZE: usize = 4 << 20;

/// Raw bytes after the line of a frame.
#[derive(Debug)]
pub(super) enum Payload {
    InMemory(Vec<u8>),
    Stored(ScratchWriter),
}

impl Payload {
    /// An empty payload that will have this size, on disk if possible.
    pub(super) fn with_capacity(size: usize, scratch: &Scratch) -> Self {
        match scratch.reserve(size as u64) {
            Ok(room) => Self::Stored(room),
            Err(_) => Self::InMemory(Vec::new()),
        }
    }

    /// Bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::InMemory(bytes) => bytes.len(),
            Self::Stored(room) => usize::try_from(room.written()).unwrap_or(usize::MAX),
        }
    }

    /// Appends bytes. If writing to disk fails, the payload moves to memory.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let before = self.len();
        if let Self::Stored(room) = self {
            let Err(failure) = room.write_all(bytes) else {
                return Ok(());
            };
            let mut held = room
                .read_back()
                .map_err(|error| format!("a display was lost: {failure}; {error}"))?;
            // A part of these bytes may have been written.
            held.truncate(before);
            *self = Self::InMemory(held);
        }
        if let Self::InMemory(held) = self {
            held.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// The payload as binary data.
    pub(super) fn into_binary(self) -> Data {
        match self {
            Self::InMemory(bytes) => Data::Bytes(bytes),
            Self::Stored(room) => Data::Stored(room.finish(Encoding::Bytes)),
        }
    }

    /// The payload as text.
    pub(super) fn into_text(self) -> Data {
        match self {
            Self::InMemory(bytes) => Data::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Self::Stored(room) => Data::Stored(room.finish(Encoding::Text)),
        }
    }
}
