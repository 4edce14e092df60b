//! [`RunError`]: why a run that needs no kernel did not write its notebook.

use crate::recorder_command::CommitError;

/// Why the edits of a run without cells were not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The notebook was changed or could not be edited.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// An operating system call failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
