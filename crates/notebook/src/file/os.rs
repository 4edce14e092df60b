//! Unix specifics: file identity, unnamed temporary files, owners.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// A file that is written next to the one it will replace.
#[derive(Debug)]
pub(crate) struct TempFile {
    pub(crate) file: File,
    /// Its path, once it has a name. Until then the kernel removes it with the process, however
    /// that ends.
    path: Option<PathBuf>,
    name: PathBuf,
}

impl TempFile {
    /// Creates a temporary file in the directory of `target`, readable only by the owner.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let dir = parent_dir(target);
        let name = dir.join(temp_name(target));
        if let Some(file) = open_unnamed(dir) {
            return Ok(Self {
                file,
                path: None,
                name,
            });
        }
        // Left over from a crash: the lock on the target excludes other users.
        remove_if_exists(&name)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name)?;
        Ok(Self {
            file,
            path: Some(name.clone()),
            name,
        })
    }

    /// Links the file to its temporary name, unless it already has one.
    fn ensure_named(&mut self) -> io::Result<&Path> {
        if self.path.is_none() {
            remove_if_exists(&self.name)?;
            link_unnamed(&self.file, &self.name)?;
        }
        Ok(self.path.insert(self.name.clone()))
    }

    /// Replaces `target` with this file, atomically for every reader. If the file system can swap
    /// two names, the old file stays under the temporary name until this is dropped, and
    /// [`TempFile::undo_replace`] can restore it.
    pub(crate) fn replace(&mut self, target: &Path) -> io::Result<()> {
        let name = self.ensure_named()?.to_owned();
        if swap_names(&name, target).is_ok() {
            return Ok(());
        }
        fs::rename(&name, target)?;
        self.path = None;
        Ok(())
    }

    /// The state of the old file, if it can still be restored.
    pub(crate) fn replaced_stamp(&self) -> Option<io::Result<FileStamp>> {
        let path = self.path.as_ref()?;
        Some(fs::symlink_metadata(path).map(|metadata| FileStamp::from_metadata(&metadata)))
    }

    /// Undoes [`TempFile::replace`].
    pub(crate) fn undo_replace(&mut self, target: &Path) -> io::Result<()> {
        match &self.path {
            Some(name) => swap_names(name, target),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Publishes the file at a path where none exists. Fails if there is one by now.
    pub(crate) fn publish_new(mut self, target: &Path) -> io::Result<()> {
        if self.path.is_none() {
            return link_unnamed(&self.file, target);
        }
        let name = self.ensure_named()?.to_owned();
        fs::hard_link(name, target)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // `drop` cannot report an error; the next save removes the file.
            fs::remove_file(path).ok();
        }
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

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The directory of a file.
pub(crate) fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The name of the temporary file: short, hidden, and always the same for one target, so that the
/// next save finds and replaces a leftover.
fn temp_name(target: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let name = target.file_name().unwrap_or_default();
    format!(
        ".cellwright-{:016x}.tmp",
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

/// Sets the mode of a new file, according to the umask.
pub(crate) fn set_default_mode(file: &File) -> io::Result<()> {
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
    file.set_permissions(fs::Permissions::from_mode(0o666 & !mask))
}

/// Fails if the file is write-protected: replacing it would bypass the protection.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
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

/// Opens a file of any kind for reading. A path `/proc/self/fd/N/name` comes from a caller that holds the
/// directory open and has already followed every link: a link at its end appeared later and is not
/// followed.
pub fn open(path: &Path) -> io::Result<File> {
    if !is_proc_fd_path(path) {
        return File::open(path);
    }
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

/// Whether a path goes through an open directory descriptor.
pub(crate) fn is_proc_fd_path(path: &Path) -> bool {
    path.starts_with("/proc/self/fd")
}
