//! Puts an earlier or later content of a notebook in place: undo and redo.

use std::path::Path;

use super::change::{ChangeRequest, LockedFile, lock_and_load, report_late_write};
use super::load;
use super::save::{Chunk, ChunkWriter, ReplacedFile, save};
use crate::baseline::{Direction, HistoryStep, NoStep};
use crate::document::Notebook;
use crate::error::{NotebookError, Notice};
use crate::revision::Revision;
use crate::upgrade::parse_any_format;

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
    let LockedFile {
        path,
        bytes,
        stamp,
        metadata,
        revision,
        lock: _lock,
    } = lock_and_load(path, request, "the whole file would be replaced")?;
    let path = path.as_path();
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
    // An upgrade can be undone: then one of the two has an old format.
    let parse = |bytes: &[u8]| {
        let parsed = parse_any_format(bytes.to_vec());
        parsed.map_err(|error| load::format_error(path, error))
    };
    let ((old, _), (new, _)) = (parse(&bytes)?, parse(&content)?);
    // Stored, so that this step can be reversed.
    history.store(revision, &bytes).ok();
    let replaced = ReplacedFile {
        stamp,
        metadata: &metadata,
        revision,
    };
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let chunks = &mut |write: ChunkWriter<'_>| write(Chunk::Bytes(&content));
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
