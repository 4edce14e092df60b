//! What is particular to Unix: identity of files, nameless temporary files, owners.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

/// Tells whether a file is still the same one with the same content, as far as the file system
/// knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
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

    /// Whether this is the same file with the same content under another name (which changes the
    /// time of the last change of attributes).
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    /// Whether the content or the file's attributes changed within `span` before now (or, with a
    /// clock that runs ahead, in the future).
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

/// A file being written next to the one it will replace.
#[derive(Debug)]
pub(crate) struct Temp {
    pub(crate) file: File,
    /// Its name, once it has one. Until then it vanishes with the process, however that ends.
    path: Option<PathBuf>,
    name: PathBuf,
}

impl Temp {
    /// Makes a temporary file in the folder of `target`, readable by nobody else.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let folder = folder_of(target);
        let name = folder.join(temp_name(target));
        if let Some(file) = nameless(folder) {
            return Ok(Self {
                file,
                path: None,
                name,
            });
        }
        // Left over from a crash: the lock on the target says that nobody uses it now.
        remove_if_there(&name)?;
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

    /// Gives the file its temporary name, if it has none yet.
    fn named(&mut self) -> io::Result<&Path> {
        if self.path.is_none() {
            remove_if_there(&self.name)?;
            link_nameless(&self.file, &self.name)?;
        }
        Ok(self.path.insert(self.name.clone()))
    }

    /// Puts the file in the place of `target`, in one step for every reader. Where the two can be
    /// exchanged, the old file stays under the temporary name until this is dropped, and
    /// [`Temp::put_back`] can undo it.
    pub(crate) fn replace(&mut self, target: &Path) -> io::Result<()> {
        let name = self.named()?.to_owned();
        if exchange(&name, target).is_ok() {
            return Ok(());
        }
        fs::rename(&name, target)?;
        self.path = None;
        Ok(())
    }

    /// The old file, if it can still be put back.
    pub(crate) fn replaced(&self) -> Option<io::Result<Stamp>> {
        let path = self.path.as_ref()?;
        Some(fs::symlink_metadata(path).map(|metadata| Stamp::of(&metadata)))
    }

    /// Undoes [`Temp::replace`].
    pub(crate) fn put_back(&mut self, target: &Path) -> io::Result<()> {
        match &self.path {
            Some(name) => exchange(name, target),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Puts the file where none is; fails if there is one by now.
    pub(crate) fn publish_new(mut self, target: &Path) -> io::Result<()> {
        if self.path.is_none() {
            return link_nameless(&self.file, target);
        }
        let name = self.named()?.to_owned();
        fs::hard_link(name, target)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing better can be done; the next save removes it.
            fs::remove_file(path).ok();
        }
    }
}

/// Lets two files change names in one step.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::RenameFlags;
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The folder a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Short whatever the target's name, hidden, and always the same for one target: a leftover is
/// found and replaced by the next save.
fn temp_name(target: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let name = target.file_name().unwrap_or_default();
    format!(
        ".cellwright-{:016x}.tmp",
        twox_hash::XxHash3_128::oneshot(name.as_bytes()) & u128::from(u64::MAX)
    )
}

/// A file without a name, where the file system can do that.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(File::from(file))
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn link_nameless(file: &File, name: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, link, CWD, name, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn link_nameless(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives `file` the owner and mode of the file it replaces. Only the superuser may give files
/// away; for others the owner changes to who saves, and the rest is kept.
pub(crate) fn copy_attributes(file: &File, from: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (from.uid(), from.gid()) {
        let uid = rustix::process::Uid::from_raw(from.uid());
        let gid = rustix::process::Gid::from_raw(from.gid());
        let both = rustix::fs::fchown(file.as_fd(), Some(uid), Some(gid));
        if both.is_err() {
            // The group alone may still be possible; if not, the folder decides it as for any
            // new file.
            rustix::fs::fchown(file.as_fd(), None, Some(gid)).ok();
        }
    }
    file.set_permissions(fs::Permissions::from_mode(from.mode() & 0o7777))
}

/// The mode a new file gets: what the user's mask allows.
pub(crate) fn default_mode(file: &File) -> io::Result<()> {
    // Reading the mask means setting it, which would be a race with other threads; /proc tells
    // without that, and without /proc the usual mask is assumed.
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

/// Whether we may write to a file: replacing a write-protected one would go around the protection.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
}

/// Makes a renamed file survive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems cannot flush folders and need not.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Reads exactly so many bytes from a place in a file.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Opens a file for reading. Whoever looks a file up in a folder that they hold open, and comes by
/// `/proc/self/fd/N/name`, has followed every link already: another one at the end was put there since, and is
/// not followed.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !through_held_folder(path) {
        return File::open(path);
    }
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

/// Whether a path leads through a folder that is held open.
pub(crate) fn through_held_folder(path: &Path) -> bool {
    path.starts_with("/proc/self/fd")
}
