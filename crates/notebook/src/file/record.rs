//! Writes outputs of executed cells into their notebook, without keeping either in memory.
//!
//! The old file is copied in chunks around the replaced values. If another program changed the
//! file in the meantime, each executed cell is located in the current file: it gets its outputs
//! if its source is unchanged, and is left alone otherwise.

mod locate;
mod splice;

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::debug;

use self::locate::locate_cells;
use self::splice::write_spliced;
use super::attempts::Attempts;
use super::change::{Target, report_late_write, resolve_target, store_late_write};
use super::guard::GuardRequest;
use super::load::has_notebook_extension;
use super::lock::lock;
use super::os::FileStamp;
use super::replace::DetachedFile;
use super::save::{Chunk, ChunkWriter, ReplacedFile, SaveOutcome, SaveStep, save, save_with_mode};
use super::survey::{RecordBase, Survey, survey, survey_like, survey_open_file};
use crate::baseline::Baselines;
use crate::error::{NotebookError, Notice};
use crate::revision::Revision;

/// The results of one cell.
#[derive(Clone, Debug, Default)]
pub struct CellUpdate {
    /// Index of the cell in the base.
    pub cell: usize,
    /// Its execution count.
    pub execution_count: Option<u64>,
    /// Its outputs: segments of a JSON array, formatted for `CELL_DEPTH`. Empty means `[]`.
    pub outputs: Vec<Segment>,
    /// A member to set in its metadata: name and JSON value.
    pub metadata: Option<(&'static str, String)>,
}

/// A segment of text to write.
#[derive(Clone, Debug)]
pub enum Segment {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In a file.
    Stored {
        /// The file.
        file: Arc<File>,
        /// Its offset in bytes.
        start: u64,
        /// Its length in bytes.
        length: u64,
    },
}

/// The results of cells. Those of all cells may not be in memory at the same time.
pub trait CellUpdates {
    /// The number of updates.
    fn count(&self) -> usize;

    /// Index in the base of the cell of update `at`.
    fn cell(&self, at: usize) -> usize;

    /// Update `at`.
    fn update(&self, at: usize) -> CellUpdate;
}

impl<T: AsRef<[CellUpdate]>> CellUpdates for T {
    fn count(&self) -> usize {
        self.as_ref().len()
    }

    fn cell(&self, at: usize) -> usize {
        self.as_ref()[at].cell
    }

    fn update(&self, at: usize) -> CellUpdate {
        self.as_ref()[at].clone()
    }
}

/// Files that saves have replaced. Another program may have one of them open and write into it.
#[derive(Debug, Default)]
pub struct DetachedFiles(Mutex<Vec<DetachedFile>>);

/// A file that was replaced longer ago is not watched.
const DETACHED_LIMIT: usize = 2;

impl DetachedFiles {
    fn push(&self, file: Option<DetachedFile>) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.extend(file);
        let surplus = files.len().saturating_sub(DETACHED_LIMIT);
        files.drain(..surplus);
    }

    /// Closes all files. Returns whether there were any.
    fn clear(&self) -> bool {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::take(&mut *files).is_empty()
    }

    /// Whether another program has written into one of the files since it was replaced.
    pub fn has_changes(&self) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().any(DetachedFile::is_changed)
    }

    /// A file that another program has written into since it was replaced, or since the last call.
    fn find_changed(&self) -> Option<(Revision, File)> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter_mut().find_map(|file| {
            let revision = file.changed_revision().ok()??;
            Some((revision, file.rewound().ok()?))
        })
    }
}

/// The results to write, and the target.
#[derive(Clone, Copy)]
pub struct RecordRequest<'r> {
    /// The notebook.
    pub path: &'r Path,
    /// The notebook at the time when the executed sources were read.
    pub base: &'r RecordBase,
    /// The results of the cells.
    pub updates: &'r dyn CellUpdates,
    /// Members to set in the notebook's metadata: names and JSON values.
    pub metadata: &'r [(&'static str, String)],
    /// The expected revision; any other was written by another program.
    pub expected: Revision,
    /// Asked before the file is replaced.
    pub guard: GuardRequest<'r>,
    /// The files that earlier calls have replaced; receives the file that this call replaces.
    pub detached: &'r DetachedFiles,
    /// Stores the text of another program that cannot be merged.
    pub baselines: Option<&'r Baselines>,
    /// Called before each step of the save. An error counts as a failure of that step; tests use
    /// this.
    pub on_step: Option<&'r dyn Fn(SaveStep) -> io::Result<()>>,
}

/// The result of [`record`].
#[derive(Debug)]
pub struct RecordReport {
    /// The notebook now.
    pub survey: Survey,
    /// Whether the file was written.
    pub changed: bool,
    /// Whether another program had changed the file.
    pub merged: bool,
    /// Updates that could not be written: index of the update, and the reason.
    pub conflicts: Vec<(usize, CellConflict)>,
    /// For each update, the current index of its cell.
    pub cell_indexes: Vec<Option<usize>>,
    /// Notices of the guard.
    pub notices: Vec<Notice>,
}

