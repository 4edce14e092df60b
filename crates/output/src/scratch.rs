//! [`Scratch`]: where values wait that are too large for memory: one file without a name. What nobody
//! needs any more makes room for others.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::artifact::place;
use crate::stored::{Form, Stored};

/// A file for values that are too large for memory. Clones share it; it is made when it is needed.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    folder: Option<PathBuf>,
    space: Mutex<Space>,
}

#[derive(Debug, Default)]
struct Space {
    file: Option<Arc<File>>,
    /// Behind this there is nothing.
    end: u64,
    /// What is not in use before it, in order; no two of them touch.
    free: Vec<Range<u64>>,
}

impl Scratch {
    /// In a folder, or where the system has temporary files.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            inner: Arc::new(Inner {
                folder,
                space: Mutex::default(),
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(file: File) -> Self {
        let scratch = Self::default();
        scratch.inner.lock().file = Some(Arc::new(file));
        scratch
    }

    /// Room for a value of so many bytes.
    pub fn reserve(&self, length: u64) -> io::Result<Room> {
        let mut space = self.inner.lock();
        let file = match &space.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(space.file.insert(Arc::new(self.create()?))),
        };
        let lease = Lease {
            inner: Arc::clone(&self.inner),
            file,
            range: space.take(length),
        };
        Ok(Room { lease, written: 0 })
    }

    /// Keeps bytes.
    pub fn store(&self, form: Form, bytes: &[u8]) -> io::Result<Stored> {
        let mut room = self.reserve(bytes.len() as u64)?;
        room.write_all(bytes)?;
        Ok(room.finish(form))
    }

    /// Keeps what is stored elsewhere.
    pub fn copy(&self, stored: &Stored) -> io::Result<Stored> {
        let mut room = self.reserve(stored.size())?;
        stored.read(|bytes| room.write_all(bytes))?;
        Ok(room.finish(stored.form()))
    }

    fn create(&self) -> io::Result<File> {
        if let Some(folder) = &self.inner.folder {
            let made = place::create_folder(folder).and_then(|()| tempfile::tempfile_in(folder));
            if let Ok(file) = made {
                return Ok(file);
            }
        }
        tempfile::tempfile()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Space {
    /// The first room that is large enough, or more at the end.
    fn take(&mut self, length: u64) -> Range<u64> {
        let fits = |free: &Range<u64>| free.end - free.start >= length;
        if let Some(at) = self.free.iter().position(fits) {
            let free = &mut self.free[at];
            let taken = free.start..free.start + length;
            free.start = taken.end;
            if free.is_empty() {
                self.free.remove(at);
            }
            return taken;
        }
        let taken = self.end..self.end + length;
        self.end = taken.end;
        taken
    }

    fn give_back(&mut self, range: Range<u64>) {
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
        if let Some(last) = self.free.last()
            && last.end == self.end
        {
            self.end = last.start;
            self.free.pop();
            if let Some(file) = &self.file {
                // It is only about room on the disk.
                file.set_len(self.end).ok();
            }
        }
    }
}

/// A part of the file that is in use.
#[derive(Debug)]
struct Lease {
    inner: Arc<Inner>,
    file: Arc<File>,
    range: Range<u64>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let range = self.range.clone();
        self.inner.lock().give_back(range);
    }
}

/// Room for a value that is being written.
#[derive(Debug)]
pub struct Room {
    lease: Lease,
    written: u64,
}

impl Room {
    /// How many bytes were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What was written: for whoever cannot write the rest.
    pub fn reread(&self) -> io::Result<Vec<u8>> {
        let Lease { file, range, .. } = &self.lease;
        let range = range.start..range.start + self.written;
        Stored::new(Arc::clone(file), range, Form::Bytes).head(usize::MAX)
    }

    /// How many bytes are missing.
    pub fn left(&self) -> u64 {
        self.lease.range.end - self.lease.range.start - self.written
    }

    /// What was written.
    pub fn finish(self, form: Form) -> Stored {
        let Lease { file, range, .. } = &self.lease;
        let range = range.start..range.start + self.written;
        Stored::new(Arc::clone(file), range, form).owned_by(self.lease)
    }
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left()).map_or(bytes.len(), |left| left.min(bytes.len()));
        let at = self.lease.range.start + self.written;
        let count = place::write_at(&self.lease.file, &bytes[..most], at)?;
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

    fn content(stored: &Stored) -> Vec<u8> {
        stored.head(usize::MAX).unwrap()
    }

    #[test]
    fn what_nobody_needs_makes_room() {
        let scratch = Scratch::default();
        let kept = scratch.store(Form::Text, b"kept").unwrap();
        for number in 0..1000_u32 {
            let text = number.to_string().repeat(100);
            let stored = scratch.store(Form::Text, text.as_bytes()).unwrap();
            assert_eq!(content(&stored), text.as_bytes());
        }
        assert_eq!(content(&kept), b"kept");
        assert_eq!(scratch.inner.lock().end, 4);
        drop(kept);
        assert_eq!(scratch.inner.lock().end, 0);
    }

    #[test]
    fn no_more_is_written_than_there_is_room() {
        let scratch = Scratch::default();
        let mut room = scratch.reserve(3).unwrap();
        let beside = scratch.store(Form::Text, b"beside").unwrap();
        assert!(room.write_all(b"four").is_err());
        assert_eq!(content(&beside), b"beside");
    }

    proptest! {
        #[test]
        fn values_never_touch_each_other(steps in prop::collection::vec((0..400_usize, 0..8_usize), 1..80)) {
            let scratch = Scratch::default();
            let mut values: Vec<Option<(Stored, Vec<u8>)>> = vec![None; 8];
            for (at, (length, slot)) in steps.into_iter().enumerate() {
                let bytes = vec![u8::try_from(at % 251).unwrap(); length];
                values[slot] = None;
                let stored = scratch.store(Form::Bytes, &bytes).unwrap();
                values[slot] = Some((stored, bytes));
                for (stored, bytes) in values.iter().flatten() {
                    prop_assert_eq!(&content(stored), bytes);
                }
            }
            drop(values);
            prop_assert_eq!(scratch.inner.lock().end, 0);
        }
    }
}
