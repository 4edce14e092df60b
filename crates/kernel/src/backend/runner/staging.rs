//! Writes the runner's Python files, which are embedded in this crate, to a directory where an interpreter can import them.
//!
//! The directory is named after a hash of their content and is kept, so that the interpreter reuses its compiled
//! copies and starts quickly. Every start checks that the files are complete and unchanged:
//! cleaners of temporary directories have removed some of them before.

use std::io;
use std::path::{Path, PathBuf};

use cellwright_stdext::private::{PrivateDir, create_safe_dir, read_file, replace_file};
use twox_hash::XxHash3_128;

use crate::error::KernelError;

/// The program on the interpreter's command line.
pub(super) const BOOT_SCRIPT: &str = include_str!("../../../python/boot.py");

const STAGED_FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// Writes the files into the first usable one of `directories`, if they are not there. Returns their directory.
pub(in crate::backend) fn stage(dirs: &[PathBuf]) -> Result<PathBuf, KernelError> {
    let mut error = None;
    for dir in dirs {
        match stage_in(dir) {
            Ok(target) => return Ok(target),
            Err(source) => {
                let dir = dir.join(staged_dir_name());
                error = Some(KernelError::Staging { dir, source });
            }
        }
    }
    Err(error.unwrap_or_else(|| KernelError::Staging {
        dir: PathBuf::new(),
        source: io::Error::new(io::ErrorKind::NotFound, "no directory is configured"),
    }))
}

/// The files of the package that are text: names relative to the directory, and contents.
pub(in crate::backend) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    STAGED_FILES
        .iter()
        .filter_map(|(name, content)| Some((*name, std::str::from_utf8(content).ok()?)))
}

/// The name of the directory with the files of this version.
pub fn staged_dir_name() -> String {
    format!("runner-{:016x}", content_hash())
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

/// Writes the files below `dir`. Kernels run code from there: no other user can replace a file or a directory above it.
fn stage_in(dir: &Path) -> io::Result<PathBuf> {
    let target = create_safe_dir(dir)?.join(staged_dir_name());
    let target = PrivateDir::create(&target)?.path().to_owned();
    for (name, content) in STAGED_FILES {
        let file = target.join(name);
        let limit = content.len() as u64;
        if read_file(&file, limit).is_ok_and(|existing| existing == *content) {
            continue;
        }
        if let Some(dir) = file.parent() {
            PrivateDir::create(dir)?;
        }
        replace_file(&file, content)?;
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