/// Why an update could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellConflict {
    /// The source of the cell changed.
    Changed,
    /// The cell no longer exists, or is ambiguous.
    Missing,
}

/// Writes the results of executed cells into their notebook.
pub fn record(request: RecordRequest<'_>) -> Result<RecordReport, NotebookError> {
    let mut notices = Vec::new();
    let mut last: Option<RecordReport> = None;
    let mut expected = request.expected;
    let mut late = request.detached.find_changed();
    let mut attempts = Attempts::new();
    while attempts.next().is_some() {
        let found = resolve_existing(request.path)
            .and_then(|path| Ok((lock(&path, request.baselines)?, path)));
        let (_lock, path) = match found {
            Err(NotebookError::NotFound { .. }) if attempts.may_return() => continue,
            other => other?,
        };
        attempts.found();
        let current = survey_like(&path, request.base)?;
        let theirs = late.as_ref().and_then(|(_, file)| {
            let is_ours = current.revision() == expected;
            is_ours.then(|| survey_open_file(file).ok()).flatten()
        });
        if let (Some((_, file)), None) = (&late, &theirs) {
            let content = read_all(file).unwrap_or_default();
            let (baselines, after) = (request.baselines, current.revision());
            notices.push(store_late_write(&path, baselines, &content, after));
            late = None;
        }
        let mut recorded = match try_record(&path, request, current, theirs) {
            Ok(Some(recorded)) => recorded,
            Ok(None) => continue,
            // The files that were replaced occupy space as long as they are open.
            Err(NotebookError::Io { source, .. })
                if source.kind() == io::ErrorKind::StorageFull && request.detached.clear() =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        recorded.merged |= last.is_some_and(|last| last.merged);
        expected = recorded.survey.revision();
        // A program that had the old file open may just have written into it.
        late = request.detached.find_changed();
        last = Some(recorded);
        if late.is_none() {
            break;
        }
    }
    let Some(mut recorded) = last else {
        return Err(NotebookError::Busy {
            path: request.path.to_owned(),
        });
    };
    if let Some((_, file)) = late {
        let content = read_all(&file).unwrap_or_default();
        let after = recorded.survey.revision();
        let notice = store_late_write(request.path, request.baselines, &content, after);
        notices.push(notice);
    }
    recorded.notices.extend(notices);
    Ok(recorded)
}

fn read_all(mut file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    io::Seek::rewind(&mut file)?;
    io::Read::read_to_end(&mut file, &mut content)?;
    Ok(content)
}

/// Copies a notebook byte for byte, replacing an existing file. A new file is not readable for users who cannot read the original. Returns the copy, and the notices of the guard.
pub fn copy(
    from: Survey,
    to: &Path,
    guard: GuardRequest<'_>,
    baselines: Option<&Baselines>,
) -> Result<(Survey, Vec<Notice>), NotebookError> {
    let base = from.record_base();
    for () in Attempts::new() {
        let target = resolve_target(to)?;
        check_link_target(to, &target)?;
        let failed = |source| NotebookError::Io {
            step: "read",
            path: target.path.clone(),
            source,
        };
        let lock = target.exists.then(|| lock(&target.path, baselines));
        let _lock = lock.transpose()?;
        let old = if target.exists {
            super::load::check_regular(&target.path)?;
            let mut file = super::os::open(&target.path).map_err(failed)?;
            let attributes = file.metadata().map_err(failed)?;
            Some((
                super::load::hash_file(&mut file).map_err(failed)?,
                attributes,
            ))
        } else {
            None
        };
        let old = old.as_ref().map(|(revision, attributes)| ReplacedFile {
            stamp: FileStamp::from_metadata(attributes),
            metadata: attributes,
            revision: *revision,
        });
        // A file that is rewritten in place during the copy would give a mixture.
        let on_step = |step: SaveStep| match step {
            SaveStep::Publish if was_modified(&from)? => Err(io::ErrorKind::ResourceBusy.into()),
            _ => Ok(()),
        };
        let chunks =
            &mut |write: ChunkWriter<'_>| write(Chunk::Stored(&from.file, 0, from.stamp.size));
        // Later saves replace the file, so that its owner must be able to write it.
        let mode = from.attributes.mode() & 0o777 | 0o600;
        match save_with_mode(&target.path, old.as_ref(), chunks, guard, &on_step, mode) {
            Ok(SaveOutcome::Written(written)) => {
                drop(from);
                let copied = survey_like(&target.path, &base)?;
                let mut notices = written.notices;
                let (detached, after) = (written.detached, written.revision);
                notices.extend(report_late_write(&target.path, baselines, detached, after));
                return Ok((copied, notices));
            }
            Ok(SaveOutcome::Unchanged { .. }) => {
                drop(from);
                let copied = survey_like(&target.path, &base)?;
                return Ok((copied, Vec::new()));
            }
            Ok(SaveOutcome::ChangedOnDisk) | Err(NotebookError::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(NotebookError::Busy {
        path: to.to_owned(),
    })
}

/// Fails if a path is a link to something that is not a notebook. A link in a project of other people may lead to any file
/// of the user, which a copy would replace.
fn check_link_target(path: &Path, target: &Target) -> Result<(), NotebookError> {
    let is_link = target.path != path;
    let is_notebook =
        || has_notebook_extension(&target.path) || target.exists && survey(&target.path).is_ok();
    if !is_link || is_notebook() {
        return Ok(());
    }
    let end = target.path.display();
    let reason = format!("it is a symbolic link to {end}, which is not a notebook");
    Err(NotebookError::Io {
        step: "replace",
        path: path.to_owned(),
        source: io::Error::other(reason),
    })
}

/// Whether the file was modified since the survey.
fn was_modified(survey: &Survey) -> io::Result<bool> {
    let now = FileStamp::from_metadata(&survey.file.metadata()?);
    Ok(!now.has_same_content(&survey.stamp))
}

fn resolve_existing(path: &Path) -> Result<PathBuf, NotebookError> {
    let target = resolve_target(path)?;
    if !target.exists {
        return Err(NotebookError::NotFound {
            path: path.to_owned(),
        });
    }
    Ok(target.path)
}

/// Writes the results into `theirs`, or into the current file, and puts the result in place. Returns `None` if the
/// file changed during the save.
fn try_record(
    path: &Path,
    request: RecordRequest<'_>,
    current: Survey,
    theirs: Option<Survey>,
) -> Result<Option<RecordReport>, NotebookError> {
    let merged = theirs.is_some() || current.revision() != request.expected;
    let now = theirs.as_ref().unwrap_or(&current);
    let (cell_indexes, conflicts) = locate_cells(&*request.base.texts, request.updates, now);
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let old = ReplacedFile {
        stamp: current.stamp,
        metadata: &current.attributes,
        revision: current.revision(),
    };
    let chunks = &mut |write: ChunkWriter<'_>| write_spliced(now, request, &cell_indexes, write);
    let outcome = match save(path, Some(&old), chunks, request.guard, on_step) {
        // A program that rewrites a file in place truncates it first.
        Err(NotebookError::Io { source, .. })
            if source.kind() == io::ErrorKind::UnexpectedEof
                && was_modified(now).unwrap_or(false) =>
        {
            return Ok(None);
        }
        other => other?,
    };
    // Only one survey of a large notebook is in memory at a time.
    drop((current, theirs));
    let Some(written) = outcome.into_written() else {
        return Ok(None);
    };
    let changed = written.lock.is_some();
    let survey = survey_like(path, request.base)?;
    request.detached.push(written.detached);
    if survey.revision() != written.revision {
        // Another program replaced the file after the save: write into the new one.
        return Ok(None);
    }
    debug!(
        path = %path.display(),
        changed,
        merged,
        conflicts = conflicts.len(),
        "outputs saved"
    );
    Ok(Some(RecordReport {
        survey,
        changed,
        merged,
        conflicts,
        cell_indexes,
        notices: written.notices,
    }))
}

impl Segment {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored { length, .. } => *length,
        }
    }

    /// The part from offset `from` to offset `to`.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        match self {
            Self::Bytes(bytes) => {
                let at = |offset: u64| {
                    usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()))
                };
                Self::Bytes(bytes[at(from)..at(to).max(at(from))].into())
            }
            Self::Stored {
                file,
                start,
                length,
            } => Self::Stored {
                file: Arc::clone(file),
                start: start + from.min(*length),
                length: to.min(*length).saturating_sub(from),
            },
        }
    }

    /// Passes the bytes to `sink`, chunk by chunk.
    pub fn for_each_chunk(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const PART_SIZE: u64 = 64 * 1024;
        match self {
            Self::Bytes(bytes) => sink(bytes),
            Self::Stored {
                file,
                start,
                length,
            } => {
                let mut buffer = Vec::new();
                let mut done = 0;
                while done < *length {
                    let part = PART_SIZE.min(length - done);
                    buffer.resize(usize::try_from(part).unwrap_or(0), 0);
                    super::os::read_at(file, &mut buffer, start + done)?;
                    sink(&buffer)?;
                    done += part;
                }
                Ok(())
            }
        }
    }

    /// Reads all bytes.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.for_each_chunk(&mut |part| {
            whole.extend_from_slice(part);
            Ok(())
        })?;
        Ok(whole)
    }
}
