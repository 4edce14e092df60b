//! Replaces a piece of a notebook's text.

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::edit::{self, ReplaceScope};
use cellwright_notebook::{Cells, file};

use super::change::{BaseRevision, ChangeReport};
use super::file_path::FilePath;

/// A request of `edit`.
#[derive(Debug)]
pub struct EditRequest {
    pub path: FilePath,
    /// The text to replace, as the text view shows it.
    pub old: String,
    pub new: String,
    /// Whether every occurrence is replaced; otherwise there must be exactly one.
    pub all: bool,
    pub revision: BaseRevision,
}

/// Replaces the text.
pub fn edit(request: &EditRequest, engine: &Engine) -> Result<ChangeReport, Failure> {
    let occurrences = if request.all {
        ReplaceScope::All
    } else {
        ReplaceScope::One
    };
    let draft =
        |cells: &dyn Cells| edit::replace_text(cells, &request.old, &request.new, occurrences);
    let changed = file::change(
        request.path.open_path(),
        request.revision.request(engine, false),
        &draft,
    )
    .map_err(|error| request.path.change_failure(error))?;
    Ok(ChangeReport::new("edit", &request.path, changed))
}
