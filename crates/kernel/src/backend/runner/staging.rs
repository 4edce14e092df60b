//! Writes the runner's Python files, which are embedded in this crate, to a directory where an interpreter can import them.
//!
//! The directory is named after a hash of their content and is kept, so that the interpreter reuses its compiled
//! copies and starts quickly. Every start checks that the files are complete and unchanged:
//! cleaners of temporary directories have removed some of them before.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_128;

use crate::error::KernelError;

/// The program on the interpreter's command line.
pub(super) const BOOT_SCRIPT: &str = include_str!("../../../python/boot.py");

const STAGED_FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// Writes the files into the first usable one of `directories`, if they are not there. Returns their directory.
pub(in crate::backend) fn stage(dirs: &[PathBuf]) -> Result<PathBuf, KernelError> {
    let mut error = None;
    for dir in dirs {
        let target = dir.join(staged_dir_name());
        match stage_in(&target) {
            Ok(()) => return Ok(target),
            Err(source) => {
                error = Some(KernelError::Staging {
                    dir: target,
                    source,
                });
            }
        }
    }
    Err(error.unwrap_or_else(|| KernelError::Staging {
        dir: PathBuf::new(),
        source: io::Error::new(io::ErrorKind::NotFound, "no directory is configured"),
    }))
}

/// The name of the directory with the files of this version.
pub fn staged_dir_name() -> String {
    format!("runner-{:016x}", content_hash())
}

/// A directory name for this user, for use in a directory that all users share.
pub fn per_user_dir_name() -> String {
    format!("cellwright-{}", rustix::process::geteuid().as_raw())
}

fn content_hash() -> u128 {
    let mut hasher = XxHash3_128::new();
    for (name, content) in STAGED_FILES {
        hasher.write(name.as_bytes());
        hasher.write(&[0]);
        hasher.write(content);
    }
    hasher.finish_128() >> 64
}

fn stage_in(target: &Path) -> io::Result<()> {
    create_private_dir(target)?;
    for (name, content) in STAGED_FILES {
        let file = target.join(name);
        if fs::read(&file).is_ok_and(|existing| existing == *content) {
            continue;
        }
        if let Some(dir) = file.parent() {
            create_private_dir(dir)?;
        }
        replace_atomically(&file, content)?;
    }
    Ok(())
}

/// Creates a directory that only this user can write to: kernels run code from it.
fn create_private_dir(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let found = dir.metadata()?;
    let is_owned = found.uid() == rustix::process::geteuid().as_raw();
    if !is_owned || found.mode() & 0o022 != 0 {
        let reason = "other users could change the files in it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Replaces a file so that readers see either the old or the new content.
fn replace_atomically(file: &Path, content: &[u8]) -> io::Result<()> {
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
    fn removed_or_changed_files_are_restored() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().join("cache")];
        let target = stage(&dirs).unwrap();
        let main = target.join("cellwright_runner/main.py");
        let content = fs::read(&main).unwrap();
        fs::write(&main, "print('changed')").unwrap();
        fs::remove_file(target.join("cellwright_runner/__init__.py")).unwrap();
        assert_eq!(stage(&dirs).unwrap(), target);
        assert_eq!(fs::read(&main).unwrap(), content);
        assert!(target.join("cellwright_runner/__init__.py").exists());
    }

    #[test]
    fn dirs_writable_by_others_are_skipped() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        let target = stage(std::slice::from_ref(&open)).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o777)).unwrap();
        let safe = dir.path().join("safe");
        let chosen = stage(&[open.clone(), safe.clone()]).unwrap();
        assert!(chosen.starts_with(safe));
        assert!(matches!(stage(&[open]), Err(KernelError::Staging { .. })));
    }
}
