//! Writes what cells put out into their notebook, without holding either.
//!
//! The old file is copied piece by piece around the values that are replaced. If somebody else changed
//! the file meanwhile, each cell that ran is looked for in what is there now: it gets its outputs if its
//! source is still what ran, and is left alone otherwise.

mod find;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::find::find;
use super::change::resolve;
use super::lock::lock;
use super::os::Stamp;
use super::save::{Chunk, Old, Saved, Step, save};
use super::survey::{Survey, survey};
use crate::error::NotebookError;
use crate::json::indent::lay_out;
use crate::json::object;
use crate::layout::{CELL_DEPTH, Style};
use crate::revision::Revision;
use crate::span::Span;

/// What a cell gets.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The cell, by its place in the survey that it was run from.
    pub cell: usize,
    /// Its execution count.
    pub count: Option<u64>,
    /// Its outputs: pieces of a JSON array, laid out for [`CELL_DEPTH`]. None at all: `[]`.
    pub outputs: Vec<Piece>,
    /// A member of its metadata that is set: name and value, as JSON.
    pub metadata: Option<(&'static str, String)>,
}

/// A piece of text to be written.
#[derive(Clone, Debug)]
pub enum Piece {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In a file.
    Stored {
        /// Which.
        file: Arc<File>,
        /// Where it begins.
        start: u64,
        /// How long it is.
        length: u64,
    },
}

/// What is to be written, and where.
#[derive(Clone, Copy)]
pub struct Record<'r> {
    /// The notebook.
    pub path: &'r Path,
    /// The notebook as it was when the cells were read that ran.
    pub ran: &'r Survey,
    /// What the cells get.
    pub entries: &'r [Entry],
    /// Members of the notebook's own metadata that are set: names and values, as JSON.
    pub metadata: &'r [(&'static str, String)],
    /// The revision that is expected; another one is somebody else's.
    pub expected: Revision,
    /// Called before each step of the save; tests make steps fail with it.
    pub watch: Option<&'r dyn Fn(Step) -> io::Result<()>>,
}

/// What was written.
#[derive(Debug)]
pub struct Recorded {
    /// The notebook as it is now.
    pub survey: Survey,
    /// Whether anything had to be written.
    pub changed: bool,
    /// Whether somebody else had changed the file.
    pub merged: bool,
    /// Cells that could not be given what they put out: by their place among the entries, and why.
    pub conflicts: Vec<(usize, Conflict)>,
    /// Where the cells of the entries are now.
    pub places: Vec<Option<usize>>,
}

/// Why a cell could not be given what it put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Its source is another one now.
    Changed,
    /// It is not there any more, or cannot be told from others.
    Gone,
}

/// How often to begin anew when somebody else keeps changing the file.
const TRIES: usize = 5;

/// Writes it.
pub fn record(record: Record<'_>) -> Result<Recorded, NotebookError> {
    for _ in 0..TRIES {
        let path = existing(record.path)?;
        let _lock = lock(&path)?;
        if let Some(recorded) = attempt(&path, record)? {
            return Ok(recorded);
        }
    }
    Err(NotebookError::Busy {
        path: record.path.to_owned(),
    })
}

