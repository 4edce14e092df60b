//! Changes one cell of a notebook.

use cellwright_diagnostics::failure::{Failure, Kind, capitalize};
use cellwright_engine::engine::Engine;
use cellwright_notebook::edit::Operation;
use cellwright_notebook::metadata::MetadataChange;
use cellwright_notebook::{Cells, file};

use super::change::{BaseRevision, ChangeReport, hint_create};
use super::file_path::FilePath;

/// A request for one operation on one cell.
#[derive(Debug)]
pub struct CellRequest {
    pub path: FilePath,
    pub operation: Operation,
    pub revision: BaseRevision,
    /// Whether a missing file starts as an empty notebook.
    pub create: bool,
}

/// Carries out the operation.
pub fn change_cell(request: &CellRequest, engine: &Engine) -> Result<ChangeReport, Failure> {
    let CellRequest {
        path,
        operation,
        revision,
        create,
    } = request;
    let draft = |cells: &dyn Cells| operation.draft(cells);
    let changed = file::change(path.open_path(), revision.request(engine, *create), &draft)
        .map_err(|error| path.change_failure(error))
        .map_err(|failure| match operation {
            Operation::Insert { .. } => hint_create(failure, path, *create),
            _ => failure,
        })?;
    let action = match operation {
        Operation::Insert { .. } => "insert",
        Operation::Delete { .. } => "delete",
        Operation::Move { .. } => "move",
        Operation::Type { .. } => "type",
        Operation::Clear { .. } => "clear",
        Operation::Edit { .. } => "edit",
        Operation::Metadata { changes, .. } if changes.iter().all(is_tag_change) => "tag",
        Operation::Metadata { .. } => "meta",
    };
    Ok(ChangeReport::new(action, path, changed))
}

fn is_tag_change(change: &MetadataChange) -> bool {
    matches!(
        change,
        MetadataChange::AddTag(_) | MetadataChange::RemoveTag(_)
    )
}

/// The operation that an edit in JSON describes.
pub fn parse_operation(edit: &cellwright_execution::Edit) -> Result<Operation, Failure> {
    edit.to_operation().map_err(|error| {
        let failure = Failure::new(Kind::BadArguments, capitalize(&error.to_string()));
        failure.hint("nothing was written")
    })
}
