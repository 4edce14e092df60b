//! Keeps our own writers of one file apart.
//!
//! The lock is on the file that is about to be replaced. Whoever gets it checks that the path still
//! leads to that file; if not, another writer was faster and the lock must be taken again. A writer
//! also locks the file it puts in place, before it does, and holds it until it has read it back.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::os::Stamp;
use crate::error::NotebookError;

/// Saves take milliseconds; whoever holds the lock this long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// A lock on the file at a path, let go when dropped.
pub(crate) struct Lock {
    /// `None` where the file system has no locks.
    _file: Option<File>,
}

impl Lock {
    /// Locks a file that nobody else can have locked, because it is new.
    pub(crate) fn on(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::Error(error)) if is_unsupported(&error) => Ok(Self { _file: None }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Locks the file at `path`, which must exist.
pub(crate) fn lock(path: &Path) -> Result<Lock, NotebookError> {
    let failed = |source| NotebookError::Io {
        step: "lock",
        path: path.to_owned(),
        source,
    };
    let started = Instant::now();
    loop {
        let file = match super::os::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(NotebookError::NotFound {
                    path: path.to_owned(),
                });
            }
            Err(source) => {
                return Err(NotebookError::Io {
                    step: "read",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        match file.try_lock() {
            Ok(()) => {
                let held = Stamp::of(&file.metadata().map_err(failed)?);
                match std::fs::metadata(path) {
                    Ok(now) if Stamp::of(&now).is_same_file(&held) => {
                        return Ok(Lock { _file: Some(file) });
                    }
                    // Replaced meanwhile: try again with the file that is there now.
                    _ => {}
                }
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                return Ok(Lock { _file: None });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if started.elapsed() > PATIENCE {
            return Err(NotebookError::Busy {
                path: path.to_owned(),
            });
        }
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}
