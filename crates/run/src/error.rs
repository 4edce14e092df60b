//! [`RunError`]: why a run did not start.

use std::sync::Arc;

use cellwright_kernel::KernelError;

use crate::preview::PreviewError;
use crate::record::CommitError;
use crate::selection::SelectionError;

/// Why no cell ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The notebook cannot be read, or the edits do not apply to it.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// The cell selection is invalid.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The notebook was changed or could not be edited when the kernel was ready.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The kernel could not be started.
    #[error(transparent)]
    Kernel(Arc<KernelError>),
    /// An operating system call failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
