//! [`Frame`]: a part of a message, in memory or on disk.

mod stretch;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::seal::Seal;
use stretch::Search;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// A part of a message.
#[derive(Clone, Debug)]
pub enum Frame {
    /// In memory.
    Held(Bytes),
    /// On disk, because it is large.
    Stored(Stored),
}

impl Frame {
    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::Stored(stored) => stored.size(),
        }
    }

    /// How many of them are in memory.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Held(bytes) => bytes.len(),
            Self::Stored(_) => 0,
        }
    }

    /// The bytes, which are read if they are not in memory.
    pub fn bytes(&self) -> io::Result<Bytes> {
        match self {
            Self::Held(bytes) => Ok(bytes.clone()),
            Self::Stored(stored) => stored.bytes(),
        }
    }

    /// Hands on the bytes; in pieces if they are not in memory.
    pub(crate) fn read(&self, mut hear: impl FnMut(&[u8])) -> io::Result<()> {
        match self {
            Self::Held(bytes) => {
                hear(bytes);
                Ok(())
            }
            Self::Stored(stored) => stored.read(|piece| {
                hear(piece);
                Ok(())
            }),
        }
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self::Held(Bytes::new())
    }
}

impl<B: Into<Bytes>> From<B> for Frame {
    fn from(bytes: B) -> Self {
        Self::Held(bytes.into())
    }
}

/// Whether it has these bytes; they are read if they are not in memory.
impl PartialEq<[u8]> for Frame {
    fn eq(&self, other: &[u8]) -> bool {
        match self {
            Self::Held(bytes) => bytes == other,
            Self::Stored(stored) => {
                stored.size() == other.len() as u64
                    && stored.bytes().is_ok_and(|bytes| bytes == other)
            }
        }
    }
}

impl PartialEq<Bytes> for Frame {
    fn eq(&self, other: &Bytes) -> bool {
        *self == other[..]
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (one, Self::Held(bytes)) | (Self::Held(bytes), one) => *one == bytes[..],
            (one, Self::Stored(stored)) => stored.bytes().is_ok_and(|bytes| *one == bytes[..]),
        }
    }
}

impl Eq for Frame {}

/// Bytes on disk, in a file without a name. Clones share them; when the last one goes, so do they.
#[derive(Clone, Debug)]
pub struct Stored {
    place: Arc<Place>,
}

impl Stored {
    /// Puts bytes onto disk.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut room = Shelf::default().reserve(bytes.len() as u64)?;
        room.push(bytes)?;
        Ok(room.finish(None))
    }

    /// What the message should be signed with whose content it is, if that was found out while it came.
    pub(crate) fn seal(&self) -> Option<Seal> {
        self.place.seal.clone()
    }

    /// How many bytes there are.
    pub fn size(&self) -> u64 {
        self.place.length
    }

    /// The file, in which others may be as well.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.place.file)
    }

    /// Where in the file they begin.
    pub fn start(&self) -> u64 {
        self.place.start
    }

    /// Where in them the longest stretch is without quotes and backslashes. It is not looked for to the end if there
    /// are many of those.
    pub fn stretch(&self) -> Range<u64> {
        self.place.stretch.clone()
    }

    /// Hands on the bytes, piece by piece.
    pub fn read(&self, hear: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.read_part(0..self.place.length, hear)
    }

    /// Hands on some of the bytes, piece by piece.
    pub fn read_part(
        &self,
        part: Range<u64>,
        mut hear: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        let mut at = part.start;
        while at < part.end {
            let left = part.end - at;
            let most = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let piece = &mut buffer[..most];
            self.place
                .file
                .read_exact_at(piece, self.place.start + at)?;
            hear(piece)?;
            at += most as u64;
        }
        Ok(())
    }

    /// All bytes.
    pub fn bytes(&self) -> io::Result<Bytes> {
        let length = usize::try_from(self.place.length).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.place
            .file
            .read_exact_at(&mut bytes, self.place.start)?;
        Ok(Bytes::from(bytes))
    }
}