/// Copies a notebook as it is, over whatever is there.
pub fn copy(from: &Survey, to: &Path) -> Result<Survey, NotebookError> {
    for _ in 0..TRIES {
        let target = resolve(to)?;
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
                super::load::revision_of(&mut file).map_err(failed)?,
                attributes,
            ))
        } else {
            None
        };
        let old = old.as_ref().map(|(revision, attributes)| Old {
            stamp: Stamp::of(attributes),
            metadata: attributes,
            revision: *revision,
        });
        let all = Chunk::Stored(&from.file, 0, from.stamp.size);
        // What is rewritten in place while it is copied would come out as a mixture.
        let watch = |step: Step| match step {
            Step::Publish if is_written_to(from)? => Err(io::ErrorKind::ResourceBusy.into()),
            _ => Ok(()),
        };
        match save(&target.path, old.as_ref(), [all].into_iter(), &watch) {
            Ok(Saved::Written { .. } | Saved::Same { .. }) => return survey(&target.path),
            Ok(Saved::ChangedMeanwhile) | Err(NotebookError::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(NotebookError::Busy {
        path: to.to_owned(),
    })
}

/// Whether somebody has written to a file since it was looked at.
fn is_written_to(survey: &Survey) -> io::Result<bool> {
    let now = Stamp::of(&survey.file.metadata()?);
    Ok(!now.has_same_content(&survey.stamp))
}

fn existing(path: &Path) -> Result<PathBuf, NotebookError> {
    let target = resolve(path)?;
    if !target.exists {
        return Err(NotebookError::NotFound {
            path: path.to_owned(),
        });
    }
    Ok(target.path)
}

/// `None` if the file changed under our hands.
fn attempt(path: &Path, record: Record<'_>) -> Result<Option<Recorded>, NotebookError> {
    let now = survey(path)?;
    let merged = now.revision() != record.expected;
    let (places, conflicts) = find(record.ran, record.entries, &now);
    let splices = splices(&now, record, &places);
    let watch = record.watch.unwrap_or(&|_| Ok(()));
    let old = Old {
        stamp: now.stamp,
        metadata: &now.attributes,
        revision: now.revision(),
    };
    let saved = match save(path, Some(&old), chunks(&now, &splices), watch) {
        // Whoever rewrites a file in place makes it shorter first.
        Err(NotebookError::Io { source, .. })
            if source.kind() == io::ErrorKind::UnexpectedEof
                && is_written_to(&now).unwrap_or(false) =>
        {
            return Ok(None);
        }
        other => other?,
    };
    let (revision, changed, _lock) = match saved {
        Saved::Written {
            revision,
            _lock: lock,
        } => (revision, true, Some(lock)),
        Saved::Same { revision } => (revision, false, None),
        Saved::ChangedMeanwhile => return Ok(None),
    };
    let survey = survey(path)?;
    if survey.revision() != revision {
        // Somebody replaced what we had just written; it has to go into theirs.
        return Ok(None);
    }
    Ok(Some(Recorded {
        survey,
        changed,
        merged,
        conflicts,
        places,
    }))
}

/// A piece of the old file, and what takes its place.
type Splice = (Span, Vec<Piece>);

fn splices(now: &Survey, record: Record<'_>, places: &[Option<usize>]) -> Vec<Splice> {
    let mut splices = Vec::new();
    let style = now.style();
    for (entry, place) in record.entries.iter().zip(places) {
        let Some(cell) = place.map(|place| &now.cells[place]) else {
            continue;
        };
        let count = entry
            .count
            .map_or_else(|| "null".to_owned(), |count| count.to_string());
        let mut missing = Vec::new();
        let mut set = |name: &str, span: Span, value: Vec<Piece>| {
            if span.is_empty() {
                missing.push(text(&format!(
                    "{}\"{name}\"{}",
                    style.between(CELL_DEPTH),
                    style.colon
                )));
                missing.extend(value);
            } else {
                splices.push((span, value));
            }
        };
        set("execution_count", cell.at.count, vec![text(&count)]);
        let outputs = if entry.outputs.is_empty() {
            vec![text("[]")]
        } else {
            entry.outputs.clone()
        };
        set("outputs", cell.at.outputs, outputs);
        if let Some((name, value)) = &entry.metadata {
            let said = with_member(&cell.said, name, value, style, CELL_DEPTH);
            set("metadata", cell.at.metadata, vec![bytes(said)]);
        }
        if !missing.is_empty() {
            splices.push((Span::new(cell.at.end, cell.at.end), missing));
        }
    }
    if !record.metadata.is_empty() {
        let mut said = now.metadata().to_vec();
        for (name, value) in record.metadata {
            // What somebody else says meanwhile is their word.
            if member(record.ran.metadata(), name) == member(now.metadata(), name) {
                said = with_member(&said, name, value, style, 1);
            }
        }
        let at = now.frame.metadata;
        if said.is_empty() {
            // It says nothing, and there is nothing to be said.
        } else if at.is_empty() {
            // Before the end of the notebook; there are cells, so it is not the only member.
            let name = format!("{}\"metadata\"{}", style.between(1), style.colon);
            let end = now.frame.cells.end();
            splices.push((Span::new(end, end), vec![text(&name), bytes(said)]));
        } else {
            splices.push((at, vec![bytes(said)]));
        }
    }
    splices.sort_by_key(|(span, _)| (span.start, span.end));
    splices
}

/// An object with a member set; what is no object becomes one. What has the value already stays as it is.
fn with_member(object: &[u8], name: &str, value: &str, style: &Style, depth: usize) -> Vec<u8> {
    let laid_out = lay_out(spelt(value, style).as_bytes(), style, depth + 1);
    let members = object::members(object, Span::new(0, object.len()));
    if let Some(member) = object::member(&members, name) {
        let (before, after) = (member.value.start(), member.value.end());
        return [&object[..before], &laid_out[..], &object[after..]].concat();
    }
    let named = [format!("\"{name}\"{}", style.colon).as_bytes(), &laid_out].concat();
    // In the order of the names, as Jupyter does.
    let behind = members
        .iter()
        .rev()
        .find(|member| member.name.as_str() < name);
    match (behind, members.first()) {
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

/// The value of a member of an object, without white space.
fn member(object: &[u8], name: &str) -> Option<Vec<u8>> {
    let dense = Style {
        newline: String::new(),
        colon: ":".to_owned(),
        comma: ",".to_owned(),
        ..Style::default()
    };
    let members = object::members(object, Span::new(0, object.len()));
    let value = object::member(&members, name)?.value;
    Some(lay_out(&object[value.range()], &dense, 0))
}

/// JSON as the file spells it: only strings hold characters beyond ASCII.
fn spelt<'j>(json: &'j str, style: &Style) -> Cow<'j, str> {
    if !style.ascii || json.is_ascii() {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Cow::Owned(out)
}

fn text(text: &str) -> Piece {
    Piece::Bytes(text.as_bytes().into())
}

fn bytes(bytes: Vec<u8>) -> Piece {
    Piece::Bytes(bytes.into())
}

/// The new file: the old one around what is replaced in it.
fn chunks<'c>(now: &'c Survey, splices: &'c [Splice]) -> impl Iterator<Item = Chunk<'c>> {
    let mut chunks = Vec::new();
    let mut done = 0;
    let old = |from: usize, to: usize| Chunk::Stored(&now.file, from as u64, (to - from) as u64);
    for (span, pieces) in splices {
        chunks.push(old(done, span.start()));
        chunks.extend(pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => Chunk::Bytes(bytes),
            Piece::Stored {
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

impl Piece {
    /// How long it is.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored { length, .. } => *length,
        }
    }

    /// A part of it.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        match self {
            Self::Bytes(bytes) => {
                let at = |place: u64| {
                    usize::try_from(place).map_or(bytes.len(), |at| at.min(bytes.len()))
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

    /// Hands it to somebody, part by part.
    pub fn copy(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const PART: u64 = 64 * 1024;
        match self {
            Self::Bytes(bytes) => take(bytes),
            Self::Stored {
                file,
                start,
                length,
            } => {
                let mut buffer = Vec::new();
                let mut done = 0;
                while done < *length {
                    let part = PART.min(length - done);
                    buffer.resize(usize::try_from(part).unwrap_or(0), 0);
                    super::os::read_at(file, &mut buffer, start + done)?;
                    take(&buffer)?;
                    done += part;
                }
                Ok(())
            }
        }
    }

    /// All of it.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.copy(&mut |part| {
            whole.extend_from_slice(part);
            Ok(())
        })?;
        Ok(whole)
    }
}
