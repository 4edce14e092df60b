//! [`Notebook`]: the file's own bytes and where things are in them.

use std::borrow::Cow;

use crate::cell::{CellKind, CellSpan};
use crate::error::{FormatError, Notice};
use crate::json::object::{self, Member};
use crate::json::text;
use crate::revision::Revision;
use crate::scan::{self, Frame};
use crate::source;
use crate::span::Span;
use crate::view::{Viewer, Wanted};

/// Cells as the text view shows them, wherever they come from: a notebook that is loaded, or what
/// was remembered of an earlier revision of it.
pub trait Cells {
    /// How many there are.
    fn count(&self) -> usize;
    /// The kind of cell `index`.
    fn kind(&self, index: usize) -> CellKind;
    /// The source of cell `index`. Half surrogate pairs, which are no text, read as U+FFFD.
    fn source(&self, index: usize) -> Cow<'_, str>;
    /// The id of cell `index`, if it has one.
    fn id(&self, index: usize) -> Option<Cow<'_, str>>;
}

/// A notebook: the file's own bytes, and where its cells are in them.
///
/// Nothing is taken apart that need not be, so a 100 MB notebook costs one scan. A document never
/// changes; edits are [`Plan`](crate::Plan)s over it that give an [`Edited`](crate::Edited).
pub struct Notebook {
    bytes: Vec<u8>,
    frame: Frame,
    cells: Vec<CellSpan>,
    revision: Revision,
}

/// What a new notebook holds: the layout that Jupyter writes.
const EMPTY: &str =
    "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

impl Notebook {
    /// A notebook in nbformat 4.5 without cells.
    pub fn empty() -> Self {
        Self::parse(EMPTY).unwrap_or_else(|_| Self {
            bytes: EMPTY.into(),
            frame: Frame::default(),
            cells: Vec::new(),
            revision: Revision::of(EMPTY.as_bytes()),
        })
    }

    /// Scans the bytes of a notebook file.
    pub fn parse(bytes: impl Into<Vec<u8>>) -> Result<Self, FormatError> {
        let bytes = bytes.into();
        let (frame, cells) = scan::slice(&bytes)?;
        let revision = Revision::of(&bytes);
        Ok(Self::assemble(bytes, frame, cells, revision))
    }

    pub(crate) fn assemble(
        bytes: Vec<u8>,
        frame: Frame,
        cells: Vec<CellSpan>,
        revision: Revision,
    ) -> Self {
        Self {
            bytes,
            frame,
            cells,
            revision,
        }
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of this content.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The minor number of the format: 5 in "4.5".
    pub fn minor(&self) -> u32 {
        self.frame.minor
    }

    /// Whether cells of this format carry ids (4.5 and later).
    pub fn wants_ids(&self) -> bool {
        self.frame.minor >= 5
    }

    /// What the notebook says about itself: JSON, empty if it says nothing.
    pub fn metadata(&self) -> &[u8] {
        self.slice(self.frame.metadata)
    }

    /// What cell `index` says about itself: JSON, empty if it says nothing.
    pub fn cell_metadata(&self, index: usize) -> &[u8] {
        let members = self.members(index);
        object::member(&members, "metadata").map_or(&[], |member| self.slice(member.value))
    }

    /// What a validator would complain about, at most ten.
    pub fn irregularities(&self) -> Vec<Notice> {
        let nothing_else = Wanted {
            text: None,
            cell: None,
        };
        Viewer::look(nothing_else, self).notices
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(crate) fn cell(&self, index: usize) -> &CellSpan {
        &self.cells[index]
    }

    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.range()]
    }

    pub(crate) fn members(&self, index: usize) -> Vec<Member> {
        object::members(&self.bytes, self.cells[index].span)
    }

    /// Hash of everything in the cell, outputs and metadata included.
    pub(crate) fn cell_hash(&self, index: usize) -> Revision {
        Revision::of(self.slice(self.cells[index].span))
    }
}

impl Cells for Notebook {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.cells[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        Cow::Owned(source::text_of(self.slice(self.cells[index].source)))
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        let span = self.cells[index].id;
        (!span.is_empty()).then(|| text::decode(self.slice(span)))
    }
}

impl std::fmt::Debug for Notebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notebook")
            .field("bytes", &self.bytes.len())
            .field("cells", &self.cells.len())
            .field("minor", &self.frame.minor)
            .field("revision", &self.revision)
            .finish()
    }
}
