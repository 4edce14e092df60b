//! Failures of runs of notebooks.

use cellwright_run::{CommitError, PreviewError, RunError, RunSpec, SelectionError};

use super::{Failure, Kind, capitalize, outline_hint};

impl Failure {
    /// The file has changed, or the edits could not be made. Nothing ran.
    pub(crate) fn from_commit_error(error: CommitError, order: &RunSpec) -> Self {
        match error {
            CommitError::Notebook(error) => Self::from_change_error(error),
            CommitError::Edit(error) => {
                Self::new(Kind::BadEdit, error.to_string()).hint("nothing was written")
            }
            CommitError::CellsChanged { cells, edited } => {
                let path = order.path.display();
                let indices: Vec<String> = cells.iter().map(usize::to_string).collect();
                let message = format!("{path} changed before its cells could run");
                let mut failure = Self::new(Kind::Conflict, message);
                failure
                    .causes
                    .push(format!("changed cells: {}", indices.join(", ")));
                failure.hint(if edited {
                    "nothing ran, but the edits are in the file; run it again without them"
                } else {
                    "nothing ran and nothing was written; run it again"
                })
            }
            other => Self::new(Kind::Bug, format!("This is a bug in cellwright: {other}")),
        }
    }

    /// The notebook could not be read.
    pub(crate) fn from_preview_error(error: PreviewError) -> Self {
        match error {
            PreviewError::Notebook(error) => Self::from_change_error(error),
            other => Self::new(Kind::BadEdit, capitalize(&other.to_string()))
                .hint("nothing was written, nothing ran"),
        }
    }

    /// The selected cells do not exist or cannot run.
    pub(crate) fn from_selection_error(error: SelectionError, path: &std::path::Path) -> Self {
        match error {
            SelectionError::NoSuchCell { error } => {
                let path = path.to_owned();
                Self::from(cellwright_notebook::NotebookError::Edit { path, error })
            }
            other => {
                let failure = Self::new(Kind::BadArguments, capitalize(&other.to_string()));
                failure.hint(outline_hint(path))
            }
        }
    }

    /// An error of a run that wrote no outputs.
    pub(crate) fn from_run_error(error: RunError, order: &RunSpec) -> Self {
        match error {
            RunError::Commit(error) => Self::from_commit_error(error, order),
            RunError::Preview(error) => Self::from_preview_error(error),
            RunError::Selection(error) => Self::from_selection_error(error, &order.path),
            RunError::Io(error) => error.into(),
            other => Self::new(Kind::Kernel, capitalize(&other.to_string())),
        }
    }
}
