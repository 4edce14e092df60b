//! Writes outputs of executed cells into their notebook, without keeping either in memory.
//!
//! The old file is copied in chunks around the replaced values. If another program changed the
//! file in the meantime, each executed cell is located in the current file: it gets its outputs
//! if its source is unchanged, and is left alone otherwise.

mod locate;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::debug;

use self::locate::locate_cells;
use super::change::resolve_target;
use super::guard::GuardRequest;
use super::lock::lock;
use super::os::FileStamp;
use super::save::{Chunk, ReplacedFile, SaveOutcome, SaveStep, save};
use super::survey::{Survey, survey};
use crate::error::{NotebookError, Notice};
use crate::json::format::format_at_depth;
use crate::json::object;
use crate::json::style::Style;
use crate::layout::CELL_DEPTH;
use crate::revision::Revision;
use crate::span::Span;

/// The results of one cell.
#[derive(Clone, Debug, Default)]
pub struct CellUpdate {
    /// Index of the cell in the base survey.
    pub cell: usize,
    /// Its execution count.
    pub execution_count: Option<u64>,
    /// Its outputs: segments of a JSON array, formatted for [`CELL_DEPTH`]. Empty means `[]`.
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

/// The results to write, and the target.
#[derive(Clone, Copy)]
pub struct RecordRequest<'r> {
    /// The notebook.
    pub path: &'r Path,
    /// The notebook at the time when the executed sources were read.
    pub base: &'r Survey,
    /// The results of the cells.
    pub updates: &'r [CellUpdate],
    /// Members to set in the notebook's metadata: names and JSON values.
    pub metadata: &'r [(&'static str, String)],
    /// The expected revision; any other was written by another program.
    pub expected: Revision,
    /// Asked before the file is replaced.
    pub guard: GuardRequest<'r>,
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

/// How often to start again if another program keeps changing the file.
const ATTEMPT_LIMIT: usize = 5;

/// Writes the results of executed cells into their notebook.
pub fn record(request: RecordRequest<'_>) -> Result<RecordReport, NotebookError> {
    for _ in 0..ATTEMPT_LIMIT {
        let path = resolve_existing(request.path)?;
        let _lock = lock(&path)?;
        if let Some(recorded) = try_record(&path, request)? {
            return Ok(recorded);
        }
    }
    Err(NotebookError::Busy {
        path: request.path.to_owned(),
    })
}

