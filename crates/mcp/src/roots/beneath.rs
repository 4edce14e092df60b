//! Opens a path without leaving a directory, with `openat2` of Linux.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Which kind of file a path must name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenTarget {
    /// A directory.
    Directory,
    /// Any kind of file.
    Any,
}

/// Opens a path relative to a root. An error if any part of it leads out of the root; `None` if the system cannot check
/// that in one step.
#[cfg(target_os = "linux")]
pub(super) fn open_beneath(
    root: &Path,
    inside: &Path,
    target: OpenTarget,
) -> Result<Option<OwnedFd>, Errno> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};

    let root = match std::fs::File::open(root) {
        Ok(root) => root,
        Err(error) => {
            let code = error.raw_os_error().unwrap_or_default();
            return Err(Errno::from_raw_os_error(code));
        }
    };
    let inside = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if target == OpenTarget::Directory {
        flags |= OFlags::DIRECTORY;
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&root, inside, flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOSYS) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Other systems have no `openat2`.
#[cfg(not(target_os = "linux"))]
pub(super) fn open_beneath(_: &Path, _: &Path, _: OpenTarget) -> Result<Option<OwnedFd>, Errno> {
    Ok(None)
}

/// The path of an open file.
pub(super) fn real_path(fd: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;

    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}
