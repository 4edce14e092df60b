//! [`Folder`]: where commands and the host meet. It is the user's alone, or it is not used.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cellwright_kernel::process::background;

use super::error::HostError;
use crate::env;

/// Held by a host as long as it lives; says who holds it.
pub(super) const HOST_LOCK: &str = "host.lock";

/// Held by a command while it starts a host.
pub(super) const START_LOCK: &str = "start.lock";

/// Tells commands where the host is.
pub(super) const RECORD: &str = "host.json";

/// Where the host listens, if the path is short enough.
const SOCKET: &str = "host.sock";

/// Systems take about this many bytes for the path of a socket (104 on some, 108 on others).
pub(crate) const LONGEST_SOCKET: usize = 100;

/// A folder that was found to be ours alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// Which folder it is for this user.
pub(crate) fn choose() -> PathBuf {
    if let Some(told) = env::value(env::HOST_DIR) {
        let told = PathBuf::from(told);
        return std::path::absolute(&told).unwrap_or(told);
    }
    let user = background::user();
    // After `su` or in a container the variable often leads to somebody else's folder, or nowhere.
    let runtime = env::value(env::XDG_RUNTIME_DIR).map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{user}"));
    for base in runtime.into_iter().chain([usual]) {
        let ours = fs::metadata(&base).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if base.is_absolute() && ours {
            return base.join("cellwright");
        }
    }
    shared(&std::env::temp_dir())
}

/// Folders of ours, in order of preference: the later ones are for what needs a shorter path.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let mut all = vec![choose()];
    all.extend(short());
    all.dedup();
    all
}

/// Folders as private as the chosen one, with shorter names.
fn short() -> [PathBuf; 2] {
    [std::env::temp_dir(), PathBuf::from("/tmp")].map(|temporary| shared(&temporary))
}

/// The folder for whoever has none of their own.
fn shared(temporary: &Path) -> PathBuf {
    let name = format!("cellwright-run-{}", background::user());
    let temporary = std::path::absolute(temporary).unwrap_or_else(|_| temporary.to_owned());
    temporary.join(name)
}

impl Folder {
    /// The folder if it is there. One that is not ours alone is an error.
    pub(crate) fn existing(path: PathBuf) -> Result<Option<Self>, HostError> {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(HostError::file("look at", path)(error)),
        };
        if !meta.is_dir() {
            let what = if meta.is_symlink() {
                "a symbolic link"
            } else {
                "a file"
            };
            return Err(HostError::NotAFolder { path, what });
        }
        if meta.uid() != background::user() {
            let owner = meta.uid();
            return Err(HostError::NotOurs { path, owner });
        }
        let mode = meta.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(HostError::TooOpen { path, mode });
        }
        Ok(Some(Self { path }))
    }

    /// The folder, made if it is not there.
    pub(crate) fn make(path: PathBuf) -> Result<Self, HostError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(HostError::file("make", parent))?;
        }
        // It is never wider than this, not even for a moment.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(HostError::file("make", path)(error)),
        }
        match Self::existing(path.clone())? {
            Some(folder) => Ok(folder),
            None => Err(HostError::file("make", path)(
                io::ErrorKind::NotFound.into(),
            )),
        }
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where a host of this folder listens: in it, or in a place with a shorter name that is as
    /// private.
    pub(super) fn socket(&self) -> Result<PathBuf, HostError> {
        let path = self.file(SOCKET);
        if path.as_os_str().len() <= LONGEST_SOCKET {
            return Ok(path);
        }
        let name = format!(
            "{:016x}.sock",
            fingerprint(self.path.as_os_str().as_bytes())
        );
        for folder in short() {
            let short = folder.join(&name);
            if short.as_os_str().len() <= LONGEST_SOCKET {
                Self::make(folder)?;
                return Ok(short);
            }
        }
        Err(HostError::TooLong { path })
    }

    /// Opens a lock file, made if it is not there.
    pub(super) fn lock_file(&self, name: &str) -> Result<File, HostError> {
        let path = self.file(name);
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(HostError::file("open", path))
    }
}

/// The same number for the same bytes, also in another version: FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_ours_alone_or_refused() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("deep/er/host");
        assert_eq!(Folder::existing(path.clone()).unwrap(), None);
        let folder = Folder::make(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(Folder::make(path.clone()).unwrap(), folder);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o710)).unwrap();
        let refused = Folder::make(path.clone()).unwrap_err();
        assert!(matches!(refused, HostError::TooOpen { mode: 0o710, .. }));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let refused = Folder::make(link).unwrap_err();
        assert!(matches!(refused, HostError::NotAFolder { .. }));
    }

    #[test]
    fn a_long_path_gets_a_short_socket() {
        let base = tempfile::tempdir().unwrap();
        let short = Folder::make(base.path().join("h")).unwrap();
        assert_eq!(short.socket().unwrap(), base.path().join("h/host.sock"));
        let long = Folder::make(base.path().join("x".repeat(120))).unwrap();
        let socket = long.socket().unwrap();
        assert!(socket.as_os_str().len() <= LONGEST_SOCKET, "{socket:?}");
        assert_eq!(long.socket().unwrap(), socket);
        let longer = Folder::make(base.path().join("x".repeat(121))).unwrap();
        assert_ne!(longer.socket().unwrap(), socket);
    }
}
