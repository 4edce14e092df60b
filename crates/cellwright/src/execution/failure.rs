//! Failures of runs of notebooks.

use cellwright_run::{CommitError, PreviewError, RunError, RunSpec, SelectionError};

use crate::failure::{Failure, Kind, capitalize, outline_hint};

/// The failure of a run whose cells had changed, or whose edits do not apply. Nothing ran.
pub(crate) fn commit_failure(error: CommitError, spec: &RunSpec) -> Failure {
    match error {
        CommitError::Notebook(error) => Failure::from_change_error(error),
        CommitError::Edit(error) => {
            Failure::new(Kind::BadEdit, error.to_string()).hint("nothing was written")
        }
        CommitError::CellsChanged { cells, edited } => {
            let path = spec.path.display();
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
pub(crate) fn preview_failure(error: PreviewError) -> Failure {
    match error {
        PreviewError::Notebook(error) => Failure::from_change_error(error),
        other => Failure::new(Kind::BadEdit, capitalize(&other.to_string()))
            .hint("nothing was written, nothing ran"),
    }
}

/// The failure of a run whose cells do not exist or cannot run.
pub(crate) fn selection_failure(error: SelectionError, path: &std::path::Path) -> Failure {
    match error {
        SelectionError::NoSuchCell { error } => {
            let path = path.to_owned();
            Failure::from(cellwright_notebook::NotebookError::Edit { path, error })
        }
        other => {
            let failure = Failure::new(Kind::BadArguments, capitalize(&other.to_string()));
            failure.hint(outline_hint(path))
        }
    }
}

/// The failure of a run that wrote no outputs.
pub(crate) fn run_failure(error: RunError, spec: &RunSpec) -> Failure {
    match error {
        RunError::Commit(error) => commit_failure(error, spec),
        RunError::Preview(error) => preview_failure(error),
        RunError::Selection(error) => selection_failure(error, &spec.path),
        RunError::Io(error) => error.into(),
        other => Failure::new(Kind::Kernel, capitalize(&other.to_string())),
    }
}
