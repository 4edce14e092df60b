//! [`ArtifactOrigin`]: where the content of an artifact is from.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ArtifactId, ArtifactKind, Artifacts, FileName};
use crate::files;

/// The cell that an artifact is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactOrigin {
    /// Path of the notebook.
    pub notebook: Option<String>,
    /// Index of the cell in the notebook, or in the request.
    pub cell: Option<usize>,
    /// Name of the session.
    pub session: Option<String>,
    /// Canonical path of the working directory of the code.
    pub directory: Option<PathBuf>,
}

impl Artifacts {
    /// Returns where an artifact is from; nothing for artifacts of older versions.
    pub fn origin(&self, id: ArtifactId) -> ArtifactOrigin {
        let text = fs::read(self.origin_path(id)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the origin of the handle next to a new artifact. Without it, lists show less and fewer readers can open the
    /// artifact, so errors are dropped.
    pub(super) fn write_origin(&self, id: ArtifactId) {
        if self.origin.is_none() && self.code_dir.is_none() {
            return;
        }
        let mut origin = self.origin.as_deref().cloned().unwrap_or_default();
        origin.directory = self.code_dir.as_deref().map(Path::to_owned);
        if let Ok(mut file) = files::create_private_file(&self.origin_path(id)) {
            serde_json::to_writer(&mut file, &origin).ok();
        }
    }

    /// Removes the file with the origin of a removed artifact.
    pub(super) fn remove_origin(&self, id: ArtifactId) {
        fs::remove_file(self.origin_path(id)).ok();
    }

    /// Removes an artifact of the handle's project whose display was cleared or replaced. A file that stays is removed
    /// by a later sweep, so errors are dropped.
    pub(crate) fn remove_image(&self, id: ArtifactId, mime: &str) {
        let path = self.path(FileName {
            id,
            project: self.project,
            kind: ArtifactKind::from_mime(mime),
        });
        if fs::remove_file(path).is_ok() {
            self.remove_origin(id);
        }
    }

    fn origin_path(&self, id: ArtifactId) -> PathBuf {
        self.dir().join(format!("{}.origin", id.0))
    }
}
