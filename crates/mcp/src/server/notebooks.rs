//! Finds the notebooks of the roots, for the list of resources.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cellwright_stdext::Directory;
use rustix::fs::{Mode, OFlags};

/// Maximum number of notebooks in a list.
const LISTED_NOTEBOOKS_MAX: usize = 200;

/// Maximum depth below a root at which notebooks are searched for.
const SEARCH_DEPTH_MAX: usize = 4;

/// Finds the notebooks below these directories, sorted by path.
pub(super) fn find(roots: &[Directory]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in roots {
        collect_notebooks(root, SEARCH_DEPTH_MAX, &mut found);
    }
    found.sort();
    found
}

fn collect_notebooks(dir: &Directory, depth: usize, found: &mut Vec<PathBuf>) {
    // A directory that cannot be read counts as empty.
    let entries = std::fs::read_dir(dir.open_path()).into_iter().flatten();
    let mut subdirs: Vec<OsString> = Vec::new();
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let name = file_name.to_string_lossy();
        // Environments and dependencies contain notebooks that are not the user's.
        if name.starts_with(['.', '_']) || matches!(&*name, "node_modules" | "venv" | "target") {
            continue;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 {
            subdirs.push(file_name);
        } else if kind.is_file() && name.ends_with(".ipynb") && found.len() < LISTED_NOTEBOOKS_MAX {
            found.push(dir.path().join(file_name));
        }
    }
    for name in subdirs {
        if found.len() < LISTED_NOTEBOOKS_MAX
            && let Some(subdir) = open_subdir(dir, Path::new(&name))
        {
            collect_notebooks(&subdir, depth - 1, found);
        }
    }
}

/// Opens a directory in another one; `None` if it is a link by now, or cannot be opened.
fn open_subdir(dir: &Directory, name: &Path) -> Option<Directory> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened: OwnedFd =
        rustix::fs::open(dir.open_path().join(name), flags, Mode::empty()).ok()?;
    let path = dir.path().join(name);
    if cfg!(target_os = "linux") {
        Directory::hold(opened, path).ok()
    } else {
        Some(path.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_became_a_link_is_not_entered() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        for dir in ["root/sub", "outside"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
            std::fs::write(base.join(dir).join("a.ipynb"), "{}").unwrap();
        }
        let root = OwnedFd::from(std::fs::File::open(base.join("root")).unwrap());
        let root = Directory::hold(root, base.join("root")).unwrap();
        let sub = open_subdir(&root, Path::new("sub")).unwrap();
        assert_eq!(
            find(std::slice::from_ref(&root)),
            [base.join("root/sub/a.ipynb")]
        );
        // Between the list of names and the step into the directory.
        std::fs::rename(base.join("root/sub"), base.join("root/_moved")).unwrap();
        std::os::unix::fs::symlink(base.join("outside"), base.join("root/sub")).unwrap();
        assert!(open_subdir(&root, Path::new("sub")).is_none());
        assert!(find(&[root]).is_empty());
        // A directory that is open already is still the same.
        std::fs::write(base.join("root/_moved/b.ipynb"), "{}").unwrap();
        assert_eq!(find(&[sub]).len(), 2);
    }
}
