//! [`Frame`]: a part of a message, in memory or on disk.

mod escape_free_range;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use cellwright_stdext::{SpoolFile, read_chunks, read_range};

use crate::signing::Signature;
use escape_free_range::EscapeFreeRangeFinder;

/// Bytes to read from disk at once.
const READ_SIZE: usize = 64 * 1024;

/// A part of a message.
#[derive(Clone, Debug)]
pub enum Frame {
    /// In memory.
    InMemory(Bytes),
    /// On disk, because it is large.
    OnDisk(StoredFrame),
}

impl Frame {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::InMemory(bytes) => bytes.len() as u64,
            Self::OnDisk(stored) => stored.size(),
        }
    }

    /// Bytes that the frame occupies in memory.
    pub(crate) fn memory_size(&self) -> usize {
        match self {
            Self::InMemory(bytes) => bytes.len(),
            Self::OnDisk(_) => 0,
        }
    }

    /// Returns the bytes. A frame on disk is read.
    pub fn bytes(&self) -> io::Result<Bytes> {
        match self {
            Self::InMemory(bytes) => Ok(bytes.clone()),
            Self::OnDisk(stored) => stored.bytes(),
        }
    }

    /// Passes the bytes to `visit`: at once if they are in memory, otherwise in pieces.
    pub(crate) fn read(&self, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        match self {
            Self::InMemory(bytes) => {
                visit(bytes);
                Ok(())
            }
            Self::OnDisk(stored) => stored.read(|piece| {
                visit(piece);
                Ok(())
            }),
        }
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self::InMemory(Bytes::new())
    }
}

impl<B: Into<Bytes>> From<B> for Frame {
    fn from(bytes: B) -> Self {
        Self::InMemory(bytes.into())
    }
}

/// Compares the bytes. A frame on disk is read.
impl PartialEq<[u8]> for Frame {
    fn eq(&self, other: &[u8]) -> bool {
        match self {
            Self::InMemory(bytes) => bytes == other,
            Self::OnDisk(stored) => {
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
            (one, Self::InMemory(bytes)) | (Self::InMemory(bytes), one) => *one == bytes[..],
            (one, Self::OnDisk(stored)) => stored.bytes().is_ok_and(|bytes| *one == bytes[..]),
        }
    }
}

impl Eq for Frame {}

/// A frame in an unnamed file. Clones share the bytes; dropping the last clone frees them.
#[derive(Clone, Debug)]
pub struct StoredFrame {
    range: Arc<FileRange>,
}

impl StoredFrame {
    /// Writes bytes to disk.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut writer = FrameSpool::default().reserve(bytes.len() as u64)?;
        writer.push(bytes)?;
        Ok(writer.finish(None))
    }

    /// The signature that the message with this content must carry, if it was computed while the frame was received.
    pub(crate) fn computed_signature(&self) -> Option<Signature> {
        self.range.signature.clone()
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.range.length
    }

    /// The file, which other frames may share.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.range.file)
    }

    /// Offset of the first byte in the file.
    pub fn start(&self) -> u64 {
        self.range.start
    }

    /// The longest range of the frame without quotes and backslashes. In a text with many of those the search ends
    /// early, and a longer range may follow.
    pub fn longest_plain_run(&self) -> Range<u64> {
        self.range.longest_plain_run.clone()
    }

    /// Passes the bytes to `visit`, piece by piece.
    pub fn read(&self, visit: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.read_range(0..self.range.length, visit)
    }

    /// Passes a range of the bytes to `visit`, piece by piece.
    pub fn read_range(
        &self,
        range: Range<u64>,
        visit: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.range.start;
        let range = start + range.start..start + range.end;
        read_chunks(&self.range.file, range, READ_SIZE, visit)
    }

    /// Reads all bytes into memory.
    pub fn bytes(&self) -> io::Result<Bytes> {
        self.range.read(self.range.length).map(Bytes::from)
    }
}

/// The range of a file that one frame occupies.
#[derive(Debug)]
struct FileRange {
    file: Arc<File>,
    start: u64,
    length: u64,
    longest_plain_run: Range<u64>,
    signature: Option<Signature>,
}

