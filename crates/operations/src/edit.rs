//! Replaces a piece of a notebook's text.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::edit::{self, Occurrences};
use cellwright_notebook::{Cells, file};

use super::change::{BaseRevision, ChangeReport};

/// A request of `edit`.
#[derive(Debug)]
pub struct EditRequest {
    pub path: PathBuf,
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
        Occurrences::All
    } else {
        Occurrences::One
    };
    let draft =
        |cells: &dyn Cells| edit::replace_text(cells, &request.old, &request.new, occurrences);
    let changed = file::change(
        &request.path,
        request.revision.request(engine, false),
        &draft,
    )
    .map_err(Failure::from_change_error)?;
    Ok(ChangeReport::new("edit", &request.path, changed))
}
