//! Converts a notebook to nbformat 4.5.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::file;
use serde::Serialize;

use super::change::BaseRevision;

/// What the upgrade did.
#[derive(Debug, Serialize)]
pub struct UpgradeReport {
    action: &'static str,
    path: String,
    /// Whether the file was written.
    pub changed: bool,
    /// The format before, such as `3.0`; `null` if nothing had to be done.
    pub from: Option<String>,
    pub ids_added: usize,
    pub revision: String,
}

/// Upgrades the notebook at `path`.
pub fn upgrade(
    path: &Path,
    revision: &BaseRevision,
    engine: &Engine,
) -> Result<UpgradeReport, Failure> {
    let (upgraded, revision) =
        file::upgrade(path, revision.request(engine, false)).map_err(Failure::from_change_error)?;
    Ok(UpgradeReport {
        action: "upgrade",
        path: path.display().to_string(),
        changed: upgraded.is_some(),
        from: upgraded.map(|done| format!("{}.{}", done.from.0, done.from.1)),
        ids_added: upgraded.map_or(0, |done| done.ids_added),
        revision: revision.to_string(),
    })
}
