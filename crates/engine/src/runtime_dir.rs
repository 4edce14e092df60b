//! [`RuntimeDir`]: the directory with the socket and the locks of the host. It is used only if other users have no access.

mod failure;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cellwright_stdext::private::{
    self, PrivateDir, PrivateDirError, effective_user, safe_dir, temporary,
};

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

/// Subdirectory for connection files.
const CONNECTION_FILE_DIR: &str = "jupyter";

/// Why a directory cannot hold sockets and locks.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// Other users have access to the directory, or it could not be created.
    #[error(transparent)]
    Dir(#[from] PrivateDirError),
    /// No private directory has a path that is short enough for a socket.
    #[error("the path of {} is too long for a socket", path.display())]
    SocketPathTooLong { path: PathBuf },
    /// A file of the directory could not be opened.
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
    dir: PrivateDir,
}

/// The path of this user's runtime directory. All commands of a user must find the same host, so the name is fixed; another
/// user who takes it first causes an error.
pub fn default_path() -> PathBuf {
    if let Some(path) = env::value(env::HOST_DIR) {
        let path = PathBuf::from(path);
        return std::path::absolute(&path).unwrap_or(path);
    }
    let user = effective_user();
    // After `su` or in a container the variable often names another user's directory, or none.
    let runtime = env::value(env::XDG_RUNTIME_DIR).map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{user}"));
    for base in runtime.into_iter().chain([usual]) {
        let is_own = fs::metadata(&base).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if base.is_absolute() && is_own && safe_dir(&base).is_ok() {
            return base.join("cellwright");
        }
    }
    let first = temporary::user_dirs().into_iter().next();
    // Opening it reports the reason why no base directory is safe.
    first.unwrap_or_else(temporary::default_user_dir)
}

/// Directories for the sockets of kernels, in order of preference. The last ones are shared temporary directories, in which
/// each kernel gets a directory with a random name: there, no other user can take the name first.
pub fn kernel_socket_dirs() -> Vec<PathBuf> {
    let own = std::iter::once(default_path()).chain(temporary::user_dirs());
    let mut all: Vec<PathBuf> = Vec::new();
    for dir in own
        .map(|dir| dir.join(KERNEL_SOCKET_DIR))
        .chain(temporary::base_dirs())
    {
        if !all.contains(&dir) {
            all.push(dir);
        }
    }
    all
}

/// The directory for connection files of users without a home directory. If other users have taken the names of all private
/// directories, it is a shared temporary directory, in which the files have random names.
pub fn connection_file_dir() -> PathBuf {
    let private = std::iter::once(default_path()).chain(temporary::user_dirs());
    let mut usable = private.filter_map(|dir| PrivateDir::create(&dir).ok());
    if let Some(dir) = usable.next() {
        return dir.path().join(CONNECTION_FILE_DIR);
    }
    let mut shared = temporary::base_dirs().into_iter();
    let safe = shared.find_map(|dir| safe_dir(&dir).ok());
    safe.unwrap_or_else(|| default_path().join(CONNECTION_FILE_DIR))
}

impl RuntimeDir {
    /// Opens the directory; `None` if it does not exist. Access for other users is an error.
    pub fn open(path: &Path) -> Result<Option<Self>, RuntimeDirError> {
        Ok(PrivateDir::open(path)?.map(|dir| Self { dir }))
    }

    /// Opens the directory; creates it if it does not exist.
    pub fn create(path: &Path) -> Result<Self, RuntimeDirError> {
        let dir = PrivateDir::create(path)?;
        Ok(Self { dir })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The path of a file in the directory.
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The socket of the host of this directory. If its path would be too long, it is in another private directory.
    pub fn socket_path(&self) -> Result<PathBuf, RuntimeDirError> {
        let path = self.file_path(HOST_SOCKET);
        if path.as_os_str().len() <= SOCKET_PATH_MAX {
            return Ok(path);
        }
        let name = format!("{:016x}.sock", fnv1a(self.path().as_os_str().as_bytes()));
        for dir in temporary::user_dirs() {
            let short = dir.join(&name);
            let is_short = short.as_os_str().len() <= SOCKET_PATH_MAX;
            if is_short && PrivateDir::create(&dir).is_ok() {
                return Ok(short);
            }
        }
        Err(RuntimeDirError::SocketPathTooLong { path })
    }

    /// Opens a lock file; creates it if it does not exist.
    pub fn open_lock_file(&self, name: &str) -> Result<File, RuntimeDirError> {
        let path = self.file_path(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private::open_file(&options, &path).map_err(RuntimeDirError::io("open", path))
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
    use super::*;

    #[test]
    fn a_long_directory_gets_a_short_socket_path() {
        let base = tempfile::tempdir().unwrap();
        let short = RuntimeDir::create(&base.path().join("h")).unwrap();
        assert_eq!(
            short.socket_path().unwrap(),
            base.path().join("h/host.sock")
        );
        let long = RuntimeDir::create(&base.path().join("x".repeat(120))).unwrap();
        let socket = long.socket_path().unwrap();
        assert!(socket.as_os_str().len() <= SOCKET_PATH_MAX, "{socket:?}");
        assert_eq!(long.socket_path().unwrap(), socket);
        let longer = RuntimeDir::create(&base.path().join("x".repeat(121))).unwrap();
        assert_ne!(longer.socket_path().unwrap(), socket);
    }
}
