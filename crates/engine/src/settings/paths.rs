//! Paths of the settings files.

use std::path::{Path, PathBuf};

use cellwright_kernel::python::ENVIRONMENT_NAMES;
use cellwright_stdext::private::{ForeignPath, OwnerRule};

/// Name of a settings file in its directory.
const FILE_NAME: &str = "config.toml";

/// Name of the directory in a project that holds its settings and modules.
pub const PROJECT_DIR_NAME: &str = ".cellwright";

/// Name of the directory or file that marks the root of a repository.
const GIT_NAME: &str = ".git";

/// Each of them marks the directory of a project.
const MARKERS: [&str; 2] = [PROJECT_DIR_NAME, GIT_NAME];

/// The user's settings file in the configuration directory; it need not exist.
pub fn user_file(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// The directories that may contain the settings, modules and environments of a project, and the markers among them that
/// do not count. The search goes from the working directory up to the root of the repository or the home directory.
/// Outside of both it is only the working directory: other users may own the directories above.
pub struct ProjectSearch<'a> {
    /// Nearest first; the first one is the working directory, canonical.
    dirs: Vec<PathBuf>,
    rule: &'a OwnerRule,
}

impl<'a> ProjectSearch<'a> {
    /// Searches from `cwd`.
    pub fn new(cwd: &Path, home: Option<&Path>, rule: &'a OwnerRule) -> Self {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (cwd, home) = (canonical(cwd), home.map(canonical));
        let is_end = |dir: &Path| is_repository(dir, rule) || Some(dir) == home.as_deref();
        let last = cwd.ancestors().position(is_end).unwrap_or(0);
        let dirs = cwd.ancestors().take(last + 1).map(Path::to_owned).collect();
        Self { dirs, rule }
    }

    /// The settings file of the project: the nearest one.
    pub fn settings_file(&self) -> Option<PathBuf> {
        let file = |dir: &PathBuf| {
            let project = dir.join(PROJECT_DIR_NAME);
            let file = project.join(FILE_NAME);
            let own = self.rule.check_all([dir, &project, &file]);
            (file.symlink_metadata().is_ok() && own.is_ok()).then_some(file)
        };
        self.dirs.iter().find_map(file)
    }

    /// Where the settings file of the project belongs if it has none.
    pub fn default_settings_file(&self, cwd: &Path) -> PathBuf {
        let root = self.dirs.iter().find(|dir| is_repository(dir, self.rule));
        let dir = root.map_or(cwd, PathBuf::as_path);
        dir.join(PROJECT_DIR_NAME).join(FILE_NAME)
    }

    /// The nearest directory with settings and modules of a project.
    pub fn settings_dir(&self) -> Option<PathBuf> {
        let own = |dir: &PathBuf| {
            let project = dir.join(PROJECT_DIR_NAME);
            (project.is_dir() && self.rule.check_all([dir, &project]).is_ok()).then_some(project)
        };
        self.dirs.iter().find_map(own)
    }

    /// The directory of the project: the nearest one with `.cellwright` or `.git`, else the working directory.
    pub fn project_dir(mut self) -> PathBuf {
        let is_marked = |dir: &PathBuf| {
            let is_marker = |name: &&str| {
                let marker = dir.join(name);
                let exists = marker.symlink_metadata().is_ok();
                exists && self.rule.check_all([dir, &marker]).is_ok()
            };
            MARKERS.iter().any(is_marker)
        };
        let nearest = self.dirs.iter().position(is_marked).unwrap_or(0);
        self.dirs.swap_remove(nearest)
    }

    /// What does not count because another user owns it or can write to it: markers and environments in the searched directories,
    /// and the nearest repository above them.
    pub fn foreign(&self) -> Vec<ForeignPath> {
        let mut found = Vec::new();
        let names = MARKERS.iter().chain(&ENVIRONMENT_NAMES);
        for (dir, name) in self
            .dirs
            .iter()
            .flat_map(|dir| names.clone().map(move |name| (dir, name)))
        {
            let path = dir.join(name);
            let inner = [path.join(FILE_NAME), path.join("modules"), path.join("bin")];
            if path.symlink_metadata().is_ok() {
                let own = self.rule.check_all([dir, &path]);
                let own = own.and_then(|()| match *name {
                    GIT_NAME => Ok(()),
                    _ => self.rule.check_all(inner),
                });
                found.extend(own.err());
            }
        }
        let above = self
            .dirs
            .last()
            .into_iter()
            .flat_map(|dir| dir.ancestors().skip(1));
        let repository = above
            .map(|dir| dir.join(GIT_NAME))
            .find(|marker| marker.exists());
        let is_complete = self
            .dirs
            .last()
            .is_some_and(|dir| is_repository(dir, self.rule));
        if let Some(marker) = repository.filter(|_| !is_complete) {
            let dir = marker.parent().unwrap_or(&marker).to_owned();
            found.extend(self.rule.check_all([&dir, &marker]).err());
        }
        found.dedup_by(|a, b| a.path() == b.path());
        found
    }
}

/// Whether a directory is the root of a repository of this user.
fn is_repository(dir: &Path, rule: &OwnerRule) -> bool {
    let marker = dir.join(GIT_NAME);
    marker.exists() && rule.check_all([dir, &marker]).is_ok()
}

/// The root directory of the project that a settings file belongs to.
pub fn project_root(file: &Path) -> &Path {
    file.parent().and_then(Path::parent).unwrap_or(file)
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

    fn find_project_file(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
        ProjectSearch::new(cwd, home, &OwnerRule::default()).settings_file()
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

    #[test]
    fn a_marker_that_every_user_can_write_does_not_count() {
        let root = tree(&["repo/.git", "repo/a/b", "repo/a/.venv"]);
        let (repo, cwd) = (root.path().join("repo"), root.path().join("repo/a/b"));
        let top = create_file(root.path(), "repo");
        let set_mode = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&repo, mode).unwrap();
        };
        let (strict, open) = (
            OwnerRule::default(),
            OwnerRule::with_exceptions(vec![root.path().canonicalize().unwrap()]),
        );
        for (mode, rule, counts) in [
            (0o755, &strict, true),
            (0o777, &strict, false),
            (0o1777, &strict, true),
            (0o777, &open, true),
        ] {
            set_mode(mode);
            let search = ProjectSearch::new(&cwd, None, rule);
            let expected = counts.then(|| top.clone());
            assert_eq!(search.settings_file(), expected, "{mode:o}");
            assert_eq!(search.settings_dir().is_some(), counts, "{mode:o}");
            assert_eq!(
                search.foreign().is_empty(),
                counts,
                "{:?}",
                search.foreign()
            );
            let project = search.project_dir();
            let name = if counts { "repo" } else { "b" };
            assert!(project.ends_with(name), "{mode:o}: {project:?}");
        }
    }
}
