//! [`SpoolFile`]: an unnamed temporary file for data that exceeds its memory limit.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::private::temporary;

/// An unnamed temporary file that grows at its end. The system deletes it when the last handle is dropped, also if the
/// process is killed.
///
/// All reads and writes are positioned, so handles can be read by several threads.
#[derive(Debug)]
pub struct SpoolFile {
    file: Arc<File>,
    /// Offset after the last used byte. A failed write may have left bytes after it.
    end: u64,
}

impl SpoolFile {
    /// Creates a file in the system's temporary directory.
    pub fn create() -> io::Result<Self> {
        Ok(temporary::create_file()?.into())
    }

    /// Creates a file in a directory.
    pub fn create_in(dir: &Path) -> io::Result<Self> {
        temporary::create_file_in(dir).map(Self::from)
    }

    /// Returns the offset after the last used byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns a handle of the file, for readers that outlive the spool.
    pub fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns whether there are handles of the file besides this one.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.file) > 1
    }

    /// Appends bytes and returns their range. A failed call does not move the end.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<Range<u64>> {
        let mut writer = self.writer();
        writer.write_all(bytes)?;
        Ok(writer.finish())
    }

    /// Returns a writer for a range at the end. The range belongs to the file once it is finished.
    pub fn writer(&mut self) -> SpoolWriter<'_> {
        SpoolWriter {
            spool: self,
            written: 0,
        }
    }

    /// Reserves a range at the end, to be written through a [handle](Self::handle).
    pub fn reserve(&mut self, length: u64) -> Range<u64> {
        let start = self.end;
        self.end += length;
        start..self.end
    }

    /// Moves the end back to `end` and frees the disk space after it. An error means that the space is still in use.
    pub fn truncate(&mut self, end: u64) -> io::Result<()> {
        self.end = self.end.min(end);
        self.file.set_len(self.end)
    }

    /// Reads a range into memory.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read_range(&self.file, range)
    }
}

impl From<File> for SpoolFile {
    /// Starts at offset 0 of a file.
    fn from(file: File) -> Self {
        Self {
            file: Arc::new(file),
            end: 0,
        }
    }
}

/// Writes one range at the end of a [`SpoolFile`]. A dropped writer leaves the end of the file where it was.
#[derive(Debug)]
pub struct SpoolWriter<'s> {
    spool: &'s mut SpoolFile,
    written: u64,
}

impl SpoolWriter<'_> {
    /// Adds the written bytes to the file. Returns their range.
    pub fn finish(self) -> Range<u64> {
        self.spool.reserve(self.written)
    }

    /// Returns a handle of the file.
    pub fn handle(&self) -> Arc<File> {
        self.spool.handle()
    }
}

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.spool.end + self.written;
        let count = self.spool.file.write_at(bytes, at)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a range of a file into memory.
pub fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = range.end.saturating_sub(range.start);
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

/// Passes a range of a file to `visit`, in chunks of `chunk_size` bytes. Only the last one may be shorter.
pub fn read_chunks(
    file: &File,
    range: Range<u64>,
    chunk_size: usize,
    mut visit: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let limit = |left: u64| usize::try_from(left).map_or(chunk_size, |left| left.min(chunk_size));
    let mut at = range.start;
    let mut buffer = vec![0; limit(range.end.saturating_sub(at))];
    while at < range.end {
        let chunk = &mut buffer[..limit(range.end - at)];
        file.read_exact_at(chunk, at)?;
        visit(chunk)?;
        at += chunk.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn appended_bytes_are_read_back(items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40)) {
            let mut spool = SpoolFile::create().unwrap();
            let ranges: Vec<_> = items.iter().map(|item| spool.append(item).unwrap()).collect();
            prop_assert_eq!(spool.end(), items.iter().map(|item| item.len() as u64).sum::<u64>());
            for (item, range) in items.iter().zip(ranges) {
                prop_assert_eq!(&spool.read(range.clone()).unwrap(), item);
                let mut chunks = Vec::new();
                read_chunks(&spool.handle(), range, 7, |chunk| {
                    assert!(!chunk.is_empty() && chunk.len() <= 7);
                    chunks.extend_from_slice(chunk);
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(&chunks, item);
            }
        }
    }

    #[test]
    fn unfinished_bytes_are_overwritten() {
        let mut spool = SpoolFile::create().unwrap();
        spool.append(b"one").unwrap();
        spool.writer().write_all(b"dropped").unwrap();
        assert_eq!(spool.end(), 3);
        let mut writer = spool.writer();
        writer.write_all(b"t").unwrap();
        writer.write_all(b"wo").unwrap();
        assert_eq!(writer.finish(), 3..6);
        assert_eq!(spool.read(0..6).unwrap(), b"onetwo");
    }

    #[test]
    fn reserved_range_is_written_through_a_handle() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = SpoolFile::create_in(dir.path()).unwrap();
        let range = spool.reserve(5);
        assert_eq!(spool.append(b"after").unwrap(), 5..10);
        assert!(!spool.is_shared());
        let handle = spool.handle();
        assert!(spool.is_shared());
        handle.write_all_at(b"first", range.start).unwrap();
        assert_eq!(spool.read(0..10).unwrap(), b"firstafter");
        // No file of that directory has a name.
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn truncated_bytes_are_gone() {
        let mut spool = SpoolFile::create().unwrap();
        spool.append(b"0123456789").unwrap();
        spool.truncate(4).unwrap();
        assert_eq!(
            (spool.end(), spool.read(0..4).unwrap()),
            (4, b"0123".to_vec())
        );
        let error = spool.read(0..5).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let error = read_chunks(&spool.handle(), 0..5, 3, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
