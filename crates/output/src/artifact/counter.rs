//! The counter file, which holds the last artifact number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ArtifactError, Artifacts};
use crate::files;

/// The counter file, locked while open.
pub(super) struct Counter {
    path: PathBuf,
    file: File,
}

impl Counter {
    pub(super) fn lock(dir: &Path) -> Result<Self, ArtifactError> {
        const TRIES_MAX: u32 = 100;
        const RETRY_DELAY: Duration = Duration::from_millis(2);
        let path = dir.join(".last");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = files::open_private(&mut options, &path).map_err(ArtifactError::io(&path))?;
        // Other processes hold the lock for microseconds. A process that holds it longer is stopped or hung,
        // and an execution must not wait for it.
        for _ in 0..TRIES_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path, file }),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(RETRY_DELAY),
                Err(fs::TryLockError::Error(error)) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        Err(ArtifactError::Busy {
            dir: dir.to_owned(),
        })
    }

    /// Returns the next number: one more than the file's, or than the highest in the directory if the file is
    /// unreadable.
    pub(super) fn next(&self, artifacts: &Artifacts) -> Result<u64, ArtifactError> {
        let mut text = String::new();
        (&self.file)
            .read_to_string(&mut text)
            .map_err(ArtifactError::io(&self.path))?;
        if let Ok(last) = text.trim().parse::<u64>() {
            return Ok(last.saturating_add(1));
        }
        let last = artifacts.list_all()?.last().map_or(0, |entry| entry.id.0);
        Ok(last.saturating_add(1))
    }

    pub(super) fn advance_to(&self, number: u64) -> Result<(), ArtifactError> {
        let text = number.to_string();
        let mut file = &self.file;
        // Writes before truncating: after a crash, an empty file would allow old numbers to be reused.
        file.seek(io::SeekFrom::Start(0))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(ArtifactError::io(&self.path))
    }
}
