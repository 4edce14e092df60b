//! Serialises Cellwright's own writers of one file.
//!
//! Writers of one user hold a lock file in a directory of this user ([`LockDir`]), where no other user can take it. It is named by
//! the path of the notebook and exists only as long as it is held.
//!
//! Writers of other users are excluded by a lock on the notebook itself. After a writer gets it, it checks that the path
//! still names that file; if not, another writer replaced it and the lock must be taken again. A writer also locks the
//! new file before it puts it in place, and keeps the lock until it has read the file back. Every user who may read the notebook can hold
//! such a lock for as long as they like. Therefore, a writer continues without it after a short time: other users are then programs that save at
//! the same time, which the checks of `replace` handle.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tracing::debug;

use super::os::{self, FileStamp};
use crate::baseline::{Baselines, create_private_dir};
use crate::error::NotebookError;

/// Saves take milliseconds; a process of this user that holds the lock this long is stuck.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait for a lock that other users can hold, too.
const SHARED_LOCK_TIMEOUT: Duration = Duration::from_millis(250);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A directory for lock files. Other users have no access to it.
struct LockDir(PathBuf);

/// A lock on the file at a path, released on drop.
pub(crate) struct Lock {
    /// `None` without a directory for lock files.
    _own: Option<LockFile>,
    /// `None` if the file system does not support locks, or another user holds it.
    _shared: Option<File>,
}

impl Lock {
    /// Locks a new file, which no other process can have locked.
    pub(crate) fn acquire_new(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let shared = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::Error(error)) if is_unsupported(&error) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            _own: None,
            _shared: shared,
        })
    }
}

/// A lock file, removed on drop.
struct LockFile {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Before the lock is released: the next writer notices that its file has no name any more.
        fs::remove_file(&self.path).ok();
    }
}

impl LockDir {
    /// Takes the lock of a path. Returns `None` if another process holds it all the time.
    fn lock(&self, path: &Path, timeout: Duration) -> io::Result<Option<LockFile>> {
        create_private_dir(&self.0)?;
        let path = self.0.join(format!("{:032x}", os::path_key(path)?));
        let started = Instant::now();
        loop {
            let file = os::open_lock_file(&path)?;
            match file.try_lock() {
                Ok(()) => {
                    let held = FileStamp::from_metadata(&file.metadata()?);
                    let is_held = |now| FileStamp::from_metadata(&now).is_same_file(&held);
                    if fs::symlink_metadata(&path).is_ok_and(is_held) {
                        return Ok(Some(LockFile { path, _file: file }));
                    }
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL_INTERVAL),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if started.elapsed() > timeout {
                return Ok(None);
            }
        }
    }
}

/// Locks the file at `path`, which must exist.
pub(crate) fn lock(path: &Path, baselines: Option<&Baselines>) -> Result<Lock, NotebookError> {
    let dir = baselines.map(|baselines| LockDir(baselines.lock_dir()));
    let own = match dir.map(|dir| dir.lock(path, LOCK_TIMEOUT)) {
        Some(Ok(None)) => {
            return Err(NotebookError::Busy {
                path: path.to_owned(),
            });
        }
        Some(Ok(own)) => own,
        Some(Err(error)) => {
            debug!(path = %path.display(), %error, "no lock file");
            None
        }
        None => None,
    };
    let timeout = match own {
        Some(_) => SHARED_LOCK_TIMEOUT,
        None => LOCK_TIMEOUT,
    };
    let shared = lock_shared(path, timeout)?;
    Ok(Lock {
        _own: own,
        _shared: shared,
    })
}

/// Locks the notebook itself. Returns `None` if this is not possible.
fn lock_shared(path: &Path, timeout: Duration) -> Result<Option<File>, NotebookError> {
    let failed = |step| {
        let path = path.to_owned();
        move |source| NotebookError::Io { step, path, source }
    };
    let started = Instant::now();
    loop {
        let file = match os::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(NotebookError::NotFound {
                    path: path.to_owned(),
                });
            }
            Err(source) => return Err(failed("read")(source)),
        };
        match file.try_lock() {
            Ok(()) => {
                let held = FileStamp::from_metadata(&file.metadata().map_err(failed("lock"))?);
                match fs::metadata(path) {
                    Ok(now) if FileStamp::from_metadata(&now).is_same_file(&held) => {
                        return Ok(Some(file));
                    }
                    // Replaced in the meantime: try again with the current file.
                    _ => {}
                }
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL_INTERVAL),
            Err(TryLockError::Error(error)) if is_unsupported(&error) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
        if started.elapsed() > timeout {
            debug!(path = %path.display(), "another program holds a lock on the notebook");
            return Ok(None);
        }
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_of_a_user_holds_the_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let locks = LockDir(dir.path().join("locks"));
        let path = dir.path().join("a.ipynb");
        let held = locks.lock(&path, LOCK_TIMEOUT).unwrap().unwrap();
        let again = locks.lock(&path, Duration::ZERO).unwrap();
        assert!(again.is_none());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let same = locks.lock(&link.join("a.ipynb"), Duration::ZERO).unwrap();
        assert!(same.is_none(), "another name of the directory");
        let other = locks.lock(&dir.path().join("b.ipynb"), Duration::ZERO);
        assert!(other.unwrap().is_some());
        drop(held);
        assert!(locks.lock(&path, LOCK_TIMEOUT).unwrap().is_some());
        let left = fs::read_dir(&locks.0).unwrap().count();
        assert_eq!(left, 0, "lock files are removed");
    }

    #[test]
    fn writers_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let locks = LockDir(dir.path().join("locks"));
        let path = dir.path().join("a.ipynb");
        let count = dir.path().join("count");
        fs::write(&count, "0").unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = locks.lock(&path, LOCK_TIMEOUT).unwrap().unwrap();
                        let number: u32 = fs::read_to_string(&count).unwrap().parse().unwrap();
                        fs::write(&count, (number + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&count).unwrap(), "200");
    }
}
