//! Serialises Cellwright's own writers of one file.
//!
//! A writer locks the file that it will replace. After it gets the lock, it checks that the path
//! still names that file; if not, another writer replaced it and the lock must be taken again. A
//! writer also locks the new file before it puts it in place, and keeps the lock until it has
//! read the file back.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::os::FileStamp;
use crate::error::NotebookError;

/// Saves take milliseconds; a process that holds the lock this long is stuck.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A lock on the file at a path, released on drop.
pub(crate) struct Lock {
    /// `None` if the file system does not support locks.
    _file: Option<File>,
}

impl Lock {
    /// Locks a new file, which no other process can have locked.
    pub(crate) fn acquire_new(file: &File) -> io::Result<Self> {
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
                let held = FileStamp::from_metadata(&file.metadata().map_err(failed)?);
                match std::fs::metadata(path) {
                    Ok(now) if FileStamp::from_metadata(&now).is_same_file(&held) => {
                        return Ok(Lock { _file: Some(file) });
                    }
                    // Replaced in the meantime: try again with the current file.
                    _ => {}
                }
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL_INTERVAL),
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                return Ok(Lock { _file: None });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if started.elapsed() > LOCK_TIMEOUT {
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
