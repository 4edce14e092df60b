//! Replaces a notebook by edited text.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::engine::Engine;
use cellwright_notebook::{Cells, edit, file};

use super::change::{BaseRevision, ChangeReport, hint_create};
use super::file_path::FilePath;

/// A request of `write`.
#[derive(Debug)]
pub struct WriteRequest {
    pub path: FilePath,
    /// The edited text view.
    pub text: String,
    pub revision: BaseRevision,
    /// Whether a missing file starts as an empty notebook.
    pub create: bool,
}

/// Replaces the notebook.
pub fn write(request: &WriteRequest, engine: &Engine) -> Result<ChangeReport, Failure> {
    let WriteRequest {
        path,
        text,
        revision,
        create,
    } = request;
    let is_new = *create && !path.open_path().exists();
    if text.is_empty() && !is_new {
        // `read` never prints an empty text: the other end of the pipe failed.
        let message = format!("The text for {} is empty", path.to_text());
        return Err(Failure::new(Kind::BadArguments, message)
            .hint("nothing was written; to delete all cells, write a text of one empty line"));
    }
    let draft = |cells: &dyn Cells| edit::replace_all(cells, text);
    let changed = file::change(path.open_path(), revision.request(engine, *create), &draft)
        .map_err(|error| hint_create(path.change_failure(error), path, *create))?;
    Ok(ChangeReport::new("write", path, changed))
}
