//! A survey: everything that running a notebook needs, except the outputs, which stay in the
//! file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::load::{load_with_stamp, read_when_stable};
use super::os::FileStamp;
use crate::cell::{CellKind, CellSpans};
use crate::document::Cells;
use crate::error::NotebookError;
use crate::json::style::Style;
use crate::json::text as json_text;
use crate::revision::Revision;
use crate::scan::{self, DocumentSpans, ScanDetail, ScannedCell, Visitor};
use crate::source;
use crate::span::Span;

/// A notebook without its outputs, and the spans of those outputs.
#[derive(Debug)]
pub struct Survey {
    revision: Revision,
    pub(super) spans: DocumentSpans,
    metadata: Vec<u8>,
    pub(super) cells: Vec<SurveyedCell>,
    style: Style,
    pub(super) stamp: FileStamp,
    pub(super) attributes: fs::Metadata,
    /// The surveyed file, even if another file has replaced it.
    pub(super) file: File,
}

/// One cell, and the spans of its members.
#[derive(Debug)]
pub(super) struct SurveyedCell {
    kind: CellKind,
    id: Option<String>,
    source: String,
    /// The value of its `metadata`.
    pub(super) metadata: Vec<u8>,
    execution_count: Option<u64>,
    pub(super) spans: MemberSpans,
}

/// The spans of a cell's members; empty for missing members.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberSpans {
    pub(super) outputs: Span,
    pub(super) execution_count: Span,
    pub(super) metadata: Span,
    /// Offset of the end of its last member.
    pub(super) end: usize,
}

/// Surveys a notebook without keeping its outputs in memory, whatever their size.
pub fn survey(path: &Path) -> Result<Survey, NotebookError> {
    let surveyed = scan_survey(path);
    if let Err(NotebookError::Format { .. }) = surveyed {
        // Loading waits for writers, and gives the exact position of an error.
        load_with_stamp(path)?;
    }
    surveyed
}

fn scan_survey(path: &Path) -> Result<Survey, NotebookError> {
    read_when_stable(path, |file| {
        let attributes = file.metadata()?;
        let mut builder = SurveyBuilder::default();
        let expected = usize::try_from(attributes.len()).unwrap_or(usize::MAX);
        let (spans, revision) =
            scan::scan_stream(file, expected, &mut builder, ScanDetail::SourcesAndMetadata)?;
        let mut survey = Survey {
            revision,
            spans,
            metadata: builder.metadata,
            cells: builder.cells,
            style: Style::default(),
            stamp: FileStamp::from_metadata(&attributes),
            attributes,
            file: file.try_clone()?,
        };
        survey.style = detect_style(&survey, builder.non_ascii)?;
        for index in 0..survey.cells.len() {
            let span = survey.cells[index].spans.execution_count;
            let digits = survey.bytes(span)?;
            survey.cells[index].execution_count = std::str::from_utf8(&digits)
                .ok()
                .and_then(|digits| digits.parse().ok());
        }
        Ok(survey)
    })
}

impl Survey {
    /// The revision of the content.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The minor version of the format: 5 in "4.5".
    pub fn minor(&self) -> u32 {
        self.spans.minor
    }

    /// The notebook's `metadata` as JSON; empty if it has none.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The `metadata` of cell `index` as JSON; empty if it has none.
    pub fn cell_metadata(&self, index: usize) -> &[u8] {
        &self.cells[index].metadata
    }

    /// The execution count of cell `index`.
    pub fn execution_count(&self, index: usize) -> Option<u64> {
        self.cells[index].execution_count
    }

    /// The size of the outputs of cell `index` in the file, in bytes.
    pub fn outputs_size(&self, index: usize) -> usize {
        self.cells[index].spans.outputs.len()
    }

    /// The outputs of cell `index` as in the file: a JSON array; empty if there is none.
    pub fn outputs(&self, index: usize) -> io::Result<Vec<u8>> {
        self.bytes(self.cells[index].spans.outputs)
    }

    /// The style of the file.
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

/// The style for new JSON, detected from the beginning of the file.
fn detect_style(survey: &Survey, non_ascii: NonAscii) -> io::Result<Style> {
    const HEAD_SIZE: usize = 4096;
    let top = survey.spans.top;
    let head = Span::new(top.start(), top.end().min(top.start() + HEAD_SIZE));
    let ascii = non_ascii.escaped && !non_ascii.literal;
    Ok(Style::detect(&survey.bytes(head)?, ascii))
}

#[derive(Default)]
struct SurveyBuilder {
    cells: Vec<SurveyedCell>,
    metadata: Vec<u8>,
    non_ascii: NonAscii,
}

/// How the sources write non-ASCII characters.
#[derive(Clone, Copy, Default)]
struct NonAscii {
    literal: bool,
    escaped: bool,
}

impl Visitor for SurveyBuilder {
    fn begin_cells(&mut self) {
        self.cells.clear();
    }

    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>) {
        let mut text = String::new();
        if let Some(value) = scanned.source {
            source::append_text(value, &mut text);
            self.non_ascii.literal |= !value.is_ascii();
            self.non_ascii.escaped |= value.is_ascii() && !text.is_ascii();
        }
        self.cells.push(SurveyedCell {
            kind: span.kind,
            id: scanned.id.map(|id| json_text::decode(id).into_owned()),
            source: text,
            metadata: scanned.extras.metadata.to_vec(),
            execution_count: None,
            spans: MemberSpans {
                outputs: scanned.extras.outputs,
                execution_count: scanned.extras.execution_count,
                metadata: scanned.extras.metadata_span,
                end: scanned.extras.end,
            },
        });
    }

    fn metadata(&mut self, value: &[u8]) {
        self.metadata = value.to_vec();
    }
}
