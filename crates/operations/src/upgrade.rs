//! Converts a notebook to nbformat 4.5.

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::file;
use schemars::JsonSchema;
use serde::Serialize;

use super::change::BaseRevision;
use super::file_path::FilePath;

/// What the upgrade did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UpgradeReport {
    /// Always `upgrade`.
    action: &'static str,
    /// Path of the notebook.
    path: String,
    /// Whether the file was written.
    pub changed: bool,
    /// The format before, such as `3.0`; `null` if nothing had to be done.
    pub from: Option<String>,
    /// Number of cell ids that were added.
    pub ids_added: usize,
    /// Revision of the notebook now.
    pub revision: String,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// Upgrades a notebook.
pub fn upgrade(
    path: &FilePath,
    revision: &BaseRevision,
    engine: &Engine,
) -> Result<UpgradeReport, Failure> {
    let request = revision.request(engine, false);
    let (upgraded, revision, notices) =
        file::upgrade(path.open_path(), request).map_err(|error| path.change_failure(error))?;
    Ok(UpgradeReport {
        action: "upgrade",
        path: path.to_text(),
        changed: upgraded.is_some(),
        from: upgraded.map(|done| format!("{}.{}", done.from.0, done.from.1)),
        ids_added: upgraded.map_or(0, |done| done.ids_added),
        revision: revision.to_string(),
        notices: notice::describe(&notices),
    })
}
