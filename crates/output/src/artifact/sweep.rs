//! Removing artifacts that are too old, or too many.

use std::fs::{self, File, TryLockError};
use std::io;
use std::time::SystemTime;

use super::{ArtifactError, ArtifactId, Artifacts, Entry};

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What was removed.
    pub removed: Vec<ArtifactId>,
    /// Bytes that were removed.
    pub freed: u64,
    /// Bytes that are left.
    pub left: u64,
}

impl Artifacts {
    /// Removes what is older than allowed, then the oldest until the rest fits. What is being
    /// written stays.
    pub fn sweep(&self) -> Result<Swept, ArtifactError> {
        self.sweep_at(SystemTime::now())
    }

    /// As [`Self::sweep`], at a time of the caller's choice.
    pub fn sweep_at(&self, now: SystemTime) -> Result<Swept, ArtifactError> {
        let entries = self.list()?;
        let retention = self.retention();
        let mut swept = Swept {
            left: entries.iter().map(|entry| entry.bytes).sum(),
            ..Swept::default()
        };
        for entry in entries {
            // A file from the future is not old.
            let age = now.duration_since(entry.modified).unwrap_or_default();
            if (age > retention.age || swept.left > retention.bytes) && remove(&entry)? {
                swept.left -= entry.bytes;
                swept.freed += entry.bytes;
                swept.removed.push(entry.id);
            }
        }
        Ok(swept)
    }
}

/// Whether it is gone.
fn remove(entry: &Entry) -> Result<bool, ArtifactError> {
    // The lock is let go when the file is closed, after the removal.
    let held = match File::open(&entry.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(ArtifactError::io(&entry.path)(error)),
    };
    if matches!(held.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(false);
    }
    match fs::remove_file(&entry.path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(ArtifactError::io(&entry.path)(error)),
    }
}
