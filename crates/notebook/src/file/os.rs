//! Unix specifics: file identity, unnamed temporary files, owners.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

/// Identifies a file and its content, as far as file system metadata can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(crate) fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether this is the same file with the same content under another name. (Renaming changes
    /// the ctime.)
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    /// Whether mtime or ctime is within `span` before now, or in the future.
    pub(crate) fn is_younger_than(&self, span: Duration) -> bool {
        let (seconds, nanoseconds) = self.modified.max(self.changed);
        let since_epoch = Duration::new(
            u64::try_from(seconds).unwrap_or(0),
            u32::try_from(nanoseconds).unwrap_or(0),
        );
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + since_epoch)
            .map_or(true, |age| age < span)
    }
}

/// The largest number of writers that replace one path at the same time. They exclude each other by a lock on the file,
/// except while another program replaces it.
const NAME_COUNT: usize = 8;
/// On a file system without locks, a temporary file of this age is left over from a crash.
const SAVE_TIMEOUT: Duration = Duration::from_mins(10);

/// The mode bit of a directory in which only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;
/// The longest wait for a program that holds a lease on a file.
const LEASE_TIMEOUT: Duration = Duration::from_secs(10);
const LEASE_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A file that is written next to the one it will replace.
#[derive(Debug)]
pub(crate) struct TempFile {
    pub(crate) file: File,
    /// Its path, once it has a name. Until then the kernel removes it with the process, however
    /// that ends.
    path: Option<PathBuf>,
    names: [PathBuf; NAME_COUNT],
}

impl TempFile {
    /// Creates a temporary file in the directory of `target`, readable only by the owner. `old` is the file at `target`,
    /// which the caller has locked.
    pub(crate) fn create(target: &Path, old: Option<&FileStamp>) -> io::Result<Self> {
        let dir = parent_dir(target);
        let names: [PathBuf; NAME_COUNT] =
            std::array::from_fn(|number| dir.join(temp_name(target, number)));
        if let Some(old) = old {
            for name in &names {
                remove_abandoned(name, target, old);
            }
        }
        if let Some(file) = open_unnamed(dir) {
            return Ok(Self {
                file,
                path: None,
                names,
            });
        }
        let (file, path) = with_free_name(&names, |name| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(name)
        })?;
        Ok(Self {
            file,
            path: Some(path),
            names,
        })
    }

    /// Links the file to a temporary name, unless it already has one. It must be locked: a file that is not is
    /// taken for a leftover.
    pub(crate) fn ensure_named(&mut self) -> io::Result<()> {
        if self.path.is_none() {
            let ((), path) = with_free_name(&self.names, |name| link_unnamed(&self.file, name))?;
            self.path = Some(path);
        }
        Ok(())
    }

    /// Its path, if it has one. After [`TempFile::exchange`] this is the replaced file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Exchanges this file, or what was exchanged before, with the one at `target`, atomically for every reader.
    pub(crate) fn exchange(&self, target: &Path) -> io::Result<()> {
        match &self.path {
            Some(name) => swap_names(name, target),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Replaces `target` with this file, atomically for every reader.
    pub(crate) fn rename(&mut self, target: &Path) -> io::Result<()> {
        if let Some(name) = &self.path {
            fs::rename(name, target)?;
            self.path = None;
        }
        Ok(())
    }

    /// Whether the temporary name still is, or is again, that of this file.
    pub(crate) fn is_own_file(&self) -> io::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        let own = FileStamp::from_metadata(&self.file.metadata()?);
        let named = FileStamp::from_metadata(&fs::symlink_metadata(path)?);
        Ok(named.is_same_file(&own))
    }

    /// Publishes the file at a path where none exists. Fails if there is one by now.
    pub(crate) fn publish_new(self, target: &Path) -> io::Result<()> {
        match &self.path {
            None => link_unnamed(&self.file, target),
            Some(name) => fs::hard_link(name, target),
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // `drop` cannot report an error; a later save removes the file.
            fs::remove_file(path).ok();
        }
    }
}

