//! The file that holds the last number given out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ArtifactError, Artifacts, place};

/// The file. It is locked while it is open.
pub(super) struct Counter {
    path: PathBuf,
    file: File,
}

impl Counter {
    pub(super) fn lock(dir: &Path) -> Result<Self, ArtifactError> {
        const TRIES: u32 = 100;
        const PAUSE: Duration = Duration::from_millis(2);
        let path = dir.join(".last");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = place::open_private(&mut options, &path).map_err(ArtifactError::io(&path))?;
        // Others hold it for microseconds. Whoever holds it for longer is stopped or hung, and a run
        // must not wait for that.
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path, file }),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(fs::TryLockError::Error(error)) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        Err(ArtifactError::Busy {
            dir: dir.to_owned(),
        })
    }

    /// The next number: after the one in the file, or after what is in the folder if that is lost.
    pub(super) fn next(&self, artifacts: &Artifacts) -> Result<u64, ArtifactError> {
        let mut text = String::new();
        (&self.file)
            .read_to_string(&mut text)
            .map_err(ArtifactError::io(&self.path))?;
        if let Ok(last) = text.trim().parse::<u64>() {
            return Ok(last.saturating_add(1));
        }
        let last = artifacts.list()?.last().map_or(0, |entry| entry.id.0);
        Ok(last.saturating_add(1))
    }

    pub(super) fn advance_to(&self, number: u64) -> Result<(), ArtifactError> {
        let text = number.to_string();
        let mut file = &self.file;
        // Written before it is cut: an empty file would let old numbers be given out again.
        file.seek(io::SeekFrom::Start(0))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(ArtifactError::io(&self.path))
    }
}
