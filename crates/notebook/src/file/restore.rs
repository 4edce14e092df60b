//! Puts an earlier or later content of a notebook in place: undo and redo.

use std::path::Path;

use super::change::{ChangeRequest, report_late_write, resolve_target};
use super::load;
use super::lock::lock;
use super::save::{Chunk, ChunkWriter, ReplacedFile, save};
use crate::baseline::{Direction, HistoryStep, NoStep};
use crate::document::Notebook;
use crate::error::{NotebookError, Notice};
use crate::revision::Revision;

/// The result of an undo or redo.
#[derive(Debug)]
pub enum RestoreOutcome {
    /// The content is in place.
    Restored(Box<Restored>),
    /// There is no content to restore; the revision is that of the file.
    Refused(NoStep, Revision),
}

/// A notebook before and after its content was replaced.
#[derive(Debug)]
pub struct Restored {
    /// The content before.
    pub old: Notebook,
    /// The content now.
    pub new: Notebook,
    /// The number of changes that can still be undone.
    pub earlier: usize,
    /// The number of changes that can be redone.
    pub later: usize,
    /// About other programs that have the notebook open.
    pub notices: Vec<Notice>,
}

/// Restores the state before or after the present one.
pub fn restore(
    path: &Path,
    request: ChangeRequest<'_>,
    direction: Direction,
) -> Result<RestoreOutcome, NotebookError> {
    let target = resolve_target(path)?;
    if !target.exists {
        return Err(NotebookError::NotFound {
            path: path.to_owned(),
        });
    }
    let path = target.path.as_path();
    let _lock = lock(path)?;
    let (bytes, stamp, metadata) = load::load_bytes_with_stamp(path)?;
    let revision = Revision::compute(&bytes);
    let conflict = |expected: &str, reason: &str| NotebookError::Conflict {
        path: path.to_owned(),
        revision: expected.to_owned(),
        current: revision,
        reason: reason.to_owned(),
    };
    if let Some(expected) = request.revision
        && !revision.matches_name(expected)
    {
        return Err(conflict(expected, "the whole file would be replaced"));
    }
    let Some(history) = request.baselines.map(crate::Baselines::history) else {
        return Ok(RestoreOutcome::Refused(NoStep::Nothing, revision));
    };
    let HistoryStep {
        content,
        earlier,
        later,
    } = match history.step(path, revision, direction) {
        Ok(step) => step,
        Err(reason) => return Ok(RestoreOutcome::Refused(reason, revision)),
    };
    let parse =
        |bytes: Vec<u8>| Notebook::parse(bytes).map_err(|error| load::format_error(path, error));
    let (old, new) = (parse(bytes)?, parse(content)?);
    // Stored, so that this step can be reversed.
    history.store(revision, old.bytes()).ok();
    let replaced = ReplacedFile {
        stamp,
        metadata: &metadata,
        revision,
    };
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let chunks = &mut |write: ChunkWriter<'_>| write(Chunk::Bytes(new.bytes()));
    let outcome = save(path, Some(&replaced), chunks, request.guard, on_step)?;
    let Some(written) = outcome.into_written() else {
        return Err(NotebookError::Busy {
            path: path.to_owned(),
        });
    };
    history.take_step(path, direction).ok();
    let mut notices = written.notices;
    let (detached, after) = (written.detached, written.revision);
    notices.extend(report_late_write(path, request.baselines, detached, after));
    Ok(RestoreOutcome::Restored(Box::new(Restored {
        old,
        new,
        earlier,
        later,
        notices,
    })))
}
