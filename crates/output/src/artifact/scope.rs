//! [`ArtifactScope`]: the artifacts that a reader with access to some directories may see.

use std::path::{Path, PathBuf};

use super::{ArtifactInfo, ArtifactOrigin, ProjectTag};

/// The artifacts of some projects and directories.
#[derive(Clone, Debug, Default)]
pub struct ArtifactScope {
    /// Projects whose artifacts all belong to the scope.
    pub projects: Vec<ProjectTag>,
    /// Canonical paths of directories. An artifact belongs to the scope if its notebook is in one of them; without a
    /// notebook, if the working directory of its code is.
    pub directories: Vec<PathBuf>,
}

impl ArtifactScope {
    /// Whether an artifact belongs to the scope. `origin` reads where it is from.
    pub(super) fn contains(
        &self,
        project: Option<ProjectTag>,
        origin: impl FnOnce() -> ArtifactOrigin,
    ) -> bool {
        if project.is_some_and(|project| self.projects.contains(&project)) {
            return true;
        }
        let origin = origin();
        match (&origin.notebook, &origin.directory) {
            (Some(notebook), _) => {
                // A link in the path may lead elsewhere. The notebook itself may be gone.
                let dir = Path::new(notebook).parent().map(Path::canonicalize);
                dir.is_some_and(|dir| dir.is_ok_and(|dir| self.has_dir(&dir)))
            }
            (None, Some(directory)) => self.has_dir(directory),
            (None, None) => false,
        }
    }

    /// Whether a canonical path is one of the directories, or in one of them.
    fn has_dir(&self, dir: &Path) -> bool {
        self.directories.iter().any(|root| dir.starts_with(root))
    }
}

impl super::Artifacts {
    /// Returns a handle to the same directory that lists and opens the artifacts of a scope.
    #[must_use]
    pub fn for_scope(&self, scope: ArtifactScope) -> Self {
        Self {
            scope: Some(std::sync::Arc::new(scope)),
            ..self.clone()
        }
    }

    /// Whether an artifact belongs to the scope of the handle; without a scope, to its project.
    pub fn contains(&self, artifact: &ArtifactInfo) -> bool {
        match &self.scope {
            Some(scope) => scope.contains(artifact.project, || self.origin(artifact.id)),
            None => artifact.project == self.project,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_belongs_to_the_directory_of_its_notebook_or_its_code() {
        let temp_dir = tempfile::tempdir().unwrap();
        let base = temp_dir.path().canonicalize().unwrap();
        for dir in ["root/sub", "rooted", "other"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("other"), base.join("root/link")).unwrap();
        let own = ProjectTag::new([1; 4]);
        let scope = ArtifactScope {
            projects: vec![own],
            directories: vec![base.join("root")],
        };
        let of_code = |dir: &str| ArtifactOrigin {
            directory: Some(base.join(dir)),
            ..ArtifactOrigin::default()
        };
        let of_notebook = |path: &str, dir: &str| ArtifactOrigin {
            notebook: Some(base.join(path).display().to_string()),
            ..of_code(dir)
        };
        let other = Some(ProjectTag::new([2; 4]));
        for (origin, belongs) in [
            (of_code("root"), true),
            (of_code("root/sub"), true),
            (of_code("rooted"), false),
            (of_code("."), false),
            (of_notebook("root/a.ipynb", "other"), true),
            (of_notebook("other/a.ipynb", "root"), false),
            (of_notebook("root/../other/a.ipynb", "root"), false),
            (of_notebook("root/link/a.ipynb", "root"), false),
            (of_notebook("gone/a.ipynb", "root"), false),
            (ArtifactOrigin::default(), false),
        ] {
            for project in [other, None] {
                let contains = scope.contains(project, || origin.clone());
                assert_eq!(contains, belongs, "{origin:?}");
            }
            assert!(scope.contains(Some(own), || origin.clone()));
        }
    }
}
