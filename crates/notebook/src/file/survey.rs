//! What running a notebook needs to know of it: everything but the outputs, which stay in the file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::load::{load_with_stamp, settle};
use super::os::Stamp;
use crate::cell::{CellKind, CellSpan};
use crate::document::Cells;
use crate::error::NotebookError;
use crate::json::text as json_text;
use crate::layout::Style;
use crate::revision::Revision;
use crate::scan::{self, Contents, Found, Frame, Visitor};
use crate::source;
use crate::span::Span;

/// A notebook without its outputs, and where those are.
#[derive(Debug)]
pub struct Survey {
    revision: Revision,
    pub(super) frame: Frame,
    metadata: Vec<u8>,
    pub(super) cells: Vec<Place>,
    style: Style,
    pub(super) stamp: Stamp,
    pub(super) attributes: fs::Metadata,
    /// The file as it was, also when another one has taken its place.
    pub(super) file: File,
}

/// One cell, and where its parts are.
#[derive(Debug)]
pub(super) struct Place {
    kind: CellKind,
    id: Option<String>,
    source: String,
    /// The value of its `metadata`.
    pub(super) said: Vec<u8>,
    count: Option<u64>,
    pub(super) at: Parts,
}

/// Where the parts of a cell are; empty for what it does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) outputs: Span,
    pub(super) count: Span,
    pub(super) metadata: Span,
    /// Behind its last member.
    pub(super) end: usize,
}

/// Looks at a notebook without holding its outputs, whatever their size.
pub fn survey(path: &Path) -> Result<Survey, NotebookError> {
    let surveyed = look(path);
    if let Err(NotebookError::Format { .. }) = surveyed {
        // The patient way also knows where exactly it is broken.
        load_with_stamp(path)?;
    }
    surveyed
}

fn look(path: &Path) -> Result<Survey, NotebookError> {
    settle(path, |file| {
        let attributes = file.metadata()?;
        let mut surveyor = Surveyor::default();
        let expected = usize::try_from(attributes.len()).unwrap_or(usize::MAX);
        let (frame, revision) = scan::window(file, expected, &mut surveyor, Contents::Surveyed)?;
        let mut survey = Survey {
            revision,
            frame,
            metadata: surveyor.metadata,
            cells: surveyor.cells,
            style: Style::default(),
            stamp: Stamp::of(&attributes),
            attributes,
            file: file.try_clone()?,
        };
        survey.style = style(&survey, surveyor.escapes)?;
        for index in 0..survey.cells.len() {
            let span = survey.cells[index].at.count;
            let digits = survey.bytes(span)?;
            survey.cells[index].count = std::str::from_utf8(&digits)
                .ok()
                .and_then(|digits| digits.parse().ok());
        }
        Ok(survey)
    })
}

impl Survey {
    /// The name of the content.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The minor number of the format: 5 in "4.5".
    pub fn minor(&self) -> u32 {
        self.frame.minor
    }

    /// What the notebook says about itself: JSON, empty if it says nothing.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// What cell `index` says about itself: JSON, empty if it says nothing.
    pub fn cell_metadata(&self, index: usize) -> &[u8] {
        &self.cells[index].said
    }

    /// The execution count of cell `index`.
    pub fn count_of(&self, index: usize) -> Option<u64> {
        self.cells[index].count
    }

    /// How many bytes the outputs of cell `index` take in the file.
    pub fn outputs_size(&self, index: usize) -> usize {
        self.cells[index].at.outputs.len()
    }

    /// The outputs of cell `index` as the file has them: a JSON array, empty if there is none.
    pub fn outputs(&self, index: usize) -> io::Result<Vec<u8>> {
        self.bytes(self.cells[index].at.outputs)
    }

    /// How the file is laid out.
    pub fn style(&self) -> &Style {
        &self.style
    }

    fn bytes(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; span.len()];
        super::os::read_at(&self.file, &mut bytes, span.start() as u64)?;
        Ok(bytes)
    }
}

impl Cells for Survey {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.cells[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        Cow::Borrowed(&self.cells[index].source)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.cells[index].id.as_deref().map(Cow::Borrowed)
    }
}

/// How new JSON is to be laid out: the top of the file shows it.
fn style(survey: &Survey, escapes: Seen) -> io::Result<Style> {
    const HEAD: usize = 4096;
    let top = survey.frame.top;
    let head = Span::new(top.start(), top.end().min(top.start() + HEAD));
    let ascii = escapes.escaped && !escapes.spelt;
    Ok(Style::of(&survey.bytes(head)?, ascii))
}

#[derive(Default)]
struct Surveyor {
    cells: Vec<Place>,
    metadata: Vec<u8>,
    escapes: Seen,
}

/// How characters beyond ASCII are written in the sources.
#[derive(Clone, Copy, Default)]
struct Seen {
    spelt: bool,
    escaped: bool,
}

impl Visitor for Surveyor {
    fn begin(&mut self) {
        self.cells.clear();
    }

    fn cell(&mut self, span: &CellSpan, found: &Found<'_>) {
        let mut text = String::new();
        if let Some(value) = found.source {
            source::append_text(value, &mut text);
            self.escapes.spelt |= !value.is_ascii();
            self.escapes.escaped |= value.is_ascii() && !text.is_ascii();
        }
        self.cells.push(Place {
            kind: span.kind,
            id: found.id.map(|id| json_text::decode(id).into_owned()),
            source: text,
            said: found.rest.said.to_vec(),
            count: None,
            at: Parts {
                outputs: found.rest.outputs,
                count: found.rest.count,
                metadata: found.rest.metadata,
                end: found.rest.end,
            },
        });
    }

    fn metadata(&mut self, value: &[u8]) {
        self.metadata = value.to_vec();
    }
}
