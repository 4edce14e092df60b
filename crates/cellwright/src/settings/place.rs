//! Which files hold settings.

use std::path::{Path, PathBuf};

/// The file in its folder.
const FILE: &str = "config.toml";

/// The folder of a project that holds what is Cellwright's.
pub(crate) const FOLDER: &str = ".cellwright";

/// The user's file, which need not be there.
pub(crate) fn of_user(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// The file of the project that `cwd` is in: the nearest there is, going up to the root of the
/// repository or to the home folder. Outside of both only the directory itself counts, for what lies
/// further up may be anybody's.
pub(crate) fn of_project(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    reach(cwd, home)
        .into_iter()
        .map(|folder| folder.join(FOLDER).join(FILE))
        .find(|file| file.symlink_metadata().is_ok())
}

/// Where the project's file would be, if there were one.
pub(crate) fn for_project(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let folders = reach(cwd, home);
    let root = folders.iter().find(|folder| folder.join(".git").exists());
    let folder = root.cloned().unwrap_or_else(|| cwd.to_owned());
    folder.join(FOLDER).join(FILE)
}

/// The folder that a project's file speaks for.
pub(crate) fn root_of(file: &Path) -> &Path {
    file.parent().and_then(Path::parent).unwrap_or(file)
}

/// The folders that may hold what is the project's, the nearest first.
pub(crate) fn reach(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (cwd, home) = (real(cwd), home.map(real));
    let last = cwd
        .ancestors()
        .position(|folder| folder.join(".git").exists() || Some(folder) == home.as_deref());
    cwd.ancestors()
        .take(last.unwrap_or(0) + 1)
        .map(Path::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in folders {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        root
    }

    fn put(root: &Path, folder: &str) -> PathBuf {
        let folder = root.join(folder).join(FOLDER);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), "").unwrap();
        folder.join(FILE).canonicalize().unwrap()
    }

    #[test]
    fn the_nearest_file_up_to_the_repository_is_used() {
        let root = tree(&["repo/.git", "repo/a/b"]);
        let cwd = root.path().join("repo/a/b");
        put(root.path(), ".");
        assert_eq!(of_project(&cwd, None), None);
        let top = put(root.path(), "repo");
        assert_eq!(of_project(&cwd, None), Some(top));
        let near = put(root.path(), "repo/a");
        assert_eq!(of_project(&cwd, None), Some(near));
    }

    #[test]
    fn without_a_repository_the_search_ends_at_home_or_at_once() {
        let root = tree(&["home/job/deep", "elsewhere/deep"]);
        let home = root.path().join("home");
        let file = put(root.path(), "home/job");
        put(root.path(), "elsewhere");
        let inside = root.path().join("home/job/deep");
        assert_eq!(of_project(&inside, Some(&home)), Some(file));
        let outside = root.path().join("elsewhere/deep");
        assert_eq!(of_project(&outside, Some(&home)), None);
    }
}
