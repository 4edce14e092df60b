//! Failures of runs of notebooks.

use cellwright_diagnostics::failure::{Failure, Kind, capitalize, command, hint, outline_hint};

use crate::{CommitError, PreviewError, RunError, RunSpec, SelectionError};

/// The failure of a run whose cells had changed, or whose edits do not apply. Nothing ran.
pub fn commit_failure(error: CommitError, spec: &RunSpec) -> Failure {
    match error {
        CommitError::Notebook(error) => spec.change_failure(error),
        CommitError::Edit(error) => {
            Failure::new(Kind::BadEdit, error.to_string()).hint("nothing was written")
        }
        CommitError::CellsChanged { cells, edited } => {
            let path = spec.path.display_path().display();
            let indices: Vec<String> = cells.iter().map(usize::to_string).collect();
            let message = format!("{path} changed before its cells could run");
            let mut failure = Failure::new(Kind::Conflict, message);
            failure
                .causes
                .push(format!("changed cells: {}", indices.join(", ")));
            failure.hint(if edited {
                "nothing ran, but the edits are in the file; run it again without them"
            } else {
                "nothing ran and nothing was written; run it again"
            })
        }
        other => Failure::new(Kind::Bug, format!("This is a bug in cellwright: {other}")),
    }
}

/// The failure of a run whose notebook cannot be read.
pub fn preview_failure(error: PreviewError) -> Failure {
    match error {
        PreviewError::Notebook(error) => Failure::from_change_error(error),
        other => Failure::new(Kind::BadEdit, capitalize(&other.to_string()))
            .hint("nothing was written, nothing ran"),
    }
}

/// The failure of a run whose cells do not exist or cannot run.
pub fn selection_failure(error: SelectionError, path: &std::path::Path) -> Failure {
    match error {
        SelectionError::NoSuchCell { error } => {
            let path = path.to_owned();
            Failure::from(cellwright_notebook::NotebookError::Edit { path, error })
        }
        other => {
            let failure = Failure::new(Kind::BadArguments, capitalize(&other.to_string()));
            match other {
                SelectionError::NoSuchTag { known, .. } if known.is_empty() => {
                    let set = command(format!("notebook tag {} CELL TAG", path.display()));
                    failure.hint(hint!["no code cell has a tag; ", set, " sets one"])
                }
                SelectionError::NoSuchTag { known, .. } => {
                    failure.hint(format!("tags of code cells: {}", known.join(", ")))
                }
                _ => failure.hint(outline_hint(path)),
            }
        }
    }
}

/// The failure of a run whose edits were not applied.
pub fn run_failure(error: RunError, spec: &RunSpec) -> Failure {
    match error {
        RunError::Commit(error) => commit_failure(error, spec),
        RunError::Io(error) => error.into(),
    }
}
