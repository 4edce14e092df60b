//! The runner's Python files, carried in this crate, put where an interpreter can import them.
//!
//! They stay in a folder named after their content, so that the interpreter's compiled copies are
//! found again and starting stays quick. Every start looks whether they are still as they were:
//! cleaners of temporary folders have taken them away before.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_128;

use crate::error::KernelError;

/// What is given to the interpreter on its command line.
pub(super) const BOOT: &str = include_str!("../../../python/boot.py");

const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// Makes sure that the files are in one of `folders`; says in which.
pub(in crate::backend) fn stage(folders: &[PathBuf]) -> Result<PathBuf, KernelError> {
    let mut trouble = None;
    for folder in folders {
        let target = folder.join(folder_name());
        match stage_in(&target) {
            Ok(()) => return Ok(target),
            Err(source) => {
                trouble = Some(KernelError::Staging {
                    folder: target,
                    source,
                });
            }
        }
    }
    Err(trouble.unwrap_or_else(|| KernelError::Staging {
        folder: PathBuf::new(),
        source: io::Error::new(io::ErrorKind::NotFound, "no folder to put them in"),
    }))
}

/// The name of the folder that this version's files are in.
pub fn folder_name() -> String {
    format!("runner-{:016x}", content_hash())
}

/// A name for our folder in one that all users share.
pub fn shared_name() -> String {
    format!("cellwright-{}", rustix::process::geteuid().as_raw())
}

fn content_hash() -> u128 {
    let mut hasher = XxHash3_128::new();
    for (name, content) in FILES {
        hasher.write(name.as_bytes());
        hasher.write(&[0]);
        hasher.write(content);
    }
    hasher.finish_128() >> 64
}

fn stage_in(target: &Path) -> io::Result<()> {
    make_folder(target)?;
    for (name, content) in FILES {
        let file = target.join(name);
        if fs::read(&file).is_ok_and(|there| there == *content) {
            continue;
        }
        if let Some(folder) = file.parent() {
            make_folder(folder)?;
        }
        replace(&file, content)?;
    }
    Ok(())
}

/// A folder that only we can write to. Code will be run from it.
fn make_folder(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let found = folder.metadata()?;
    let mine = found.uid() == rustix::process::geteuid().as_raw();
    if !mine || found.mode() & 0o022 != 0 {
        let why = "somebody else could change the files in it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Writes a file so that nobody ever sees a half of it.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = file.with_extension(format!("{}-{number}.new", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut open| open.write_all(content))
        .and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _removed = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_away_or_changed_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("cache")];
        let target = stage(&folders).unwrap();
        let main = target.join("cellwright_runner/main.py");
        let content = fs::read(&main).unwrap();
        fs::write(&main, "print('changed')").unwrap();
        fs::remove_file(target.join("cellwright_runner/__init__.py")).unwrap();
        assert_eq!(stage(&folders).unwrap(), target);
        assert_eq!(fs::read(&main).unwrap(), content);
        assert!(target.join("cellwright_runner/__init__.py").exists());
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        let target = stage(std::slice::from_ref(&open)).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o777)).unwrap();
        let safe = folder.path().join("safe");
        let chosen = stage(&[open.clone(), safe.clone()]).unwrap();
        assert!(chosen.starts_with(safe));
        assert!(matches!(stage(&[open]), Err(KernelError::Staging { .. })));
    }
}
