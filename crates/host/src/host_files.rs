//! [`HostFiles`]: the lock, the socket and the info file of a running host. Other programs clean temporary
//! directories, so the host checks its files and restores them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cellwright_engine::runtime_dir::{HOST_INFO, HOST_LOCK, RuntimeDir};

use super::error::HostError;
use super::record::HostRecord;

/// How long to wait between two tries for a lock.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// What a living host holds.
#[derive(Debug)]
pub(super) struct HostFiles {
    folder: RuntimeDir,
    /// Held as long as this is open.
    lock: File,
    record: HostRecord,
    socket: PathBuf,
    /// Which file the socket is: another host may have put its own there.
    bound: FileId,
}

/// What came of trying to be the host.
pub(super) enum ClaimResult {
    Acquired(HostFiles, UnixListener),
    /// Somebody else is.
    Taken,
}

/// How things are in the folder.
pub(super) enum FileCheck {
    Fine,
    /// Something was missing and is there again.
    Mended,
    /// The socket was missing; this is the new one.
    Rebound(UnixListener),
    /// Somebody else is the host now.
    Lost,
}

/// By what a file is told from another of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn from_path(path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        Some(Self(meta.dev(), meta.ino()))
    }

    fn from_file(file: &File) -> Option<Self> {
        let meta = file.metadata().ok()?;
        Some(Self(meta.dev(), meta.ino()))
    }
}

impl HostFiles {
    /// Becomes the host of a folder. One that is just ending is waited for.
    pub(super) fn claim(folder: &RuntimeDir, patience: Duration) -> Result<ClaimResult, HostError> {
        let until = Instant::now() + patience;
        let lock = loop {
            if let Some(lock) = try_lock(folder)? {
                break lock;
            }
            // One that ends takes its record away first.
            if HostRecord::read(folder)?.is_some() || Instant::now() >= until {
                return Ok(ClaimResult::Taken);
            }
            std::thread::sleep(RETRY_DELAY);
        };
        let socket = folder.socket_path()?;
        let record = HostRecord::new(folder, &socket);
        record
            .write_to_lock(&lock)
            .map_err(HostError::file("write", folder.file_path(HOST_LOCK)))?;
        let (listener, bound) = bind(&socket)?;
        record.publish(folder)?;
        let place = Self {
            folder: folder.clone(),
            lock,
            record,
            socket,
            bound,
        };
        Ok(ClaimResult::Acquired(place, listener))
    }

    pub(super) fn record(&self) -> &HostRecord {
        &self.record
    }

    /// Looks whether everything is as it was, and mends what is not.
    pub(super) fn check(&mut self) -> Result<FileCheck, HostError> {
        let mut look = FileCheck::Fine;
        let lock_path = self.folder.file_path(HOST_LOCK);
        if FileId::from_path(&lock_path) != FileId::from_file(&self.lock) {
            // Whoever comes first to the new lock is the host.
            let folder = RuntimeDir::create(self.folder.path().to_owned())?;
            let Some(lock) = try_lock(&folder)? else {
                return Ok(FileCheck::Lost);
            };
            self.lock = lock;
            self.record
                .write_to_lock(&self.lock)
                .map_err(HostError::file("write", lock_path))?;
            look = FileCheck::Mended;
        }
        if FileId::from_path(&self.socket) != Some(self.bound) {
            if let Some(parent) = self.socket.parent() {
                RuntimeDir::create(parent.to_owned())?;
            }
            let (listener, bound) = bind(&self.socket)?;
            self.bound = bound;
            look = FileCheck::Rebound(listener);
        }
        if !self.is_published() {
            self.record.publish(&self.folder)?;
            if matches!(look, FileCheck::Fine) {
                look = FileCheck::Mended;
            }
        }
        Ok(look)
    }

    /// Takes away what leads to this host. The lock stays held until this is dropped.
    pub(super) fn withdraw(&self) {
        // What is not there any more, or not ours, needs no removing.
        if self.is_published() {
            fs::remove_file(self.folder.file_path(HOST_INFO)).ok();
        }
        if FileId::from_path(&self.socket) == Some(self.bound) {
            fs::remove_file(&self.socket).ok();
        }
    }

    fn is_published(&self) -> bool {
        matches!(HostRecord::read(&self.folder), Ok(Some(found)) if found == self.record)
    }
}

/// Takes away what a host left behind that could not do it itself.
pub(super) fn clear(folder: &RuntimeDir) -> Result<(), HostError> {
    let Some(_nobody_else) = try_lock(folder)? else {
        return Ok(());
    };
    for path in [folder.file_path(HOST_INFO), folder.socket_path()?] {
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::file("remove", path)(error)),
        }
    }
    Ok(())
}

/// Locks the lock file. Returns `None` if another process holds the lock.
fn try_lock(folder: &RuntimeDir) -> Result<Option<File>, HostError> {
    let lock = folder.open_lock_file(HOST_LOCK)?;
    lock_opened(lock, folder)
}

/// Locks the lock file after it was opened. Returns `None` if another process holds the lock, or has removed or
/// replaced the file: such a lock excludes no other process.
fn lock_opened(lock: File, folder: &RuntimeDir) -> Result<Option<File>, HostError> {
    let path = folder.file_path(HOST_LOCK);
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(HostError::file("lock", path)(error)),
    }
    let same = FileId::from_file(&lock) == FileId::from_path(&path);
    Ok(same.then_some(lock))
}

/// A new socket. Whatever was there was left behind: only the holder of the lock comes here.
fn bind(path: &Path) -> Result<(UnixListener, FileId), HostError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(HostError::file("remove", path)(error)),
    }
    let bound = || {
        let listener = UnixListener::bind(path)?;
        // The folder and the mask have kept others out so far.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let number = FileId::from_path(path).ok_or(io::ErrorKind::NotFound)?;
        Ok((listener, number))
    };
    bound().map_err(HostError::file("listen on", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_removed_or_replaced_file_does_not_count() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RuntimeDir::create(temporary.path().join("host")).unwrap();
        let open = || folder.open_lock_file(HOST_LOCK).unwrap();
        let path = folder.file_path(HOST_LOCK);
        assert!(lock_opened(open(), &folder).unwrap().is_some());
        let opened = open();
        fs::remove_file(&path).unwrap();
        assert!(lock_opened(opened, &folder).unwrap().is_none());
        let opened = open();
        fs::remove_file(&path).unwrap();
        let held = try_lock(&folder).unwrap();
        assert!(held.is_some());
        assert!(lock_opened(opened, &folder).unwrap().is_none());
        assert!(try_lock(&folder).unwrap().is_none());
    }
}
