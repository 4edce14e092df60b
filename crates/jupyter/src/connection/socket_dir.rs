//! [`SocketDir`]: the directory of a kernel's sockets.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_stdext::private::{create_safe_dir, is_writable, safe_dir};
use rustix::fs::OFlags;

use super::owner::Owner;
use super::{private_dir, random_hex};
use crate::bounded_read;

/// Beginning of the directory names; ten hexadecimal digits follow.
const NAME_PREFIX: &str = "cellwright-";

/// The file that names the owner of the directory.
const OWNER_FILE: &str = "owner.json";

/// Beginning of the socket names; a dash and a number from 1 to 5 follow.
const STEM: &str = "k";

/// The path of a socket must have fewer bytes. This is the limit of macOS; Linux allows four more.
const SOCKET_PATH_LIMIT: usize = 104;

/// A directory without an owner file is stale after this time.
const NO_OWNER_GRACE: Duration = Duration::from_hours(1);

/// A directory for the sockets of a kernel, for the user alone. It is removed when the value is dropped.
#[derive(Debug)]
pub struct SocketDir {
    path: PathBuf,
}

/// No candidate can hold sockets.
#[derive(Debug, thiserror::Error)]
pub struct NoSocketDir {
    /// The candidates and their problems.
    pub tried: Vec<(PathBuf, SocketDirProblem)>,
}

/// Why a directory cannot hold sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketDirProblem {
    /// The paths of its sockets would be too long for the system.
    #[error("the path of a socket would have {length} bytes, more than {}", SOCKET_PATH_LIMIT - 1)]
    TooLong {
        /// Length of the paths in bytes.
        length: usize,
    },
    /// Its path does not fit into a connection file.
    #[error("its path is not UTF-8")]
    NotUtf8,
    /// The system reported an error, or the directory is not safe.
    #[error("it cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

impl fmt::Display for NoSocketDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no directory for the kernel's sockets")?;
        for (dir, problem) in &self.tried {
            write!(f, "; {}: {problem}", dir.display())?;
        }
        Ok(())
    }
}

impl SocketDir {
    /// Creates a directory in the first usable candidate. Candidates are created if they do not exist.
    pub fn new(candidates: &[PathBuf]) -> Result<Self, NoSocketDir> {
        let mut tried = Vec::new();
        for candidate in candidates {
            match Self::create_in(candidate) {
                Ok(dir) => return Ok(dir),
                Err(problem) => tried.push((candidate.clone(), problem)),
            }
        }
        Err(NoSocketDir { tried })
    }

    /// Finds the first usable candidate, without creating anything.
    pub fn find(candidates: &[PathBuf]) -> Result<&Path, NoSocketDir> {
        let mut tried = Vec::new();
        for candidate in candidates {
            match check_usable(candidate) {
                Ok(()) => return Ok(candidate),
                Err(problem) => tried.push((candidate.clone(), problem)),
            }
        }
        Err(NoSocketDir { tried })
    }

    fn create_in(candidate: &Path) -> Result<Self, SocketDirProblem> {
        // Before anything is created, and again without links, where the path may be longer.
        check_path(candidate)?;
        let candidate = create_safe_dir(candidate).map_err(io::Error::from)?;
        check_path(&candidate)?;
        let path = loop {
            let path = candidate.join(random_name()?);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        };
        // From here on an error removes the directory.
        let dir = Self { path };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.path.join(OWNER_FILE))?;
        let owner = serde_json::to_string(&Owner::current()).map_err(io::Error::from)?;
        file.write_all(owner.as_bytes())?;
        Ok(dir)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Beginning of the socket paths (see [`Transport::Ipc`](super::Transport::Ipc)).
    pub fn stem(&self) -> PathBuf {
        self.path.join(STEM)
    }

    /// Removes the socket directories that other Cellwright processes have left in the candidates. Returns their number. A
    /// directory stays unless it is certain that Cellwright created it and that its process has exited. Candidates to which
    /// other users can write are not searched: they may contain any number of entries.
    pub fn sweep(candidates: &[PathBuf]) -> usize {
        candidates
            .iter()
            .filter(|candidate| {
                fs::metadata(candidate).is_ok_and(|meta| private_dir::is_for_user(&meta))
            })
            .filter_map(|candidate| fs::read_dir(candidate).ok())
            .flat_map(Iterator::flatten)
            .filter(|entry| entry.file_name().to_str().is_some_and(is_socket_dir_name))
            .filter(|entry| remove_if_stale(&entry.path()).unwrap_or(false))
            .count()
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Checks that the path of a socket below the candidate would be valid.
fn check_path(candidate: &Path) -> Result<(), SocketDirProblem> {
    if !candidate.is_absolute() {
        let reason = "it is not an absolute path";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason).into());
    }
    if candidate.to_str().is_none() {
        return Err(SocketDirProblem::NotUtf8);
    }
    let socket = format!("{NAME_PREFIX}0123456789/{STEM}-5");
    let length = candidate.join(socket).as_os_str().as_bytes().len();
    if length >= SOCKET_PATH_LIMIT {
        return Err(SocketDirProblem::TooLong { length });
    }
    Ok(())
}

/// Checks that a socket directory can be created in the candidate, or in its closest existing parent.
fn check_usable(candidate: &Path) -> Result<(), SocketDirProblem> {
    check_path(candidate)?;
    let existing = candidate.ancestors().find(|dir| dir.exists());
    let dir = safe_dir(existing.unwrap_or(candidate)).map_err(io::Error::from)?;
    if is_writable(&dir) {
        return Ok(());
    }
    Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
}

fn random_name() -> io::Result<String> {
    Ok(format!("{NAME_PREFIX}{}", random_hex(5)?))
}

fn is_socket_dir_name(name: &str) -> bool {
    name.strip_prefix(NAME_PREFIX)
        .is_some_and(|rest| rest.len() == 10 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Removes a socket directory whose process has exited. Returns whether it did.
fn remove_if_stale(path: &Path) -> io::Result<bool> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() || !private_dir::is_owned_by_user(&meta) {
        return Ok(false);
    }
    match bounded_read::open_regular(&path.join(OWNER_FILE), OFlags::NOFOLLOW) {
        Ok(file) => {
            let is_stale = owner_has_exited(&file)?;
            if is_stale {
                fs::remove_dir_all(path)?;
            }
            Ok(is_stale)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Its process exited before it wrote the owner file. Only an empty directory is removed.
            let age = SystemTime::now().duration_since(meta.modified()?);
            let is_stale = age.is_ok_and(|age| age > NO_OWNER_GRACE);
            if is_stale {
                fs::remove_dir(path)?;
            }
            Ok(is_stale)
        }
        Err(error) => Err(error),
    }
}

fn owner_has_exited(file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    if !private_dir::is_owned_by_user(&meta) {
        return Ok(false);
    }
    let owner: Owner = serde_json::from_slice(&bounded_read::read_contents(file)?)?;
    Ok(owner.has_exited(meta.modified()?))
}
