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
use crate::scan::{self, DocumentSpans, ScanDetail, ScanError, ScannedCell, Visitor};
use crate::source;
use crate::span::Span;

/// A notebook without its outputs, and the spans of those outputs.
#[derive(Debug)]
pub struct Survey {
    revision: Revision,
    pub(super) spans: DocumentSpans,
    metadata: Vec<u8>,
    /// Sources, ids and metadata of the cells. One allocation: a notebook may have a million cells.
    text: String,
    pub(super) cells: Vec<SurveyedCell>,
    style: Style,
    pub(super) stamp: FileStamp,
    pub(super) attributes: fs::Metadata,
    /// The surveyed file, even if another file has replaced it.
    pub(super) file: File,
}

/// No execution count, or one that no kernel reaches.
const NO_COUNT: u32 = u32::MAX;

/// One cell, and the spans of its members.
#[derive(Debug)]
pub(super) struct SurveyedCell {
    kind: CellKind,
    has_id: bool,
    /// [`NO_COUNT`] if there is none.
    execution_count: u32,
    /// Where the text of the cell is in the text of the survey: id, source, metadata.
    id_start: u32,
    source_start: u32,
    metadata_start: u32,
    text_end: u32,
    pub(super) spans: MemberSpans,
}

/// The spans of a cell's members; empty for missing members.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberSpans {
    pub(super) outputs: Span,
    pub(super) execution_count: Span,
    pub(super) metadata: Span,
    /// Offset of the end of its last member.
    end: u32,
}

impl MemberSpans {
    /// Offset of the end of the last member.
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }
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
    read_when_stable(path, scan_open_file)
}

/// Surveys a file that is open, from its beginning.
pub(super) fn survey_open_file(file: &File) -> Result<Survey, ScanError> {
    let mut file = file.try_clone()?;
    io::Seek::rewind(&mut file)?;
    scan_open_file(&mut file)
}

fn scan_open_file(file: &mut File) -> Result<Survey, ScanError> {
    let attributes = file.metadata()?;
    let mut builder = SurveyBuilder::default();
    let expected = usize::try_from(attributes.len()).unwrap_or(usize::MAX);
    let (spans, revision) =
        scan::scan_stream(file, expected, &mut builder, ScanDetail::SourcesAndMetadata)?;
    builder.text.shrink_to_fit();
    builder.cells.shrink_to_fit();
    let mut survey = Survey {
        revision,
        spans,
        metadata: builder.metadata,
        text: builder.text,
        cells: builder.cells,
        style: Style::default(),
        stamp: FileStamp::from_metadata(&attributes),
        attributes,
        file: file.try_clone()?,
    };
    survey.style = detect_style(&survey, builder.non_ascii)?;
    for index in 0..survey.cells.len() {
        let digits = survey.bytes(survey.cells[index].spans.execution_count)?;
        let count = std::str::from_utf8(&digits).ok();
        let count = count.and_then(|digits| digits.parse().ok());
        survey.cells[index].execution_count = count.unwrap_or(NO_COUNT);
    }
    Ok(survey)
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
        self.text_of(index, |cell| (cell.metadata_start, cell.text_end))
            .as_bytes()
    }

    /// The execution count of cell `index`.
    pub fn execution_count(&self, index: usize) -> Option<u64> {
        let count = self.cells[index].execution_count;
        (count != NO_COUNT).then_some(u64::from(count))
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

    fn text_of(&self, index: usize, range: impl Fn(&SurveyedCell) -> (u32, u32)) -> &str {
        let (start, end) = range(&self.cells[index]);
        self.text
            .get(start as usize..end as usize)
            .unwrap_or_default()
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
        Cow::Borrowed(self.text_of(index, |cell| (cell.source_start, cell.metadata_start)))
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        let id = || self.text_of(index, |cell| (cell.id_start, cell.source_start));
        self.cells[index].has_id.then(|| Cow::Borrowed(id()))
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
    text: String,
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

impl SurveyBuilder {
    /// Offset of the end of the text. It is not longer than the file, which has less than 4 GiB.
    fn text_end(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }
}

impl Visitor for SurveyBuilder {
    fn begin_cells(&mut self) {
        self.cells.clear();
        self.text.clear();
    }

    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>) {
        let id_start = self.text_end();
        if let Some(id) = scanned.id {
            self.text.push_str(&json_text::decode(id));
        }
        let source_start = self.text_end();
        if let Some(value) = scanned.source {
            source::append_text(value, &mut self.text);
            let is_ascii = self.text[source_start as usize..].is_ascii();
            self.non_ascii.literal |= !value.is_ascii();
            self.non_ascii.escaped |= value.is_ascii() && !is_ascii;
        }
        let metadata_start = self.text_end();
        self.text
            .push_str(&String::from_utf8_lossy(scanned.extras.metadata));
        self.cells.push(SurveyedCell {
            kind: span.kind,
            has_id: scanned.id.is_some(),
            execution_count: NO_COUNT,
            id_start,
            source_start,
            metadata_start,
            text_end: self.text_end(),
            spans: MemberSpans {
                outputs: scanned.extras.outputs,
                execution_count: scanned.extras.execution_count,
                metadata: scanned.extras.metadata_span,
                end: u32::try_from(scanned.extras.end).unwrap_or(u32::MAX),
            },
        });
    }

    fn metadata(&mut self, value: &[u8]) {
        self.metadata = value.to_vec();
    }
}