/// Copies a notebook byte for byte, replacing an existing file. Returns the copy, and the notices of the guard.
pub fn copy(
    from: &Survey,
    to: &Path,
    guard: GuardRequest<'_>,
) -> Result<(Survey, Vec<Notice>), NotebookError> {
    for _ in 0..ATTEMPT_LIMIT {
        let target = resolve_target(to)?;
        let failed = |source| NotebookError::Io {
            step: "read",
            path: target.path.clone(),
            source,
        };
        let _lock = target.exists.then(|| lock(&target.path)).transpose()?;
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
        let all = Chunk::Stored(&from.file, 0, from.stamp.size);
        // A file that is rewritten in place during the copy would give a mixture.
        let on_step = |step: SaveStep| match step {
            SaveStep::Publish if was_modified(from)? => Err(io::ErrorKind::ResourceBusy.into()),
            _ => Ok(()),
        };
        let chunks = [all].into_iter();
        match save(&target.path, old.as_ref(), chunks, guard, &on_step) {
            Ok(SaveOutcome::Written { notices, .. }) => {
                return Ok((survey(&target.path)?, notices));
            }
            Ok(SaveOutcome::Unchanged { .. }) => return Ok((survey(&target.path)?, Vec::new())),
            Ok(SaveOutcome::ChangedOnDisk) | Err(NotebookError::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(NotebookError::Busy {
        path: to.to_owned(),
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

/// Returns `None` if the file changed during the save.
fn try_record(
    path: &Path,
    request: RecordRequest<'_>,
) -> Result<Option<RecordReport>, NotebookError> {
    let now = survey(path)?;
    let merged = now.revision() != request.expected;
    let (cell_indexes, conflicts) = locate_cells(request.base, request.updates, &now);
    let splices = splices(&now, request, &cell_indexes);
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let old = ReplacedFile {
        stamp: now.stamp,
        metadata: &now.attributes,
        revision: now.revision(),
    };
    let chunks = chunks(&now, &splices);
    let outcome = match save(path, Some(&old), chunks, request.guard, on_step) {
        // A program that rewrites a file in place truncates it first.
        Err(NotebookError::Io { source, .. })
            if source.kind() == io::ErrorKind::UnexpectedEof
                && was_modified(&now).unwrap_or(false) =>
        {
            return Ok(None);
        }
        other => other?,
    };
    let Some((revision, notices, lock)) = outcome.into_saved() else {
        return Ok(None);
    };
    let changed = lock.is_some();
    let survey = survey(path)?;
    if survey.revision() != revision {
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
        notices,
    }))
}

/// A span of the old file, and its replacement.
type Splice = (Span, Vec<Segment>);

fn splices(
    now: &Survey,
    request: RecordRequest<'_>,
    cell_indexes: &[Option<usize>],
) -> Vec<Splice> {
    let mut splices = Vec::new();
    let style = now.style();
    for (update, index) in request.updates.iter().zip(cell_indexes) {
        let Some(cell) = index.map(|index| &now.cells[index]) else {
            continue;
        };
        let count = update
            .execution_count
            .map_or_else(|| "null".to_owned(), |count| count.to_string());
        let mut missing = Vec::new();
        let mut set = |name: &str, span: Span, value: Vec<Segment>| {
            if span.is_empty() {
                missing.push(text_segment(&format!(
                    "{}\"{name}\"{}",
                    style.between(CELL_DEPTH),
                    style.colon
                )));
                missing.extend(value);
            } else {
                splices.push((span, value));
            }
        };
        set(
            "execution_count",
            cell.spans.execution_count,
            vec![text_segment(&count)],
        );
        let outputs = if update.outputs.is_empty() {
            vec![text_segment("[]")]
        } else {
            update.outputs.clone()
        };
        set("outputs", cell.spans.outputs, outputs);
        if let Some((name, value)) = &update.metadata {
            let metadata = set_member(&cell.metadata, name, value, style, CELL_DEPTH);
            set(
                "metadata",
                cell.spans.metadata,
                vec![bytes_segment(metadata)],
            );
        }
        if !missing.is_empty() {
            splices.push((Span::new(cell.spans.end, cell.spans.end), missing));
        }
    }
    if !request.metadata.is_empty() {
        let mut metadata = now.metadata().to_vec();
        for (name, value) in request.metadata {
            // A concurrent change by another program wins.
            if compact_member(request.base.metadata(), name) == compact_member(now.metadata(), name)
            {
                metadata = set_member(&metadata, name, value, style, 1);
            }
        }
        let at = now.spans.metadata;
        if metadata.is_empty() {
            // There is no metadata, and none to add.
        } else if at.is_empty() {
            // After the cells, which exist, so a comma is right.
            let name = format!("{}\"metadata\"{}", style.between(1), style.colon);
            let end = now.spans.cells.end();
            splices.push((
                Span::new(end, end),
                vec![text_segment(&name), bytes_segment(metadata)],
            ));
        } else {
            splices.push((at, vec![bytes_segment(metadata)]));
        }
    }
    splices.sort_by_key(|(span, _)| (span.start, span.end));
    splices
}

/// The object with a member set. Any other value becomes an object. Everything else keeps its
/// bytes.
fn set_member(object: &[u8], name: &str, value: &str, style: &Style, depth: usize) -> Vec<u8> {
    let formatted = format_at_depth(value.as_bytes(), style, depth + 1);
    let members = object::members(object, Span::new(0, object.len()));
    if let Some(member) = object::find_member(&members, name) {
        let (before, after) = (member.value.start(), member.value.end());
        return [&object[..before], &formatted[..], &object[after..]].concat();
    }
    let named = [format!("\"{name}\"{}", style.colon).as_bytes(), &formatted].concat();
    // Sorted by name, as in Jupyter.
    let predecessor = members
        .iter()
        .rev()
        .find(|member| member.name.as_str() < name);
    match (predecessor, members.first()) {
        (Some(member), _) => {
            let at = member.value.end();
            let between = style.between(depth + 1);
            [&object[..at], between.as_bytes(), &named, &object[at..]].concat()
        }
        (None, Some(first)) => {
            let at = first.key.start();
            let between = style.between(depth + 1);
            [&object[..at], &named, between.as_bytes(), &object[at..]].concat()
        }
        (None, None) => {
            let (open, close) = (style.line(depth + 1), style.line(depth));
            [b"{", open.as_bytes(), &named, close.as_bytes(), b"}"].concat()
        }
    }
}

/// The value of a member, without white space.
fn compact_member(object: &[u8], name: &str) -> Option<Vec<u8>> {
    let dense = Style {
        newline: String::new(),
        colon: ":".to_owned(),
        comma: ",".to_owned(),
        ..Style::default()
    };
    let members = object::members(object, Span::new(0, object.len()));
    let value = object::find_member(&members, name)?.value;
    Some(format_at_depth(&object[value.range()], &dense, 0))
}

fn text_segment(text: &str) -> Segment {
    Segment::Bytes(text.as_bytes().into())
}

fn bytes_segment(bytes: Vec<u8>) -> Segment {
    Segment::Bytes(bytes.into())
}

/// The new file: the old one around the replaced spans.
fn chunks<'c>(now: &'c Survey, splices: &'c [Splice]) -> impl Iterator<Item = Chunk<'c>> {
    let mut chunks = Vec::new();
    let mut done = 0;
    let old = |from: usize, to: usize| Chunk::Stored(&now.file, from as u64, (to - from) as u64);
    for (span, segments) in splices {
        chunks.push(old(done, span.start()));
        chunks.extend(segments.iter().map(|segment| match segment {
            Segment::Bytes(bytes) => Chunk::Bytes(bytes),
            Segment::Stored {
                file,
                start,
                length,
            } => Chunk::Stored(file, *start, *length),
        }));
        done = span.end();
    }
    chunks.push(old(done, usize::try_from(now.stamp.size).unwrap_or(done)));
    chunks.into_iter()
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
