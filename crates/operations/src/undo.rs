//! Undoes the last change of a notebook, or redoes it.

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::file::{self, RestoreOutcome, Restored};
use cellwright_notebook::{Cells, Direction, NoStep, Revision, Scope};
use schemars::JsonSchema;
use serde::Serialize;

use super::change::BaseRevision;
use super::diff::compare_contents;
use super::file_path::FilePath;

/// A request of `undo` or `redo`.
#[derive(Debug)]
pub struct UndoRequest {
    pub path: FilePath,
    pub direction: Direction,
    pub revision: BaseRevision,
}

/// What was undone or redone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UndoReport {
    /// What was done.
    #[schemars(extend("enum" = ["undo", "redo"]))]
    action: &'static str,
    /// Path of the notebook.
    path: String,
    /// Number of cells.
    total_cells: usize,
    /// Revision of the notebook.
    pub revision: String,
    /// Revision of the notebook before.
    previous_revision: String,
    /// The number of changes that can still be undone.
    undo_left: usize,
    /// The number of changes that can be redone.
    redo_left: usize,
    /// The change, from the content before to the one now.
    pub diff: String,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// One sentence for people.
    #[serde(skip)]
    pub headline: String,
}

/// Restores the content before the last change, or after it.
pub fn undo(request: &UndoRequest, engine: &Engine) -> Result<UndoReport, Failure> {
    let UndoRequest {
        path,
        direction,
        revision,
    } = request;
    let restored = file::restore(
        path.open_path(),
        revision.request(engine, false),
        *direction,
    );
    match restored.map_err(|error| path.change_failure(error))? {
        RestoreOutcome::Restored(restored) => Ok(UndoReport::new(request, &restored)),
        RestoreOutcome::Refused(reason, current) => Err(refused(request, reason, current)),
    }
}

impl UndoReport {
    fn new(request: &UndoRequest, restored: &Restored) -> Self {
        let path = request.path.to_text();
        let (action, done) = match request.direction {
            Direction::Undo => ("undo", "Undid a change"),
            Direction::Redo => ("redo", "Redid a change"),
        };
        let names = [path.clone(), path.clone()];
        let (summary, diff) = compare_contents(&restored.old, &restored.new, Scope::All, &names);
        let counts = format!(
            "{} left to undo, {} to redo",
            restored.earlier, restored.later
        );
        Self {
            action,
            total_cells: restored.new.count(),
            revision: restored.new.revision().to_string(),
            previous_revision: restored.old.revision().to_string(),
            undo_left: restored.earlier,
            redo_left: restored.later,
            diff,
            notices: notice::describe(&restored.notices),
            headline: format!("{done} of {path} ({summary}); {counts}."),
            path,
        }
    }
}

fn refused(request: &UndoRequest, reason: NoStep, current: Revision) -> Failure {
    let path = request.path.to_text();
    let verb = match request.direction {
        Direction::Undo => "undo",
        Direction::Redo => "redo",
    };
    let failure = match reason {
        NoStep::Nothing => {
            let message = format!("There is no change of {path} to {verb}");
            Failure::new(Kind::BadEdit, message).hint(
                "stored are the last changes that Cellwright made in place; other programs' changes are not",
            )
        }
        NoStep::Changed => {
            let message = format!("Another program changed {path} after the last stored change");
            let mut failure = Failure::new(Kind::Conflict, message);
            failure.causes.push(format!(
                "the file is at revision {current}, which is not stored"
            ));
            failure.hint(hint![
                command(format!("diff HEAD {path}")),
                " compares it with its version in git",
            ])
        }
        NoStep::NotStored => {
            let message = format!("The content of {path} before the change is not stored");
            Failure::new(Kind::BadEdit, message)
                .hint("files up to 32 MiB are stored, 256 MiB in total")
        }
    };
    failure.hint("nothing was written")
}
