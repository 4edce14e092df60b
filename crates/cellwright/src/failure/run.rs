//! What can go wrong with a notebook that is to run, in words.

use cellwright_run::{ChoiceError, CommitError, LookError, Order, RunError};

use super::{Failure, Kind};

impl Failure {
    /// The cells were not there as they had been read, or could not be edited: nothing ran.
    pub(crate) fn of_commit(error: CommitError, order: &Order) -> Self {
        match error {
            CommitError::Notebook(error) => Self::of_change(error),
            CommitError::Edit(error) => {
                Self::new(Kind::BadEdit, error.to_string()).hint("nothing was written")
            }
            CommitError::Changed { cells, edited } => {
                let path = order.path.display();
                let which: Vec<String> = cells.iter().map(usize::to_string).collect();
                let message = format!("{path} was changed before its cells could run");
                let mut failure = Self::new(Kind::Conflict, message);
                failure
                    .causes
                    .push(format!("not as they were read: cell {}", which.join(", ")));
                failure.hint(if edited {
                    "nothing ran, but the edits are in the file; run it again without them"
                } else {
                    "nothing ran and nothing was written; run it again"
                })
            }
            other => Self::new(Kind::Bug, format!("This is a bug in cellwright: {other}")),
        }
    }

    /// A notebook that could not be looked at.
    pub(crate) fn of_look(error: LookError) -> Self {
        match error {
            LookError::Notebook(error) => Self::of_change(error),
            other => Self::new(Kind::BadEdit, capitalised(&other.to_string()))
                .hint("nothing was written, nothing ran"),
        }
    }

    /// Cells that cannot be meant.
    pub(crate) fn of_choice(error: ChoiceError, path: &std::path::Path) -> Self {
        match error {
            ChoiceError::NoSuchCell { error } => {
                let path = path.to_owned();
                Self::from(cellwright_notebook::NotebookError::Edit { path, error })
            }
            other => {
                let failure = Self::new(Kind::BadArguments, capitalised(&other.to_string()));
                failure.hint(format!(
                    "`cellwright notebook outline {}` lists the cells",
                    path.display()
                ))
            }
        }
    }

    /// Edits that could not be made.
    pub(crate) fn of_run(error: RunError, order: &Order) -> Self {
        match error {
            RunError::Commit(error) => Self::of_commit(error, order),
            RunError::Look(error) => Self::of_look(error),
            RunError::Choice(error) => Self::of_choice(error, &order.path),
            RunError::Io(error) => error.into(),
            other => Self::new(Kind::Kernel, capitalised(&other.to_string())),
        }
    }
}

/// As messages begin.
pub(crate) fn capitalised(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
