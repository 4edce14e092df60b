//! [`FileName`]: the name of an artifact's file, such as `12-1f2e3d4c.log`.

use std::fmt;

use super::{ArtifactId, ArtifactKind, ProjectTag};

/// The name of an artifact's file: number, project and extension. Artifacts of older versions have no project, as in
/// `12.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) id: ArtifactId,
    pub(super) project: Option<ProjectTag>,
    pub(super) kind: ArtifactKind,
}

impl FileName {
    /// Parses a name. Returns `None` for files that are not artifacts.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (stem, extension) = name.split_once('.')?;
        let kind = ArtifactKind::from_extension(extension)?;
        let (number, project) = match stem.split_once('-') {
            Some((number, tag)) => (number, Some(ProjectTag::parse(tag)?)),
            None => (stem, None),
        };
        let id = ArtifactId(number.parse().ok()?);
        let parsed = Self { id, project, kind };
        // `007.log` and `+7.log` are not artifacts: each number has only one form.
        (parsed.to_string() == name && id.0 > 0).then_some(parsed)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id.0)?;
        if let Some(project) = self.project {
            write!(f, "-{project}")?;
        }
        write!(f, ".{}", self.kind.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_number_a_project_and_a_type() {
        let project = Some(ProjectTag::new([0x1f, 0x2e, 0x3d, 0x4c]));
        let (id, kind) = (ArtifactId(12), ArtifactKind::Png);
        let tagged = FileName { id, project, kind };
        assert_eq!(tagged.to_string(), "12-1f2e3d4c.png");
        let untagged = FileName {
            project: None,
            ..tagged
        };
        assert_eq!(untagged.to_string(), "12.png");
        for name in [tagged, untagged] {
            assert_eq!(FileName::parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn other_files_are_not_artifacts() {
        for name in [
            ".last",
            "notes.txt",
            "12",
            "12.doc",
            "12.log.txt",
            "0.log",
            "007.log",
            "+7.log",
            "-1.log",
            "12-.log",
            "12-1f2e3d4.log",
            "12-1F2E3D4C.log",
            "12-1f2e3d4c5.log",
            "12-1f2e3d4c-1f2e3d4c.log",
            "-1f2e3d4c.log",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
