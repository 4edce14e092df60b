//! [`PrivateDir`]: a directory that only this user can access; [`safe_dir`]: one in which other users replace nothing.

use std::fs::{self, DirBuilder, FileType, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::owner::{effective_user, is_trusted};

/// The mode bit of a directory in which only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateDirError {
    /// The path is not a directory.
    #[error("{} is not a directory but {what}", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// The directory belongs to another user.
    #[error("{} belongs to user {owner}", path.display())]
    WrongOwner {
        /// The directory.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
    },
    /// Other users have access to the directory.
    #[error("{} is accessible to other users (mode {mode:03o})", path.display())]
    TooPermissive {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user owns the directory or one above it.
    #[error("{} belongs to user {owner}, who can replace what is in it", path.display())]
    ParentOwner {
        /// The directory with this owner.
        path: PathBuf,
        /// The id of the owner.
        owner: u32,
    },
    /// Other users can write to the directory or one above it, which is not sticky.
    #[error("other users can replace what is in {} (mode {mode:03o})", path.display())]
    ParentWritable {
        /// The directory with this mode.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A directory operation failed.
    #[error("could not {step} {}", path.display())]
    Io {
        /// The operation.
        step: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl PrivateDirError {
    fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { step, path, source }
    }
}

impl From<PrivateDirError> for io::Error {
    fn from(error: PrivateDirError) -> Self {
        match error {
            PrivateDirError::Io { source, .. } => source,
            error => Self::new(io::ErrorKind::PermissionDenied, error),
        }
    }
}

/// A directory that only this user can access, below directories in which no other user can replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// Opens the directory; `None` if it does not exist. Access for other users is an error.
    pub fn open(path: &Path) -> Result<Option<Self>, PrivateDirError> {
        let (parent, name) = split(path)?;
        match resolve(&parent)? {
            Some(parent) => Self::open_resolved(parent.join(name)),
            None => Ok(None),
        }
    }

    /// Opens the directory; creates it and missing parents for this user alone.
    pub fn create(path: &Path) -> Result<Self, PrivateDirError> {
        let (parent, name) = split(path)?;
        let parent = match resolve(&parent)? {
            Some(parent) => parent,
            None => Self::create(&parent)?.path,
        };
        let path = parent.join(name);
        // The mode is set on creation: other users never have access.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(PrivateDirError::io("create", &path)(error)),
        }
        let missing = || PrivateDirError::io("create", &path)(io::ErrorKind::NotFound.into());
        Self::open_resolved(path.clone())?.ok_or_else(missing)
    }

    /// The path of the directory, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory whose parents are verified.
    fn open_resolved(path: PathBuf) -> Result<Option<Self>, PrivateDirError> {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PrivateDirError::io("inspect", &path)(error)),
        };
        check_is_dir(&path, &meta)?;
        if meta.uid() != effective_user() {
            let owner = meta.uid();
            return Err(PrivateDirError::WrongOwner { path, owner });
        }
        let mode = meta.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(PrivateDirError::TooPermissive { path, mode });
        }
        Ok(Some(Self { path }))
    }
}

/// Returns the path without links of a directory in which no other user can replace a file of this user: it and all
/// directories above belong to this user or to the system, and are sticky if others can write to them.
pub fn safe_dir(path: &Path) -> Result<PathBuf, PrivateDirError> {
    let missing = || PrivateDirError::io("find", path)(io::ErrorKind::NotFound.into());
    resolve(&absolute(path)?)?.ok_or_else(missing)
}

/// Like [`safe_dir`]; a missing directory is created for this user alone.
pub fn create_safe_dir(path: &Path) -> Result<PathBuf, PrivateDirError> {
    match resolve(&absolute(path)?)? {
        Some(dir) => Ok(dir),
        None => Ok(PrivateDir::create(path)?.path),
    }
}

/// Whether this user can create files in a directory.
pub fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// The parent and the name of a directory.
fn split(path: &Path) -> Result<(PathBuf, PathBuf), PrivateDirError> {
    let absolute = absolute(path)?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), name.into())),
        _ => Err(PrivateDirError::io("create", path)(
            io::ErrorKind::InvalidInput.into(),
        )),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, PrivateDirError> {
    std::path::absolute(path).map_err(PrivateDirError::io("find", path))
}

