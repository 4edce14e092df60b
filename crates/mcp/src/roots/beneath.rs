//! Opens a path without leaving a directory: with `openat2` of Linux, or, where that is not available, component by component.

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

/// Opens a path relative to a root. An error if any part of it leads out of the root; `None` if the system has no descriptors
/// that name files.
#[cfg(target_os = "linux")]
pub(super) fn open_beneath(
    root: &OwnedFd,
    inside: &Path,
    target: OpenTarget,
) -> Result<Option<OwnedFd>, Errno> {
    use rustix::fs::{Mode, ResolveFlags};

    let path = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, walk::flags(target), Mode::empty(), resolve) {
        Ok(fd) => Ok(Some(fd)),
        // Older systems do not have the call, and some containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => walk::open_by_component(root, inside, target).map(Some),
        Err(error) => Err(error),
    }
}

/// Other systems have no path for an open directory.
#[cfg(not(target_os = "linux"))]
pub(super) fn open_beneath(_: &OwnedFd, _: &Path, _: OpenTarget) -> Result<Option<OwnedFd>, Errno> {
    Ok(None)
}

/// The path of an open file.
pub(super) fn real_path(fd: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;

    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

#[cfg(target_os = "linux")]
mod walk {
    use std::collections::VecDeque;
    use std::ffi::{OsStr, OsString};
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Component, Path, PathBuf};

    use rustix::fs::{AtFlags, FileType, Mode, OFlags};
    use rustix::io::Errno;

    use super::OpenTarget;

    /// How many links a path may have, as in Linux.
    const LINKS_MAX: usize = 40;

    pub(super) fn flags(target: OpenTarget) -> OFlags {
        match target {
            OpenTarget::Directory => OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY,
            OpenTarget::Any => OFlags::PATH | OFlags::CLOEXEC,
        }
    }

    /// Opens each component in the directory before it, without following links: their targets are opened in the same way.
    pub(super) fn open_by_component(
        root: &OwnedFd,
        inside: &Path,
        target: OpenTarget,
    ) -> Result<OwnedFd, Errno> {
        // The directories from the root to the current one, which `..` in a link leaves.
        let mut opened = vec![root.try_clone().map_err(|_| Errno::MFILE)?];
        let mut rest: VecDeque<OsString> = components(inside)?;
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let Some(dir) = opened.last() else {
                return Err(Errno::XDEV);
            };
            if name == OsStr::new("..") {
                opened.pop();
                if opened.is_empty() {
                    return Err(Errno::XDEV);
                }
                continue;
            }
            let fd = rustix::fs::openat(
                dir,
                &name,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let found = rustix::fs::statat(&fd, "", AtFlags::EMPTY_PATH)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP);
                    }
                    let link = rustix::fs::readlinkat(&fd, "", Vec::new())?;
                    let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
                    for part in components(&link)?.into_iter().rev() {
                        rest.push_front(part);
                    }
                }
                FileType::Directory => opened.push(fd),
                _ if !rest.is_empty() || target == OpenTarget::Directory => {
                    return Err(Errno::NOTDIR);
                }
                _ => return Ok(fd),
            }
        }
        opened.pop().ok_or(Errno::XDEV)
    }

    /// The components of a relative path. An absolute one leads out of the root.
    fn components(path: &Path) -> Result<VecDeque<OsString>, Errno> {
        let component = |part: Component<'_>| match part {
            Component::Normal(name) => Some(Ok(name.to_owned())),
            Component::ParentDir => Some(Ok("..".into())),
            Component::CurDir => None,
            Component::RootDir | Component::Prefix(_) => Some(Err(Errno::XDEV)),
        };
        path.components().filter_map(component).collect()
    }

    #[cfg(test)]
    mod tests;
}
