//! [`RuntimeDir`]: the directory with the socket and the locks of the host. It is used only if other users have no access.

mod failure;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cellwright_kernel::process::daemon;

use crate::env;

/// Lock file that a host holds while it runs; it contains the holder.
pub const HOST_LOCK: &str = "host.lock";

/// Lock file that a command holds while it starts a host.
pub const START_LOCK: &str = "start.lock";

/// File with the process id and the socket of the host.
pub const HOST_INFO: &str = "host.json";

/// Socket of the host, if its path is short enough.
const HOST_SOCKET: &str = "host.sock";

/// Longest path of a socket, in bytes. Systems allow 104 or 108.
pub const SOCKET_PATH_MAX: usize = 100;

/// Subdirectory for the sockets of kernels.
const KERNEL_SOCKET_DIR: &str = "kernels";

/// Longest name of a kernel's socket in its directory, in bytes.
const SOCKET_NAME_MAX: usize = 40;

/// Why a directory cannot hold sockets and locks.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// The path is not a directory.
    #[error("{} is not a directory but {what}", path.display())]
    NotADirectory { path: PathBuf, what: &'static str },
    /// The directory belongs to another user.
    #[error("{} belongs to user {owner}", path.display())]
    WrongOwner { path: PathBuf, owner: u32 },
    /// Other users have access to the directory.
    #[error("{} is accessible to other users (mode {mode:03o})", path.display())]
    TooPermissive { path: PathBuf, mode: u32 },
    /// No private directory has a path that is short enough for a socket.
    #[error("the path of {} is too long for a socket", path.display())]
    SocketPathTooLong { path: PathBuf },
    /// A file or directory operation failed.
    #[error("could not {step} {}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl RuntimeDirError {
    /// Wraps an I/O error, for `map_err`.
    fn io(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { step, path, source }
    }
}

/// A directory that only this user can access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDir {
    path: PathBuf,
}

/// The path of this user's runtime directory.
pub fn default_path() -> PathBuf {
    if let Some(path) = env::value(env::HOST_DIR) {
        let path = PathBuf::from(path);
        return std::path::absolute(&path).unwrap_or(path);
    }
    let user = daemon::effective_user();
    // After `su` or in a container the variable often names another user's directory, or none.
    let runtime = env::value(env::XDG_RUNTIME_DIR).map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{user}"));
    for base in runtime.into_iter().chain([usual]) {
        let is_own = fs::metadata(&base).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if base.is_absolute() && is_own {
            return base.join("cellwright");
        }
    }
    per_user_temp_path(&std::env::temp_dir())
}

/// Paths of private directories, in order of preference. The later ones are shorter, for sockets.
pub fn candidate_paths() -> Vec<PathBuf> {
    let mut all = vec![default_path()];
    all.extend(short_paths());
    all.dedup();
    all
}

/// Shorter paths of private directories.
fn short_paths() -> [PathBuf; 2] {
    [std::env::temp_dir(), PathBuf::from("/tmp")].map(|temporary| per_user_temp_path(&temporary))
}

/// The directory in a shared temporary directory, for users without a runtime directory.
fn per_user_temp_path(temporary: &Path) -> PathBuf {
    let name = format!("cellwright-execution-{}", daemon::effective_user());
    let temporary = std::path::absolute(temporary).unwrap_or_else(|_| temporary.to_owned());
    temporary.join(name)
}

/// The private directory for the sockets of kernels, created if it is missing. `None`: kernels must use TCP.
pub fn create_kernel_socket_dir() -> Option<PathBuf> {
    let create = |path: PathBuf| {
        let parent = RuntimeDir::create(path.parent()?.to_owned()).ok()?;
        let dir = RuntimeDir::create(parent.file_path(KERNEL_SOCKET_DIR)).ok()?;
        Some(dir.path().to_owned())
    };
    kernel_socket_dir_candidates().into_iter().find_map(create)
}

