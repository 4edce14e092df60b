//! [`Staging`]: the directories for the Python files that Cellwright puts into kernels.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cellwright_stdext::private::{create_safe_dir, is_writable, temporary};
use tempfile::TempDir;

/// Beginning of the name of a temporary directory for the files.
const DIR_PREFIX: &str = "cellwright-staging-";

/// The directories for the Python files that Cellwright puts into kernels. Clones share the temporary one.
#[derive(Clone, Debug)]
pub struct Staging {
    /// The user's cache directory.
    cache: Option<PathBuf>,
    /// Directories that stay, in order of preference. Found when they are needed first.
    lasting: Arc<OnceLock<Vec<PathBuf>>>,
    /// Used if none of the others is; removed with the last clone.
    temporary: Arc<OnceLock<Option<TempDir>>>,
}

impl Staging {
    /// The user's cache directory comes first. The user's temporary directory follows, for users without a home directory or
    /// with one that is not writable.
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Self {
            cache: cache.map(Path::to_owned),
            lasting: Arc::default(),
            temporary: Arc::default(),
        }
    }

    /// The directories that stay, in order of preference.
    pub fn lasting_dirs(&self) -> &[PathBuf] {
        self.lasting.get_or_init(|| {
            let cache = self.cache.iter().cloned();
            cache.chain(temporary::user_dirs()).collect()
        })
    }

    /// The directories to try, in order of preference. If other users could change the files in all of them, or they are not
    /// writable, the last one is a temporary directory with a random name.
    pub(crate) fn dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.lasting_dirs().to_vec();
        if !dirs.iter().any(|dir| is_usable(dir)) {
            let create = || temporary::create_dir(DIR_PREFIX).ok();
            let fresh = self.temporary.get_or_init(create).as_ref();
            dirs.extend(fresh.map(|dir| dir.path().to_owned()));
        }
        dirs
    }
}

fn is_usable(dir: &Path) -> bool {
    create_safe_dir(dir).is_ok_and(|dir| is_writable(&dir))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn staging(lasting: &[&Path]) -> Staging {
        Staging {
            cache: None,
            lasting: Arc::new(OnceLock::from(
                lasting
                    .iter()
                    .map(|&dir| dir.to_owned())
                    .collect::<Vec<_>>(),
            )),
            temporary: Arc::default(),
        }
    }

    #[test]
    fn a_temporary_directory_replaces_unsafe_ones() {
        let base = tempfile::tempdir().unwrap();
        let cache = base.path().join("cache");
        let usual = staging(&[&cache]);
        assert_eq!(usual.dirs(), std::slice::from_ref(&cache));
        let open = base.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(staging(&[&open, &cache]).dirs(), [open.clone(), cache]);
        let unsafe_only = staging(&[&open]);
        let dirs = unsafe_only.dirs();
        assert_eq!(dirs.len(), 2);
        assert_eq!(
            unsafe_only.clone().dirs(),
            dirs,
            "one directory for all kernels"
        );
        let mode = fs::metadata(&dirs[1]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(unsafe_only);
        assert!(!dirs[1].exists());
    }
}
