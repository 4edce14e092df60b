//! Removal of old artifacts, and of the oldest ones when the directory is too large.

use std::fs::{self, File, TryLockError};
use std::io;
use std::time::SystemTime;

use super::{ArtifactError, ArtifactId, ArtifactInfo, Artifacts};

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// The removed artifacts.
    pub removed: Vec<ArtifactId>,
    /// Size of the removed artifacts, in bytes.
    pub freed_bytes: u64,
    /// Size of the remaining artifacts, in bytes.
    pub remaining_bytes: u64,
}

impl Artifacts {
    /// Removes expired artifacts of all projects, then the oldest ones until the rest fits. Artifacts that are still
    /// being written stay.
    pub fn sweep(&self) -> Result<SweepReport, ArtifactError> {
        self.sweep_at(SystemTime::now())
    }

    /// As [`Self::sweep`], with the given current time.
    pub fn sweep_at(&self, now: SystemTime) -> Result<SweepReport, ArtifactError> {
        let entries = self.list_all()?;
        let retention = self.retention();
        let mut report = SweepReport {
            remaining_bytes: entries.iter().map(|entry| entry.bytes).sum(),
            ..SweepReport::default()
        };
        for entry in entries {
            // A modification time in the future counts as new.
            let age = now.duration_since(entry.modified).unwrap_or_default();
            if (age > retention.age || report.remaining_bytes > retention.bytes) && remove(&entry)?
            {
                report.remaining_bytes -= entry.bytes;
                report.freed_bytes += entry.bytes;
                report.removed.push(entry.id);
                self.remove_origin(entry.id);
            }
        }
        Ok(report)
    }
}

/// Removes an artifact. Returns `false` if a writer holds it.
fn remove(entry: &ArtifactInfo) -> Result<bool, ArtifactError> {
    // Closing the file, after the removal, releases the lock.
    let file = match File::open(&entry.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(ArtifactError::io(&entry.path)(error)),
    };
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(false);
    }
    match fs::remove_file(&entry.path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(ArtifactError::io(&entry.path)(error)),
    }
}