/// Directories for the sockets of kernels, in order of preference.
pub fn kernel_socket_dir_candidates() -> Vec<PathBuf> {
    let all = candidate_paths().into_iter();
    let mut all: Vec<PathBuf> = all.map(|dir| dir.join(KERNEL_SOCKET_DIR)).collect();
    all.retain(|dir| dir.as_os_str().len() + SOCKET_NAME_MAX <= SOCKET_PATH_MAX);
    all
}

impl RuntimeDir {
    /// Opens the directory; `None` if it does not exist. Access for other users is an error.
    pub fn open(path: PathBuf) -> Result<Option<Self>, RuntimeDirError> {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RuntimeDirError::io("inspect", path)(error)),
        };
        if !meta.is_dir() {
            let what = if meta.is_symlink() {
                "a symbolic link"
            } else {
                "a file"
            };
            return Err(RuntimeDirError::NotADirectory { path, what });
        }
        if meta.uid() != daemon::effective_user() {
            let owner = meta.uid();
            return Err(RuntimeDirError::WrongOwner { path, owner });
        }
        let mode = meta.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(RuntimeDirError::TooPermissive { path, mode });
        }
        Ok(Some(Self { path }))
    }

    /// Opens the directory; creates it if it does not exist.
    pub fn create(path: PathBuf) -> Result<Self, RuntimeDirError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(RuntimeDirError::io("create", parent))?;
        }
        // The mode is set on creation: other users never have access.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(RuntimeDirError::io("create", path)(error)),
        }
        match Self::open(path.clone())? {
            Some(dir) => Ok(dir),
            None => Err(RuntimeDirError::io("create", path)(
                io::ErrorKind::NotFound.into(),
            )),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the directory.
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The socket of the host of this directory. If its path would be too long, it is in another private directory.
    pub fn socket_path(&self) -> Result<PathBuf, RuntimeDirError> {
        let path = self.file_path(HOST_SOCKET);
        if path.as_os_str().len() <= SOCKET_PATH_MAX {
            return Ok(path);
        }
        let name = format!("{:016x}.sock", fnv1a(self.path.as_os_str().as_bytes()));
        for dir in short_paths() {
            let short = dir.join(&name);
            if short.as_os_str().len() <= SOCKET_PATH_MAX {
                Self::create(dir)?;
                return Ok(short);
            }
        }
        Err(RuntimeDirError::SocketPathTooLong { path })
    }

    /// Opens a lock file; creates it if it does not exist.
    pub fn open_lock_file(&self, name: &str) -> Result<File, RuntimeDirError> {
        let path = self.file_path(name);
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(RuntimeDirError::io("open", path))
    }
}

/// FNV-1a hash. It must not change between versions: commands of all versions must find the same socket.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_private_directory_is_accepted() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("deep/er/host");
        assert_eq!(RuntimeDir::open(path.clone()).unwrap(), None);
        let dir = RuntimeDir::create(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(RuntimeDir::create(path.clone()).unwrap(), dir);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o710)).unwrap();
        let error = RuntimeDir::create(path.clone()).unwrap_err();
        assert!(matches!(
            error,
            RuntimeDirError::TooPermissive { mode: 0o710, .. }
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let error = RuntimeDir::create(link).unwrap_err();
        assert!(matches!(error, RuntimeDirError::NotADirectory { .. }));
    }

    #[test]
    fn a_long_directory_gets_a_short_socket_path() {
        let base = tempfile::tempdir().unwrap();
        let short = RuntimeDir::create(base.path().join("h")).unwrap();
        assert_eq!(
            short.socket_path().unwrap(),
            base.path().join("h/host.sock")
        );
        let long = RuntimeDir::create(base.path().join("x".repeat(120))).unwrap();
        let socket = long.socket_path().unwrap();
        assert!(socket.as_os_str().len() <= SOCKET_PATH_MAX, "{socket:?}");
        assert_eq!(long.socket_path().unwrap(), socket);
        let longer = RuntimeDir::create(base.path().join("x".repeat(121))).unwrap();
        assert_ne!(longer.socket_path().unwrap(), socket);
    }
}
