//! [`WriteGuard`]: asked before a notebook is replaced, because another program may have it open.

use std::fmt;
use std::path::Path;

use crate::error::{NotebookError, Notice};

/// Decides whether a notebook may be replaced. It is asked before every write to an existing file.
pub trait WriteGuard: fmt::Debug + Send + Sync {
    /// Called under the lock, right before the file at `path` is replaced. With `force`, the caller accepts the loss of
    /// text that a person types elsewhere.
    fn before_write(&self, path: &Path, force: bool) -> Result<WritePermit, WriteRefusal>;
}

/// The permission to replace a notebook.
#[derive(Default)]
pub struct WritePermit {
    /// Facts for the caller.
    pub notices: Vec<Notice>,
    /// Called under the lock after the file was replaced.
    pub on_written: Option<Box<dyn FnOnce()>>,
}

/// A collaboration room has the notebook: it would replace text that a person types by the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRefusal {
    /// Address of the server of the room.
    pub server: String,
}

/// A guard, and whether the caller overrides its refusals.
#[derive(Clone, Copy, Default)]
pub struct GuardRequest<'g> {
    /// The guard; `None` permits everything.
    pub guard: Option<&'g dyn WriteGuard>,
    /// Whether to write although a collaboration room has the notebook.
    pub force: bool,
}

impl GuardRequest<'_> {
    /// Asks the guard about a write to `path`.
    pub(crate) fn permit(self, path: &Path) -> Result<WritePermit, NotebookError> {
        let Some(guard) = self.guard else {
            return Ok(WritePermit::default());
        };
        guard
            .before_write(path, self.force)
            .map_err(|WriteRefusal { server }| NotebookError::OpenInRoom {
                path: path.to_owned(),
                server,
            })
    }

    /// Asks whether the notebook at `path` may be written, before the work that produces the new content.
    pub fn check(self, path: &Path) -> Result<Vec<Notice>, NotebookError> {
        let target = super::change::resolve_target(path)?;
        if !target.exists {
            return Ok(Vec::new());
        }
        Ok(self.permit(&target.path)?.notices)
    }
}
