//! [`Place`]: what a living host holds in its folder: the lock, the socket, the info file. Folders
//! for temporary things get cleaned by others, so it looks after them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::HostError;
use super::folder::{Folder, HOST_LOCK, RECORD};
use super::record::Record;

/// How long to wait between two tries for a lock.
const PAUSE: Duration = Duration::from_millis(20);

/// What a living host holds.
#[derive(Debug)]
pub(super) struct Place {
    folder: Folder,
    /// Held as long as this is open.
    lock: File,
    record: Record,
    socket: PathBuf,
    /// Which file the socket is: another host may have put its own there.
    bound: FileNumber,
}

/// What came of trying to be the host.
pub(super) enum Claim {
    Ours(Place, UnixListener),
    /// Somebody else is.
    Taken,
}

/// How things are in the folder.
pub(super) enum Look {
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
struct FileNumber(u64, u64);

impl FileNumber {
    fn at(path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        Some(Self(meta.dev(), meta.ino()))
    }

    fn of(file: &File) -> Option<Self> {
        let meta = file.metadata().ok()?;
        Some(Self(meta.dev(), meta.ino()))
    }
}

impl Place {
    /// Becomes the host of a folder. One that is just ending is waited for.
    pub(super) fn claim(folder: &Folder, patience: Duration) -> Result<Claim, HostError> {
        let until = Instant::now() + patience;
        let lock = loop {
            if let Some(lock) = try_lock(folder)? {
                break lock;
            }
            // One that ends takes its record away first.
            if Record::read(folder)?.is_some() || Instant::now() >= until {
                return Ok(Claim::Taken);
            }
            std::thread::sleep(PAUSE);
        };
        let socket = folder.socket()?;
        let record = Record::own(folder, &socket);
        record
            .sign(&lock)
            .map_err(HostError::file("write", folder.file(HOST_LOCK)))?;
        let (listener, bound) = bind(&socket)?;
        record.publish(folder)?;
        let place = Self {
            folder: folder.clone(),
            lock,
            record,
            socket,
            bound,
        };
        Ok(Claim::Ours(place, listener))
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// Looks whether everything is as it was, and mends what is not.
    pub(super) fn look(&mut self) -> Result<Look, HostError> {
        let mut look = Look::Fine;
        let lock_path = self.folder.file(HOST_LOCK);
        if FileNumber::at(&lock_path) != FileNumber::of(&self.lock) {
            // Whoever comes first to the new lock is the host.
            let folder = Folder::make(self.folder.path().to_owned())?;
            let Some(lock) = try_lock(&folder)? else {
                return Ok(Look::Lost);
            };
            self.lock = lock;
            self.record
                .sign(&self.lock)
                .map_err(HostError::file("write", lock_path))?;
            look = Look::Mended;
        }
        if FileNumber::at(&self.socket) != Some(self.bound) {
            if let Some(parent) = self.socket.parent() {
                Folder::make(parent.to_owned())?;
            }
            let (listener, bound) = bind(&self.socket)?;
            self.bound = bound;
            look = Look::Rebound(listener);
        }
        if !self.is_published() {
            self.record.publish(&self.folder)?;
            if matches!(look, Look::Fine) {
                look = Look::Mended;
            }
        }
        Ok(look)
    }

    /// Takes away what leads to this host. The lock stays held until this is dropped.
    pub(super) fn withdraw(&self) {
        // What is not there any more, or not ours, needs no removing.
        if self.is_published() {
            fs::remove_file(self.folder.file(RECORD)).ok();
        }
        if FileNumber::at(&self.socket) == Some(self.bound) {
            fs::remove_file(&self.socket).ok();
        }
    }

    fn is_published(&self) -> bool {
        matches!(Record::read(&self.folder), Ok(Some(found)) if found == self.record)
    }
}

/// Takes away what a host left behind that could not do it itself.
pub(super) fn clear(folder: &Folder) -> Result<(), HostError> {
    let Some(_nobody_else) = try_lock(folder)? else {
        return Ok(());
    };
    for path in [folder.file(RECORD), folder.socket()?] {
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::file("remove", path)(error)),
        }
    }
    Ok(())
}

/// The lock, if nobody holds it.
fn try_lock(folder: &Folder) -> Result<Option<File>, HostError> {
    let path = folder.file(HOST_LOCK);
    let lock = folder.lock_file(HOST_LOCK)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(HostError::file("lock", path)(error)),
    }
    // A lock on a file that was taken away meanwhile keeps nobody out.
    let same = FileNumber::of(&lock) == FileNumber::at(&path);
    Ok(same.then_some(lock))
}

/// A new socket. Whatever was there was left behind: only the holder of the lock comes here.
fn bind(path: &Path) -> Result<(UnixListener, FileNumber), HostError> {
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
        let number = FileNumber::at(path).ok_or(io::ErrorKind::NotFound)?;
        Ok((listener, number))
    };
    bound().map_err(HostError::file("listen on", path))
}
