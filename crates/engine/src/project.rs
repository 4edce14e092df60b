//! The project of a directory: whose artifacts a command or a server lists.

use std::path::{Path, PathBuf};

use cellwright_output::ProjectTag;
use cellwright_stdext::private::OwnerRule;
use sha2::{Digest, Sha256};

use crate::settings::paths::ProjectSearch;

/// Returns the directory of the project that contains `dir`: the nearest one with `.cellwright` or `.git`, else `dir`
/// itself. The search ends where the search for the settings of a project ends, and a marker of another user does not count.
/// The path is canonical.
pub fn project_dir(dir: &Path, home: Option<&Path>, rule: &OwnerRule) -> PathBuf {
    ProjectSearch::new(dir, home, rule).project_dir()
}

/// Returns the tag of a project's artifacts.
pub fn project_tag(project_dir: &Path) -> ProjectTag {
    let hash = Sha256::digest(project_dir.as_os_str().as_encoded_bytes());
    ProjectTag::new([hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates directories. Returns the canonical path of their root.
    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        for dir in dirs {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let path = root.path().canonicalize().unwrap();
        (root, path)
    }

    #[test]
    fn the_nearest_marker_is_the_project() {
        let (_dir, root) = tree(&["repo/.git", "repo/a/b", "repo/c/.cellwright", "repo/c/d"]);
        let project = |dir: &str| project_dir(&root.join(dir), None, &OwnerRule::default());
        assert_eq!(project("repo"), root.join("repo"));
        assert_eq!(project("repo/a/b"), root.join("repo"));
        assert_eq!(project("repo/c/d"), root.join("repo/c"));
    }

    #[test]
    fn the_search_ends_at_home_and_outside_of_it_at_the_directory() {
        let (_dir, root) = tree(&[
            ".cellwright",
            "home/job/.cellwright",
            "home/job/deep",
            "home/plain/deep",
            "elsewhere/.cellwright",
            "elsewhere/deep",
        ]);
        let home = root.join("home");
        let project = |dir: &str| project_dir(&root.join(dir), Some(&home), &OwnerRule::default());
        assert_eq!(project("home/job/deep"), root.join("home/job"));
        assert_eq!(project("home/plain/deep"), root.join("home/plain/deep"));
        assert_eq!(project("home"), home);
        assert_eq!(project("elsewhere"), root.join("elsewhere"));
        assert_eq!(project("elsewhere/deep"), root.join("elsewhere/deep"));
    }

    #[test]
    fn a_link_to_a_project_is_the_project() {
        let (_dir, root) = tree(&["repo/.git", "repo/a"]);
        std::os::unix::fs::symlink(root.join("repo/a"), root.join("link")).unwrap();
        let linked = project_dir(&root.join("link"), None, &OwnerRule::default());
        assert_eq!(linked, root.join("repo"));
        assert_eq!(project_tag(&linked), project_tag(&root.join("repo")));
        assert_ne!(project_tag(&linked), project_tag(&root));
        assert_eq!(project_tag(Path::new("/a")).to_string().len(), 8);
    }
}