/// Calls `create` with the first name that is free.
fn with_free_name<T>(
    names: &[PathBuf],
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    for name in names {
        match create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok((other?, name.clone())),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes a temporary file if its writer has crashed. A writer locks the new file before it has a name, and has locked
/// the old one. It may also have exchanged its new file with one of another program, which is not locked; then `target`
/// is that new file, and not `old`. Errors are ignored: a later save tries again.
fn remove_abandoned(name: &Path, target: &Path, old: &FileStamp) {
    if !fs::symlink_metadata(name).is_ok_and(|metadata| metadata.is_file()) {
        return;
    }
    let Ok(file) = open(name) else {
        return;
    };
    let is_locked = match file.try_lock() {
        Ok(()) => false,
        Err(fs::TryLockError::WouldBlock) => true,
        // A file system without locks.
        Err(fs::TryLockError::Error(_)) => file
            .metadata()
            .is_ok_and(|now| FileStamp::from_metadata(&now).is_younger_than(SAVE_TIMEOUT)),
    };
    let is_old = |now: fs::Metadata| FileStamp::from_metadata(&now).is_same_file(old);
    if !is_locked && fs::metadata(target).is_ok_and(is_old) {
        fs::remove_file(name).ok();
    }
}

/// Swaps the names of two files atomically.
#[cfg(target_os = "linux")]
fn swap_names(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::RenameFlags;
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn swap_names(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The directory of a file.
pub(crate) fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name of a temporary file: short, hidden, and one of a few for one target, so that a later save
/// finds and removes a leftover.
fn temp_name(target: &Path, number: usize) -> String {
    let name = target.file_name().unwrap_or_default();
    format!(
        ".cellwright-{:016x}-{number}.tmp",
        twox_hash::XxHash3_128::oneshot(name.as_bytes()) & u128::from(u64::MAX)
    )
}

/// Creates a file without a name, if the file system supports it.
#[cfg(target_os = "linux")]
fn open_unnamed(dir: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(File::from(file))
}

#[cfg(not(target_os = "linux"))]
fn open_unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn link_unnamed(file: &File, name: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, link, CWD, name, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn link_unnamed(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Copies owner and mode of the replaced file. Only the superuser may change the owner; for other
/// users the owner changes to the current user and the rest is kept.
pub(crate) fn copy_attributes(file: &File, from: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (from.uid(), from.gid()) {
        let uid = rustix::process::Uid::from_raw(from.uid());
        let gid = rustix::process::Gid::from_raw(from.gid());
        let both = rustix::fs::fchown(file.as_fd(), Some(uid), Some(gid));
        if both.is_err() {
            // The group alone may still be allowed. If not, the directory decides it, as for any new
            // file.
            rustix::fs::fchown(file.as_fd(), None, Some(gid)).ok();
        }
    }
    file.set_permissions(fs::Permissions::from_mode(from.mode() & 0o7777))
}

/// Sets the mode of a new file, according to the umask and at most `limit`.
pub(crate) fn set_default_mode(file: &File, limit: u32) -> io::Result<()> {
    // Reading the umask with the system call means setting it, which races with other threads.
    // /proc has it too; without /proc the usual umask is assumed.
    let mask = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("Umask:"))?;
            u32::from_str_radix(line.trim(), 8).ok()
        })
        .unwrap_or(0o022);
    file.set_permissions(fs::Permissions::from_mode(0o666 & limit & !mask))
}

/// Fails if the file is write-protected, which replacing it would bypass, or if it cannot be replaced.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    rustix::fs::access(path, Access::WRITE_OK)?;
    let dir = parent_dir(path);
    let refused = |reason: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    let user = rustix::process::geteuid();
    let (dir_metadata, file) = (fs::metadata(dir)?, fs::symlink_metadata(path)?);
    let is_own = |owner: u32| owner == user.as_raw();
    if dir_metadata.mode() & STICKY != 0
        && !user.is_root()
        && !is_own(dir_metadata.uid())
        && !is_own(file.uid())
    {
        return refused("it belongs to another user, and the directory is sticky");
    }
    if is_append_only(dir) {
        return refused("the directory is append-only or immutable (`lsattr -d`)");
    }
    if is_append_only(path) {
        return refused("it is append-only or immutable (`lsattr`)");
    }
    Ok(())
}

/// Whether a file has the attribute "append only" or "immutable": it cannot be replaced, and what is in such a directory neither.
#[cfg(target_os = "linux")]
fn is_append_only(path: &Path) -> bool {
    use rustix::fs::{StatxAttributes, StatxFlags};
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
    let attributes = StatxAttributes::APPEND | StatxAttributes::IMMUTABLE;
    found.is_ok_and(|found| found.stx_attributes.intersects(attributes))
}

#[cfg(not(target_os = "linux"))]
fn is_append_only(_: &Path) -> bool {
    false
}

/// Fails if the file system of a file has less than `size` bytes left.
pub(crate) fn check_space(file: &File, size: u64) -> io::Result<()> {
    // Some file systems do not know.
    let Ok(space) = rustix::fs::fstatvfs(file) else {
        return Ok(());
    };
    let is_known = space.f_blocks > 0;
    if is_known && space.f_bavail.saturating_mul(space.f_frsize) < size {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

/// Flushes a directory, so that a rename survives a power cut.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        // Some file systems cannot flush directories and need not.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Reads exactly `buffer.len()` bytes at an offset.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Opens a regular file for reading. Neither a pipe nor a device is waited for, also if another user has put it in the place of
/// a file at this moment. A path `/proc/self/fd/N/name` comes from a caller that holds the directory open and has already
/// followed every link: a link at its end appeared later and is not followed.
pub fn open(path: &Path) -> io::Result<File> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if is_proc_fd_path(path) {
        flags |= OFlags::NOFOLLOW;
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let started = Instant::now();
    let file = loop {
        match options.open(path) {
            // Another program holds a lease, as a save does for some microseconds.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && started.elapsed() < LEASE_TIMEOUT =>
            {
                thread::sleep(LEASE_POLL_INTERVAL);
            }
            other => break other?,
        }
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Opens a lock file of this user, and creates it if it does not exist.
pub(super) fn open_lock_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Identifies a path: the directory, whatever its name, and the name in it.
pub(super) fn path_key(path: &Path) -> io::Result<u128> {
    let dir = fs::metadata(parent_dir(path))?;
    let mut key = Vec::new();
    key.extend(dir.dev().to_le_bytes());
    key.extend(dir.ino().to_le_bytes());
    key.extend(path.file_name().unwrap_or_default().as_bytes());
    Ok(twox_hash::XxHash3_128::oneshot(&key))
}

/// Whether a path goes through an open directory descriptor.
pub(crate) fn is_proc_fd_path(path: &Path) -> bool {
    path.starts_with("/proc/self/fd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.ipynb");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), dir.path(), Path::new("/dev/null")] {
            let error = open(path).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{path:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_holds_a_lease_is_waited_for() {
        use super::super::lease::Lease;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ipynb");
        let file = File::create(&path).unwrap();
        let Ok(lease) = Lease::against_all(&file) else {
            return;
        };
        let opened = thread::spawn(move || open(&path).is_ok());
        while !lease.is_awaited() {
            thread::yield_now();
        }
        drop(lease);
        assert!(opened.join().unwrap());
    }
}