impl FileRange {
    /// Reads the first `length` bytes.
    fn read(&self, length: u64) -> io::Result<Vec<u8>> {
        read_range(&self.file, self.start..self.start + length)
    }
}

impl Drop for FileRange {
    /// Frees the disk space. On systems that cannot free a range, the space is freed with the file.
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

/// The file for the large frames of one connection. It is created for the first of them.
#[derive(Debug, Default)]
pub(crate) struct FrameSpool {
    file: Option<SpoolFile>,
}

impl FrameSpool {
    #[cfg(test)]
    pub(crate) fn with_file(file: File) -> Self {
        Self {
            file: Some(file.into()),
        }
    }

    /// Reserves a range for a frame of `length` bytes.
    pub(crate) fn reserve(&mut self, length: u64) -> io::Result<SpoolWriter> {
        let file = match &mut self.file {
            Some(file) => {
                if !file.is_shared() && file.end() > 0 {
                    // All frames were dropped: start again at the beginning.
                    file.truncate(0)?;
                }
                file
            }
            None => self.file.insert(SpoolFile::create()?),
        };
        Ok(SpoolWriter {
            range: FileRange {
                file: file.handle(),
                start: file.reserve(length).start,
                length,
                longest_plain_run: 0..0,
                signature: None,
            },
            written: 0,
            plain_run: EscapeFreeRangeFinder::default(),
        })
    }
}

/// Writes one frame to its reserved range.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    range: FileRange,
    /// Bytes written so far.
    written: u64,
    plain_run: EscapeFreeRangeFinder,
}

impl SpoolWriter {
    /// Appends bytes. The caller must not write more than it reserved.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = self.range.start + self.written;
        self.range.file.write_all_at(bytes, at)?;
        self.written += bytes.len() as u64;
        self.plain_run.push(bytes);
        Ok(())
    }

    /// Reads the bytes written so far back into memory, for a frame that does not fit on the disk.
    pub(crate) fn read_back(&self) -> io::Result<Vec<u8>> {
        self.range.read(self.written)
    }

    /// Returns the frame. `signature` is that of its message, if it was computed.
    pub(crate) fn finish(mut self, signature: Option<Signature>) -> StoredFrame {
        self.range.signature = signature;
        self.range.longest_plain_run = self.plain_run.finish();
        StoredFrame {
            range: Arc::new(self.range),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn stored(spool: &mut FrameSpool, byte: u8, length: usize) -> StoredFrame {
        let mut writer = spool.reserve(length as u64).unwrap();
        writer.push(&vec![byte; length]).unwrap();
        writer.finish(None)
    }

    #[test]
    fn dropped_frames_free_their_disk_space() {
        let mut spool = FrameSpool::default();
        let mut previous = stored(&mut spool, 0, 1 << 20);
        for byte in 1..50 {
            let next = stored(&mut spool, byte, 1 << 20);
            assert_eq!(previous.bytes().unwrap(), vec![byte - 1; 1 << 20]);
            previous = next;
        }
        let file = previous.file();
        // Two frames at a time, and the overhead of the file system.
        assert!(file.metadata().unwrap().blocks() * 512 < 4 << 20);
        drop((previous, file));
        let first = stored(&mut spool, 7, 10);
        assert_eq!((first.start(), first.size()), (0, 10));
    }

    #[test]
    fn a_frame_in_memory_is_not_larger_than_its_bytes() {
        assert_eq!(size_of::<Frame>(), size_of::<Bytes>());
    }

    #[test]
    fn frames_on_disk_and_in_memory_compare_by_their_bytes() {
        let mut spool = FrameSpool::default();
        let on_disk = Frame::OnDisk(stored(&mut spool, 1, 100_000));
        let other = Frame::OnDisk(stored(&mut spool, 2, 100_000));
        let in_memory = Frame::from(vec![1; 100_000]);
        assert_eq!(on_disk, in_memory);
        assert_eq!(in_memory, on_disk);
        assert_eq!(on_disk, on_disk.clone());
        assert_ne!(on_disk, other);
        assert_ne!(other, in_memory);
        let mut read = Vec::new();
        on_disk.read(|piece| read.extend_from_slice(piece)).unwrap();
        assert!(in_memory == read[..]);
    }
}
