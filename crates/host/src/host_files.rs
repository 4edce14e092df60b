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
use super::host_record::HostRecord;

/// Delay between two attempts to lock.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The files of a running host.
#[derive(Debug)]
pub(super) struct HostFiles {
    dir: RuntimeDir,
    /// The lock is held while this file is open.
    lock: File,
    record: HostRecord,
    socket: PathBuf,
    /// The socket file of this host: another host may have replaced it.
    socket_id: FileId,
}

/// The result of an attempt to become the host.
pub(super) enum ClaimResult {
    Acquired(HostFiles, UnixListener),
    /// Another process is the host.
    AlreadyRunning,
}

/// The result of a check of the files.
pub(super) enum FileCheck {
    Unchanged,
    /// A file was missing and is restored.
    Restored,
    /// The socket was missing. Contains the new one.
    SocketRestored(UnixListener),
    /// Another process is the host now.
    LockLost,
}

/// Device and inode number: distinguishes a file from another with the same name.
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
    /// Makes this process the host of a directory. Waits up to `timeout` for a host that is ending.
    pub(super) fn claim(dir: &RuntimeDir, timeout: Duration) -> Result<ClaimResult, HostError> {
        let deadline = Instant::now() + timeout;
        let lock = loop {
            if let Some(lock) = try_lock(dir)? {
                break lock;
            }
            // A host that ends first removes its record.
            if HostRecord::read(dir)?.is_some() || Instant::now() >= deadline {
                return Ok(ClaimResult::AlreadyRunning);
            }
            std::thread::sleep(RETRY_DELAY);
        };
        let socket = dir.socket_path()?;
        let record = HostRecord::new(dir, &socket);
        record
            .write_to_lock(&lock)
            .map_err(HostError::file("write", dir.file_path(HOST_LOCK)))?;
        let (listener, socket_id) = bind(&socket)?;
        record.publish(dir)?;
        let files = Self {
            dir: dir.clone(),
            lock,
            record,
            socket,
            socket_id,
        };
        Ok(ClaimResult::Acquired(files, listener))
    }

    pub(super) fn record(&self) -> &HostRecord {
        &self.record
    }

    /// Checks that the files are unchanged, and restores those that are not.
    pub(super) fn check(&mut self) -> Result<FileCheck, HostError> {
        let mut result = FileCheck::Unchanged;
        let lock_path = self.dir.file_path(HOST_LOCK);
        if FileId::from_path(&lock_path) != FileId::from_file(&self.lock) {
            // The process that locks the new file first is the host.
            let dir = RuntimeDir::create(self.dir.path())?;
            let Some(lock) = try_lock(&dir)? else {
                return Ok(FileCheck::LockLost);
            };
            self.lock = lock;
            self.record
                .write_to_lock(&self.lock)
                .map_err(HostError::file("write", lock_path))?;
            result = FileCheck::Restored;
        }
        if FileId::from_path(&self.socket) != Some(self.socket_id) {
            if let Some(parent) = self.socket.parent() {
                RuntimeDir::create(parent)?;
            }
            let (listener, socket_id) = bind(&self.socket)?;
            self.socket_id = socket_id;
            result = FileCheck::SocketRestored(listener);
        }
        if !self.is_published() {
            self.record.publish(&self.dir)?;
            if matches!(result, FileCheck::Unchanged) {
                result = FileCheck::Restored;
            }
        }
        Ok(result)
    }

    /// Removes the info file and the socket, so that clients no longer find this host. The lock is held until this
    /// value is dropped.
    pub(super) fn remove_files(&self) {
        // Files that are missing or belong to another host stay as they are.
        if self.is_published() {
            fs::remove_file(self.dir.file_path(HOST_INFO)).ok();
        }
        if FileId::from_path(&self.socket) == Some(self.socket_id) {
            fs::remove_file(&self.socket).ok();
        }
    }

    fn is_published(&self) -> bool {
        matches!(HostRecord::read(&self.dir), Ok(Some(found)) if found == self.record)
    }
}

/// Removes the files of a host that ended without removing them.
pub(super) fn clear(dir: &RuntimeDir) -> Result<(), HostError> {
    let Some(_lock) = try_lock(dir)? else {
        return Ok(());
    };
    for path in [dir.file_path(HOST_INFO), dir.socket_path()?] {
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::file("remove", path)(error)),
        }
    }
    Ok(())
}

/// Locks the lock file. Returns `None` if another process holds the lock.
fn try_lock(dir: &RuntimeDir) -> Result<Option<File>, HostError> {
    let lock = dir.open_lock_file(HOST_LOCK)?;
    lock_opened(lock, dir)
}

/// Locks the lock file after it was opened. Returns `None` if another process holds the lock, or has removed or
/// replaced the file: such a lock excludes no other process.
fn lock_opened(lock: File, dir: &RuntimeDir) -> Result<Option<File>, HostError> {
    let path = dir.file_path(HOST_LOCK);
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(HostError::file("lock", path)(error)),
    }
    let same = FileId::from_file(&lock) == FileId::from_path(&path);
    Ok(same.then_some(lock))
}

/// Binds a new socket. Only the holder of the lock calls this, so an existing socket file has no listener.
fn bind(path: &Path) -> Result<(UnixListener, FileId), HostError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(HostError::file("remove", path)(error)),
    }
    let bind_new = || {
        let listener = UnixListener::bind(path)?;
        // Until here, the directory and the file mode mask keep other users out.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let id = FileId::from_path(path).ok_or(io::ErrorKind::NotFound)?;
        Ok((listener, id))
    };
    bind_new().map_err(HostError::file("listen on", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_removed_or_replaced_file_does_not_count() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(&temporary.path().join("host")).unwrap();
        let open = || dir.open_lock_file(HOST_LOCK).unwrap();
        let path = dir.file_path(HOST_LOCK);
        assert!(lock_opened(open(), &dir).unwrap().is_some());
        let opened = open();
        fs::remove_file(&path).unwrap();
        assert!(lock_opened(opened, &dir).unwrap().is_none());
        let opened = open();
        fs::remove_file(&path).unwrap();
        let held = try_lock(&dir).unwrap();
        assert!(held.is_some());
        assert!(lock_opened(opened, &dir).unwrap().is_none());
        assert!(try_lock(&dir).unwrap().is_none());
    }
}
