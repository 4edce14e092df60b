//! [`Payload`]: raw bytes that belong to a frame, in memory or on disk.

use std::io::Write;

use cellwright_output::{Data, Form, Room, Scratch};

/// A payload from this size on goes to disk while it comes.
pub(super) const LARGE: usize = 4 << 20;

/// Raw bytes that belong to a frame.
#[derive(Debug)]
pub(super) enum Payload {
    Held(Vec<u8>),
    Stored(Room),
}

impl Payload {
    /// One that is to come, to disk if that is possible.
    pub(super) fn large(size: usize, scratch: &Scratch) -> Self {
        match scratch.reserve(size as u64) {
            Ok(room) => Self::Stored(room),
            Err(_) => Self::Held(Vec::new()),
        }
    }

    /// How much has come.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Held(bytes) => bytes.len(),
            Self::Stored(room) => usize::try_from(room.written()).unwrap_or(usize::MAX),
        }
    }

    /// Takes the next bytes. If the disk takes no more, memory has to.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let before = self.length();
        if let Self::Stored(room) = self {
            let Err(failure) = room.write_all(bytes) else {
                return Ok(());
            };
            let mut come = room
                .reread()
                .map_err(|error| format!("what was displayed is lost: {failure}, and {error}"))?;
            // A part of these bytes may have been written.
            come.truncate(before);
            *self = Self::Held(come);
        }
        if let Self::Held(held) = self {
            held.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// It is bytes.
    pub(super) fn bytes(self) -> Data {
        match self {
            Self::Held(bytes) => Data::Bytes(bytes),
            Self::Stored(room) => Data::Stored(room.finish(Form::Bytes)),
        }
    }

    /// It is text.
    pub(super) fn text(self) -> Data {
        match self {
            Self::Held(bytes) => Data::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Self::Stored(room) => Data::Stored(room.finish(Form::Text)),
        }
    }
}
