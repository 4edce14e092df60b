//! Temporary files and directories. The first usable directory of [`base_dirs`] holds them.

use std::fmt;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::dir::{PrivateDir, safe_dir};
use super::owner::effective_user;

/// The directories that systems have, for use if `TMPDIR` is not set or not usable. The last one is in memory, for containers
/// whose other directories are read-only or not sticky.
const SYSTEM_DIRS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// No directory for temporary files is usable.
#[derive(Debug)]
pub struct NoTemporaryDir {
    /// The directories and their problems, in order of preference.
    pub tried: Vec<(PathBuf, String)>,
}

impl fmt::Display for NoTemporaryDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is no directory for temporary files; set TMPDIR to one that belongs to you",
        )?;
        for (dir, problem) in &self.tried {
            write!(f, "; {}: {problem}", dir.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for NoTemporaryDir {}

impl From<NoTemporaryDir> for io::Error {
    fn from(error: NoTemporaryDir) -> Self {
        Self::other(error)
    }
}

/// Creates a temporary directory with a random name that begins with `prefix`, for this user alone. It is removed when the
/// value is dropped.
pub fn create_dir(prefix: &str) -> Result<TempDir, NoTemporaryDir> {
    first_usable(|base| create_dir_in(&safe_dir(base)?, prefix))
}

/// Like [`create_dir`], in the user's directory if that is usable. Its contents can be listed without listing what other users
/// have created.
pub fn create_user_dir(prefix: &str) -> Result<TempDir, NoTemporaryDir> {
    let create = |base: &Path| {
        let dir = PrivateDir::create(&user_dir(&safe_dir(base)?))?;
        create_dir_in(dir.path(), prefix)
    };
    first_usable(create).or_else(|_| create_dir(&format!("cellwright-{prefix}")))
}

/// Creates a file without a name. The system removes it when it is closed. Other users cannot replace or open it, even if the
/// directory belongs to one of them.
pub fn create_file() -> Result<File, NoTemporaryDir> {
    first_usable(create_file_in)
}

/// Creates a file without a name on the file system of a directory.
pub fn create_file_in(dir: &Path) -> io::Result<File> {
    tempfile::tempfile_in(dir)
}

/// The directories for temporary files, in order of preference. They may be missing or unsafe.
pub fn base_dirs() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    let chosen = std::path::absolute(std::env::temp_dir()).ok();
    for dir in chosen.into_iter().chain(SYSTEM_DIRS.map(PathBuf::from)) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

/// The directories of this user below those of [`base_dirs`] that are safe. Their name is fixed: another user may have taken
/// it, which [`PrivateDir`] reports.
pub fn user_dirs() -> Vec<PathBuf> {
    let bases = base_dirs().into_iter();
    let safe = bases.filter_map(|base| safe_dir(&base).ok());
    safe.map(|base| user_dir(&base)).collect()
}

/// The directory of this user below the preferred one of [`base_dirs`], whether or not that is safe.
pub fn default_user_dir() -> PathBuf {
    user_dir(&std::env::temp_dir())
}

fn user_dir(base: &Path) -> PathBuf {
    base.join(format!("cellwright-{}", effective_user()))
}

fn create_dir_in(dir: &Path, prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(prefix)
        // By default, other users could read the directory.
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(dir)
}

/// Creates something in the first usable base directory.
fn first_usable<T>(create: impl Fn(&Path) -> io::Result<T>) -> Result<T, NoTemporaryDir> {
    let mut tried = Vec::new();
    for base in base_dirs() {
        match create(&base) {
            Ok(created) => return Ok(created),
            Err(error) => tried.push((base, error.to_string())),
        }
    }
    Err(NoTemporaryDir { tried })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn temporary_directories_are_private_and_removed() {
        for create in [create_dir, create_user_dir] {
            let dir = create("test-").unwrap();
            let path = dir.path().to_owned();
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(name.contains("test-"), "{name}");
            drop(dir);
            assert!(!path.exists());
        }
    }
}
