//! [`Scratch`]: an unnamed file for values that are too large for memory. The space of dropped values is
//! reused.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use cellwright_stdext::{LockExt, SpoolFile};

use crate::files;
use crate::stored_value::{Encoding, StoredValue};

/// A file for values that are too large for memory. Clones share it. It is created on first use.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    file: Arc<ScratchFile>,
}

#[derive(Debug, Default)]
struct ScratchFile {
    dir: Option<PathBuf>,
    space: Mutex<FreeSpace>,
}

/// The open file and its unused ranges.
#[derive(Debug, Default)]
struct FreeSpace {
    file: Option<SpoolFile>,
    /// Unused ranges before the end of the file, in order. No two of them are adjacent.
    free: Vec<Range<u64>>,
}

impl Scratch {
    /// Creates the file in a directory, or in the system's temporary directory.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self {
            file: Arc::new(ScratchFile {
                dir,
                space: Mutex::default(),
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_file(file: File) -> Self {
        let scratch = Self::default();
        scratch.file.lock().file = Some(file.into());
        scratch
    }

    /// Reserves space for a value of `length` bytes.
    pub fn reserve(&self, length: u64) -> io::Result<ScratchWriter> {
        let mut space = self.file.lock();
        let FreeSpace { file, free } = &mut *space;
        let file = match file {
            Some(file) => file,
            None => file.insert(self.create()?),
        };
        let reserved = ScratchRange {
            scratch: Arc::clone(&self.file),
            file: file.handle(),
            range: take_free_range(free, length).unwrap_or_else(|| file.reserve(length)),
        };
        Ok(ScratchWriter {
            reserved,
            written: 0,
        })
    }

    /// Stores bytes.
    pub fn store(&self, encoding: Encoding, bytes: &[u8]) -> io::Result<StoredValue> {
        let mut writer = self.reserve(bytes.len() as u64)?;
        writer.write_all(bytes)?;
        Ok(writer.finish(encoding))
    }

    /// Stores a copy of a value from another file.
    pub fn copy(&self, stored: &StoredValue) -> io::Result<StoredValue> {
        let mut writer = self.reserve(stored.size())?;
        stored.read(|bytes| writer.write_all(bytes))?;
        Ok(writer.finish(stored.encoding()))
    }

    fn create(&self) -> io::Result<SpoolFile> {
        if let Some(dir) = &self.file.dir {
            let created = files::create_private_dir(dir).and_then(|()| SpoolFile::create_in(dir));
            if let Ok(file) = created {
                return Ok(file);
            }
        }
        SpoolFile::create()
    }
}

impl ScratchFile {
    fn lock(&self) -> MutexGuard<'_, FreeSpace> {
        self.space.lock_ignoring_poison()
    }
}

/// Takes `length` bytes of the first free range that is large enough.
fn take_free_range(free: &mut Vec<Range<u64>>, length: u64) -> Option<Range<u64>> {
    let fits = |range: &Range<u64>| range.end - range.start >= length;
    let at = free.iter().position(fits)?;
    let range = free[at].start..free[at].start + length;
    free[at].start = range.end;
    if free[at].is_empty() {
        free.remove(at);
    }
    Some(range)
}

impl FreeSpace {
    fn release(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let at = self.free.partition_point(|free| free.start < range.start);
        self.free.insert(at, range);
        if at + 1 < self.free.len() && self.free[at].end == self.free[at + 1].start {
            self.free[at].end = self.free.remove(at + 1).end;
        }
        if at > 0 && self.free[at - 1].end == self.free[at].start {
            self.free[at - 1].end = self.free.remove(at).end;
        }
        if let (Some(last), Some(file)) = (self.free.last(), &mut self.file)
            && last.end == file.end()
        {
            // Only frees disk space; a failure does no harm.
            file.truncate(last.start).ok();
            self.free.pop();
        }
    }
}

/// A used range of the file. Dropping it frees the range.
#[derive(Debug)]
struct ScratchRange {
    scratch: Arc<ScratchFile>,
    file: Arc<File>,
    range: Range<u64>,
}

impl Drop for ScratchRange {
    fn drop(&mut self) {
        let range = self.range.clone();
        self.scratch.lock().release(range);
    }
}

/// Writes a value into its reserved range.
#[derive(Debug)]
pub struct ScratchWriter {
    reserved: ScratchRange,
    written: u64,
}

impl ScratchWriter {
    /// Returns the number of bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Reads the written bytes back, for callers that cannot write the rest.
    pub fn read_back(&self) -> io::Result<Vec<u8>> {
        let ScratchRange { file, range, .. } = &self.reserved;
        let range = range.start..range.start + self.written;
        StoredValue::new(Arc::clone(file), range, Encoding::Bytes).head(usize::MAX)
    }

    /// Returns the number of reserved bytes not written yet.
    pub fn remaining(&self) -> u64 {
        self.reserved.range.end - self.reserved.range.start - self.written
    }

    /// Returns the written value.
    pub fn finish(self, encoding: Encoding) -> StoredValue {
        let ScratchRange { file, range, .. } = &self.reserved;
        let range = range.start..range.start + self.written;
        StoredValue::new(Arc::clone(file), range, encoding).with_owner(self.reserved)
    }
}

impl Write for ScratchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size =
            usize::try_from(self.remaining()).map_or(bytes.len(), |left| left.min(bytes.len()));
        let at = self.reserved.range.start + self.written;
        let count = files::write_at(&self.reserved.file, &bytes[..size], at)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end(scratch: &Scratch) -> u64 {
        scratch.file.lock().file.as_ref().map_or(0, SpoolFile::end)
    }

    fn content(stored: &StoredValue) -> Vec<u8> {
        stored.head(usize::MAX).unwrap()
    }

    #[test]
    fn dropped_values_free_their_range() {
        let scratch = Scratch::default();
        let kept = scratch.store(Encoding::Text, b"kept").unwrap();
        for number in 0..1000_u32 {
            let text = number.to_string().repeat(100);
            let stored = scratch.store(Encoding::Text, text.as_bytes()).unwrap();
            assert_eq!(content(&stored), text.as_bytes());
        }
        assert_eq!(content(&kept), b"kept");
        assert_eq!(end(&scratch), 4);
        drop(kept);
        assert_eq!(end(&scratch), 0);
    }

    #[test]
    fn writer_stays_within_its_range() {
        let scratch = Scratch::default();
        let mut writer = scratch.reserve(3).unwrap();
        let neighbour = scratch.store(Encoding::Text, b"neighbour").unwrap();
        assert!(writer.write_all(b"four").is_err());
        assert_eq!(content(&neighbour), b"neighbour");
    }

    proptest! {
        #[test]
        fn values_never_overlap(steps in prop::collection::vec((0..400_usize, 0..8_usize), 1..80)) {
            let scratch = Scratch::default();
            let mut values: Vec<Option<(StoredValue, Vec<u8>)>> = vec![None; 8];
            for (at, (length, slot)) in steps.into_iter().enumerate() {
                let bytes = vec![u8::try_from(at % 251).unwrap(); length];
                values[slot] = None;
                let stored = scratch.store(Encoding::Bytes, &bytes).unwrap();
                values[slot] = Some((stored, bytes));
                for (stored, bytes) in values.iter().flatten() {
                    prop_assert_eq!(&content(stored), bytes);
                }
            }
            drop(values);
            prop_assert_eq!(end(&scratch), 0);
        }
    }
}
