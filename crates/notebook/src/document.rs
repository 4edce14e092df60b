//! [`Notebook`]: the file's bytes and the spans of its cells.

use std::borrow::Cow;

use crate::cell::{CellKind, CellSpans};
use crate::error::FormatError;
use crate::json::object::{self, Member};
use crate::json::text;
use crate::metadata;
use crate::revision::Revision;
use crate::scan::{self, DocumentSpans, ScannedDocument};
use crate::source;
use crate::span::Span;

/// Cells as the text view shows them, of a loaded notebook or of a stored baseline.
pub trait Cells {
    /// The number of cells.
    fn count(&self) -> usize;
    /// The kind of cell `index`.
    fn kind(&self, index: usize) -> CellKind;
    /// The source of cell `index`. Lone surrogates, which UTF-8 cannot represent, read as U+FFFD.
    fn source(&self, index: usize) -> Cow<'_, str>;
    /// The id of cell `index`, if it has one.
    fn id(&self, index: usize) -> Option<Cow<'_, str>>;
    /// The tags of cell `index`; `None` if they are not known.
    fn tags(&self, index: usize) -> Option<Vec<String>> {
        let _ = index;
        None
    }
}

/// A notebook: the file's bytes, and the spans of its cells.
///
/// Nothing is decoded before it is needed, so a 100 MB notebook costs one scan. A notebook is
/// immutable: [`compose`](crate::compose) applies a [`Plan`](crate::Plan) to it and returns an
/// [`EditedNotebook`](crate::EditedNotebook).
pub struct Notebook {
    bytes: Vec<u8>,
    spans: DocumentSpans,
    cells: Vec<CellSpans>,
    revision: Revision,
    /// Major and minor version of the file, if the bytes were converted from it.
    converted_from: Option<(u32, u32)>,
}

/// A new notebook, laid out as Jupyter writes it.
const EMPTY: &str =
    "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

impl Notebook {
    /// A notebook in nbformat 4.5 without cells.
    pub fn empty() -> Self {
        Self::parse(EMPTY).unwrap_or_else(|_| Self {
            bytes: EMPTY.into(),
            spans: DocumentSpans::default(),
            cells: Vec::new(),
            revision: Revision::compute(EMPTY.as_bytes()),
            converted_from: None,
        })
    }

    /// Scans the bytes of a notebook file.
    pub fn parse(bytes: impl Into<Vec<u8>>) -> Result<Self, FormatError> {
        let bytes = bytes.into();
        let (spans, cells) = scan::scan_slice(&bytes)?;
        let revision = Revision::compute(&bytes);
        Ok(Self {
            bytes,
            spans,
            cells,
            revision,
            converted_from: None,
        })
    }

    /// The notebook as the conversion of a file with another revision and format.
    pub(crate) fn converted_from(self, revision: Revision, format: (u32, u32)) -> Self {
        Self {
            revision,
            converted_from: Some(format),
            ..self
        }
    }

    /// Major and minor version of the file.
    pub fn format(&self) -> (u32, u32) {
        self.converted_from.unwrap_or((4, self.spans.minor))
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The revision of the content.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The minor version of the format: 5 in "4.5".
    pub fn minor(&self) -> u32 {
        self.spans.minor
    }

    /// Whether cells of this format have ids (4.5 and later).
    pub fn requires_ids(&self) -> bool {
        self.spans.minor >= 5
    }

    /// The notebook's `metadata` as JSON; empty if it has none.
    pub fn metadata(&self) -> &[u8] {
        self.slice(self.spans.metadata)
    }

    /// The `metadata` of cell `index` as JSON; empty if it has none.
    pub fn cell_metadata(&self, index: usize) -> &[u8] {
        let members = self.members(index);
        object::find_member(&members, "metadata").map_or(&[], |member| self.slice(member.value))
    }

    pub(crate) fn spans(&self) -> &DocumentSpans {
        &self.spans
    }

    pub(crate) fn cell(&self, index: usize) -> &CellSpans {
        &self.cells[index]
    }

    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.range()]
    }

    pub(crate) fn members(&self, index: usize) -> Vec<Member> {
        object::members(&self.bytes, self.cells[index].span)
    }

    /// Hash of the whole cell, including outputs and metadata.
    pub(crate) fn cell_hash(&self, index: usize) -> Revision {
        Revision::compute(self.slice(self.cells[index].span))
    }
}

impl From<ScannedDocument> for Notebook {
    fn from(scanned: ScannedDocument) -> Self {
        Self {
            bytes: scanned.bytes,
            spans: scanned.spans,
            cells: scanned.cells,
            revision: scanned.revision,
            converted_from: None,
        }
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
        Cow::Owned(source::decode_text(self.slice(self.cells[index].source)))
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        let span = self.cells[index].id;
        (!span.is_empty()).then(|| text::decode(self.slice(span)))
    }

    fn tags(&self, index: usize) -> Option<Vec<String>> {
        Some(metadata::tags(self.cell_metadata(index)))
    }
}

impl std::fmt::Debug for Notebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notebook")
            .field("bytes", &self.bytes.len())
            .field("cells", &self.cells.len())
            .field("minor", &self.spans.minor)
            .field("revision", &self.revision)
            .field("converted_from", &self.converted_from)
            .finish()
    }
}
