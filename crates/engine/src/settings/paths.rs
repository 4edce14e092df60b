//! Paths of the settings files.

use std::path::{Path, PathBuf};

/// Name of a settings file in its directory.
const FILE_NAME: &str = "config.toml";

/// Name of the directory in a project that holds its settings and modules.
pub const PROJECT_DIR_NAME: &str = ".cellwright";

/// The user's settings file in the configuration directory; it need not exist.
pub fn user_file(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// Returns the settings file of the project that contains `cwd`: the nearest one from `cwd` up to the root of the
/// repository or the home directory. Outside of both it only looks into `cwd`: other users may own the directories
/// above.
pub fn find_project_file(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    search_dirs(cwd, home)
        .into_iter()
        .map(|dir| dir.join(PROJECT_DIR_NAME).join(FILE_NAME))
        .find(|file| file.symlink_metadata().is_ok())
}

/// Where the settings file of the project belongs if it has none.
pub fn default_project_file(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let dirs = search_dirs(cwd, home);
    let root = dirs.iter().find(|dir| dir.join(".git").exists());
    let dir = root.cloned().unwrap_or_else(|| cwd.to_owned());
    dir.join(PROJECT_DIR_NAME).join(FILE_NAME)
}

/// The root directory of the project that a settings file belongs to.
pub fn project_root(file: &Path) -> &Path {
    file.parent().and_then(Path::parent).unwrap_or(file)
}

/// The directories that may contain the project's directory, nearest first.
pub fn search_dirs(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (cwd, home) = (canonical(cwd), home.map(canonical));
    let last = cwd
        .ancestors()
        .position(|dir| dir.join(".git").exists() || Some(dir) == home.as_deref());
    cwd.ancestors()
        .take(last.unwrap_or(0) + 1)
        .map(Path::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for dir in dirs {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        root
    }

    fn create_file(root: &Path, dir: &str) -> PathBuf {
        let dir = root.join(dir).join(PROJECT_DIR_NAME);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(FILE_NAME), "").unwrap();
        dir.join(FILE_NAME).canonicalize().unwrap()
    }

    #[test]
    fn the_nearest_file_up_to_the_repository_is_used() {
        let root = tree(&["repo/.git", "repo/a/b"]);
        let cwd = root.path().join("repo/a/b");
        create_file(root.path(), ".");
        assert_eq!(find_project_file(&cwd, None), None);
        let top = create_file(root.path(), "repo");
        assert_eq!(find_project_file(&cwd, None), Some(top));
        let near = create_file(root.path(), "repo/a");
        assert_eq!(find_project_file(&cwd, None), Some(near));
    }

    #[test]
    fn without_a_repository_the_search_stops_at_home_or_at_cwd() {
        let root = tree(&["home/job/deep", "elsewhere/deep"]);
        let home = root.path().join("home");
        let file = create_file(root.path(), "home/job");
        create_file(root.path(), "elsewhere");
        let inside = root.path().join("home/job/deep");
        assert_eq!(find_project_file(&inside, Some(&home)), Some(file));
        let outside = root.path().join("elsewhere/deep");
        assert_eq!(find_project_file(&outside, Some(&home)), None);
    }
}