/// A part of a file.
#[derive(Debug)]
struct Place {
    file: Arc<File>,
    start: u64,
    length: u64,
    stretch: Range<u64>,
    seal: Option<Seal>,
}

impl Drop for Place {
    /// Gives the room on the disk back. Where that cannot be, it comes back with that of the others.
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{FallocateFlags, fallocate};
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if self.length > 0 {
                fallocate(&self.file, hole, self.start, self.length).ok();
            }
        }
    }
}

/// The file for the large frames of one connection, made when it is needed.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    file: Option<Arc<File>>,
    end: u64,
}

impl Shelf {
    #[cfg(test)]
    pub(crate) fn of(file: Arc<File>) -> Self {
        Self {
            file: Some(file),
            end: 0,
        }
    }

    /// Room for a frame.
    pub(crate) fn reserve(&mut self, length: u64) -> io::Result<Room> {
        let file = match &self.file {
            Some(file) => {
                if Arc::strong_count(file) == 1 && self.end > 0 {
                    // Nobody has any of them any more.
                    file.set_len(0)?;
                    self.end = 0;
                }
                file
            }
            None => self.file.insert(Arc::new(tempfile::tempfile()?)),
        };
        let start = self.end;
        self.end += length;
        Ok(Room {
            place: Place {
                file: Arc::clone(file),
                start,
                length,
                stretch: 0..0,
                seal: None,
            },
            written: 0,
            search: Search::default(),
        })
    }
}

/// Room for a frame that comes.
#[derive(Debug)]
pub(crate) struct Room {
    place: Place,
    written: u64,
    search: Search,
}

impl Room {
    /// How many bytes are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.place.length - self.written
    }

    /// Takes the next bytes, which must not be more than are missing.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = self.place.start + self.written;
        self.place.file.write_all_at(bytes, at)?;
        self.written += bytes.len() as u64;
        self.search.push(bytes);
        Ok(())
    }

    /// What has come so far, into memory: the disk takes no more.
    pub(crate) fn come(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.written).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.place
            .file
            .read_exact_at(&mut bytes, self.place.start)?;
        Ok(bytes)
    }

    /// Everything has come.
    pub(crate) fn finish(mut self, seal: Option<Seal>) -> Stored {
        self.place.seal = seal;
        self.place.stretch = self.search.finish();
        Stored {
            place: Arc::new(self.place),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn stored(shelf: &mut Shelf, byte: u8, length: usize) -> Stored {
        let mut room = shelf.reserve(length as u64).unwrap();
        room.push(&vec![byte; length]).unwrap();
        room.finish(None)
    }

    #[test]
    fn what_nobody_has_takes_no_room() {
        let mut shelf = Shelf::default();
        let mut before = stored(&mut shelf, 0, 1 << 20);
        for byte in 1..50 {
            let next = stored(&mut shelf, byte, 1 << 20);
            assert_eq!(before.bytes().unwrap(), vec![byte - 1; 1 << 20]);
            before = next;
        }
        let file = before.file();
        // Two at a time, and what the file system needs beside them.
        assert!(file.metadata().unwrap().blocks() * 512 < 4 << 20);
        drop((before, file));
        let first = stored(&mut shelf, 7, 10);
        assert_eq!((first.start(), first.size()), (0, 10));
    }

    #[test]
    fn that_it_may_be_on_disk_costs_a_frame_in_memory_nothing() {
        assert_eq!(size_of::<Frame>(), size_of::<Bytes>());
    }

    #[test]
    fn a_frame_is_the_same_wherever_it_is() {
        let mut shelf = Shelf::default();
        let on_disk = Frame::Stored(stored(&mut shelf, 1, 100_000));
        let other = Frame::Stored(stored(&mut shelf, 2, 100_000));
        let held = Frame::from(vec![1; 100_000]);
        assert_eq!(on_disk, held);
        assert_eq!(held, on_disk);
        assert_eq!(on_disk, on_disk.clone());
        assert_ne!(on_disk, other);
        assert_ne!(other, held);
        let mut read = Vec::new();
        on_disk.read(|piece| read.extend_from_slice(piece)).unwrap();
        assert!(held == read[..]);
    }
}
