//! [`Directory`]: a directory that is found by its path, or held open.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

/// A directory.
///
/// A plain one is found by its path at each use. A held one is an open descriptor: whatever its path leads to later, files are
/// opened in the directory that was checked. Clones share the descriptor.
///
/// Another process that receives a held directory must [open](Self::open) it, which verifies that the path still leads to the
/// same directory. Until then it leads nowhere.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Directory {
    path: PathBuf,
    /// `None` for a plain directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<DirectoryIdentity>,
    #[serde(skip)]
    descriptor: Option<Arc<OwnedFd>>,
}

/// What identifies a directory while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryIdentity {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
}

impl Directory {
    /// Holds an open directory, which messages name by `path`.
    pub fn hold(descriptor: OwnedFd, path: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            path: path.into(),
            identity: Some(DirectoryIdentity::from_descriptor(&descriptor)?),
            descriptor: Some(Arc::new(descriptor)),
        })
    }

    /// Opens a held directory that another process has sent. An error if the path leads to another directory by now.
    pub fn open(&mut self) -> io::Result<()> {
        let (Some(identity), None) = (self.identity, &self.descriptor) else {
            return Ok(());
        };
        let descriptor = open_directory(&self.path)?;
        if DirectoryIdentity::from_descriptor(&descriptor)? != identity {
            return Err(io::Error::other("another directory has replaced it"));
        }
        self.descriptor = Some(Arc::new(descriptor));
        Ok(())
    }

    /// The path to show and to record.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path to use in a system call of this process, or of a child before it starts its program.
    pub fn open_path(&self) -> PathBuf {
        match (&self.descriptor, self.identity) {
            (Some(descriptor), _) => {
                PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
            }
            // Not opened yet: no file has this path.
            (None, Some(_)) => PathBuf::from("/proc/self/fd/-1"),
            (None, None) => self.path.clone(),
        }
    }

    /// Whether the directory is held.
    pub fn is_held(&self) -> bool {
        self.identity.is_some()
    }

    /// The descriptor of a held directory, if it is open.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_deref().map(OwnedFd::as_fd)
    }

    /// Identifies a held directory.
    pub fn identity(&self) -> Option<DirectoryIdentity> {
        self.identity
    }

    /// The path of a held directory now: it may have been moved. `None` if it was deleted, or is not held.
    pub fn current_path(&self) -> Option<PathBuf> {
        let descriptor = self.descriptor.as_ref()?;
        let found = rustix::fs::fstat(descriptor).ok()?;
        if found.st_nlink == 0 {
            return None;
        }
        fs::read_link(self.open_path()).ok()
    }
}

impl DirectoryIdentity {
    fn from_descriptor(descriptor: &OwnedFd) -> io::Result<Self> {
        let found = rustix::fs::fstat(descriptor)?;
        // The types differ between systems.
        #[allow(
            clippy::useless_conversion,
            reason = "not the same type on every system"
        )]
        Ok(Self {
            device: u64::try_from(found.st_dev).unwrap_or_default(),
            inode: u64::from(found.st_ino),
        })
    }
}

/// Opens a directory, and nothing else.
fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | OFlags::PATH;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Descriptors differ between clones in other processes; the directory is the same.
impl PartialEq for Directory {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.identity) == (&other.path, other.identity)
    }
}

impl Eq for Directory {}

impl From<PathBuf> for Directory {
    fn from(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }
}

impl From<&Path> for Directory {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&str> for Directory {
    fn from(path: &str) -> Self {
        PathBuf::from(path).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(path: &Path) -> Directory {
        Directory::hold(open_directory(path).unwrap(), path).unwrap()
    }

    /// The directory as another process receives it.
    fn send(directory: &Directory) -> Directory {
        Directory {
            descriptor: None,
            ..directory.clone()
        }
    }

    #[test]
    fn a_held_directory_stays_the_same_when_its_path_changes() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (one, two) = (base.join("one"), base.join("two"));
        fs::create_dir(&one).unwrap();
        let (held, plain) = (hold(&one), Directory::from(one.as_path()));
        assert!(held.is_held() && !plain.is_held());
        assert_eq!(held.current_path().as_deref(), Some(one.as_path()));
        assert_eq!(plain.current_path(), None);
        fs::rename(&one, &two).unwrap();
        fs::create_dir(&one).unwrap();
        fs::write(held.open_path().join("a"), "").unwrap();
        assert!(two.join("a").exists() && !one.join("a").exists());
        fs::write(plain.open_path().join("b"), "").unwrap();
        assert!(one.join("b").exists());
        assert_eq!(held.path(), one);
        assert_eq!(held.current_path(), Some(two.clone()));
        fs::remove_dir_all(&two).unwrap();
        assert_eq!(held.current_path(), None);
    }

    #[test]
    fn a_directory_that_was_sent_is_opened_only_if_it_is_the_same() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (one, two) = (base.join("one"), base.join("two"));
        fs::create_dir(&one).unwrap();
        let held = hold(&one);
        let mut received = send(&held);
        assert_eq!(received, held);
        assert!(!received.open_path().exists());
        received.open().unwrap();
        assert!(received.open_path().is_dir());
        let mut plain = Directory::from(one.as_path());
        plain.open().unwrap();
        assert!(!plain.is_held());
        // The path leads elsewhere: to another directory, and through a link.
        let mut late = send(&held);
        fs::rename(&one, &two).unwrap();
        late.open().unwrap_err();
        fs::create_dir(&one).unwrap();
        late.open().unwrap_err();
        fs::remove_dir(&one).unwrap();
        std::os::unix::fs::symlink(&two, &one).unwrap();
        late.open().unwrap_err();
        assert!(!late.open_path().exists());
    }
}