/// Resolves the links of a directory and checks it and all directories above; `None` if it does not exist.
fn resolve(dir: &Path) -> Result<Option<PathBuf>, PrivateDirError> {
    let resolved = match fs::canonicalize(dir) {
        Ok(resolved) => resolved,
        // A dangling link exists, but leads nowhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.is_symlink() => {
            return Ok(None);
        }
        Err(error) => return Err(PrivateDirError::io("find", dir)(error)),
    };
    // From the root down: no other user can replace an entry of a directory that is checked already.
    let ancestors: Vec<&Path> = resolved.ancestors().collect();
    for ancestor in ancestors.into_iter().rev() {
        let meta = fs::symlink_metadata(ancestor).map_err(PrivateDirError::io("inspect", ancestor));
        check_safe(ancestor, &meta?)?;
    }
    Ok(Some(resolved))
}

fn check_safe(dir: &Path, meta: &Metadata) -> Result<(), PrivateDirError> {
    check_is_dir(dir, meta)?;
    let (path, owner) = (dir.to_owned(), meta.uid());
    if !is_trusted(owner) {
        return Err(PrivateDirError::ParentOwner { path, owner });
    }
    if is_writable_by_others(meta) && meta.mode() & STICKY == 0 {
        let mode = meta.mode() & 0o7777;
        return Err(PrivateDirError::ParentWritable { path, mode });
    }
    Ok(())
}

/// Whether users other than the owner can write to a directory. A group with the number of its owner has no other members:
/// systems create it for each user, often together with a file mode mask that lets the group write.
fn is_writable_by_others(meta: &Metadata) -> bool {
    let own_group = meta.gid() == meta.uid();
    meta.mode() & if own_group { 0o002 } else { 0o022 } != 0
}

fn check_is_dir(path: &Path, meta: &Metadata) -> Result<(), PrivateDirError> {
    if meta.is_dir() {
        return Ok(());
    }
    Err(PrivateDirError::NotADirectory {
        path: path.to_owned(),
        what: describe_type(meta.file_type()),
    })
}

fn describe_type(found: FileType) -> &'static str {
    if found.is_symlink() {
        "a symbolic link"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_file() {
        "a file"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn base() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    #[test]
    fn only_a_private_directory_is_accepted() {
        let (_base, base) = base();
        let path = base.join("deep/er/dir");
        assert_eq!(PrivateDir::open(&path).unwrap(), None);
        let dir = PrivateDir::create(&path).unwrap();
        for created in [path.as_path(), &base.join("deep/er"), &base.join("deep")] {
            assert_eq!(fs::metadata(created).unwrap().mode() & 0o777, 0o700);
        }
        assert_eq!(PrivateDir::create(&path).unwrap(), dir);
        assert_eq!(PrivateDir::open(&path).unwrap(), Some(dir));
        set_mode(&path, 0o710);
        assert!(matches!(
            PrivateDir::create(&path),
            Err(PrivateDirError::TooPermissive { mode: 0o710, .. })
        ));
        set_mode(&path, 0o700);
        let link = base.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for result in [PrivateDir::create(&link).map(Some), PrivateDir::open(&link)] {
            assert!(matches!(
                result,
                Err(PrivateDirError::NotADirectory { what, .. }) if what == "a symbolic link"
            ));
        }
        // A link above leads to the directory that was checked.
        let below = PrivateDir::create(&link.join("below")).unwrap();
        assert_eq!(below.path(), path.join("below"));
        fs::write(base.join("file"), "").unwrap();
        for path in ["file", "file/below"] {
            assert!(PrivateDir::create(&base.join(path)).is_err(), "{path}");
        }
        let pipe = base.join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = PrivateDir::create(&pipe).unwrap_err().to_string();
        assert!(error.ends_with("is not a directory but a pipe"), "{error}");
        let dangling = base.join("dangling");
        std::os::unix::fs::symlink(base.join("none"), &dangling).unwrap();
        assert!(PrivateDir::create(&dangling.join("dir")).is_err());
    }

    #[test]
    fn a_writable_directory_above_must_be_sticky() {
        let (_base, base) = base();
        let shared = base.join("shared");
        fs::create_dir(&shared).unwrap();
        let path = shared.join("a/b");
        for (mode, is_safe) in [
            (0o777, false),
            (0o757, false),
            (0o1777, true),
            (0o755, true),
            (0o711, true),
        ] {
            set_mode(&shared, mode);
            let created = PrivateDir::create(&path);
            assert_eq!(created.is_ok(), is_safe, "{mode:o}: {created:?}");
            assert_eq!(create_safe_dir(&path).is_ok(), is_safe, "{mode:o}");
            assert_eq!(safe_dir(&shared).is_ok(), is_safe, "{mode:o}");
        }
        set_mode(&shared, 0o777);
        let error = safe_dir(&path).unwrap_err().to_string();
        assert!(
            error.contains("other users can replace what is in") && error.contains("mode 777"),
            "{error}"
        );
    }
}
