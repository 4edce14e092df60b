//! A survey: everything that running a notebook needs, except the outputs, which stay in the
//! file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::load::{load_with_stamp, read_when_stable};
use super::os::FileStamp;
use crate::cell::{CellKind, CellSpans};
use crate::cell_texts::CellTexts;
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
    metadata: Arc<[u8]>,
    /// Shared, because a notebook may have a million cells.
    texts: Arc<CellTexts>,
    /// The metadata of the cells, one after the other.
    cell_metadata: String,
    pub(super) cells: Vec<SurveyedCell>,
    style: Style,
    pub(super) stamp: FileStamp,
    pub(super) attributes: fs::Metadata,
    /// The surveyed file, even if another file has replaced it.
    pub(super) file: File,
}

/// The part of a notebook with which later changes of other programs are found. It needs less memory than a survey, and
/// does not keep the file open.
#[derive(Clone, Debug)]
pub struct RecordBase {
    pub(super) texts: Arc<CellTexts>,
    pub(super) metadata: Arc<[u8]>,
}

impl RecordBase {
    /// Uses `texts` if they are the same, to store them only once.
    #[must_use]
    pub fn sharing(mut self, texts: &Arc<CellTexts>) -> Self {
        if *self.texts == **texts {
            self.texts = Arc::clone(texts);
        }
        self
    }

    /// The notebook's `metadata` as JSON; empty if it has none.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }
}

/// No execution count, or one that no kernel reaches.
const NO_COUNT: u32 = u32::MAX;

/// Numbers of one cell, and the spans of its members.
#[derive(Debug)]
pub(super) struct SurveyedCell {
    /// [`NO_COUNT`] if there is none.
    execution_count: u32,
    /// Offset of the end of its metadata in the metadata of all cells.
    metadata_end: u32,
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
    survey_with(path, SurveyBuilder::default)
}

/// Surveys a notebook that probably has the cells of `base`: no list grows, which would need twice the memory.
pub(super) fn survey_like(path: &Path, base: &RecordBase) -> Result<Survey, NotebookError> {
    survey_with(path, || SurveyBuilder {
        texts: CellTexts::with_capacity_of(&base.texts),
        cells: Vec::with_capacity(base.texts.count()),
        ..SurveyBuilder::default()
    })
}

fn survey_with(path: &Path, builder: impl Fn() -> SurveyBuilder) -> Result<Survey, NotebookError> {
    let surveyed = read_when_stable(path, |file| scan_open_file(file, builder()));
    if let Err(NotebookError::Format { .. }) = surveyed {
        // Loading waits for writers, and gives the exact position of an error.
        load_with_stamp(path)?;
    }
    surveyed
}

/// Surveys a file that is open, from its beginning.
pub(super) fn survey_open_file(file: &File) -> Result<Survey, ScanError> {
    let mut file = file.try_clone()?;
    io::Seek::rewind(&mut file)?;
    scan_open_file(&mut file, SurveyBuilder::default())
}

fn scan_open_file(file: &mut File, mut builder: SurveyBuilder) -> Result<Survey, ScanError> {
    let attributes = file.metadata()?;
    let expected = usize::try_from(attributes.len()).unwrap_or(usize::MAX);
    let (spans, revision) =
        scan::scan_stream(file, expected, &mut builder, ScanDetail::SourcesAndMetadata)?;
    builder.texts.shrink_to_fit();
    builder.cell_metadata.shrink_to_fit();
    builder.cells.shrink_to_fit();
    let mut survey = Survey {
        revision,
        spans,
        metadata: builder.metadata.into(),
        texts: Arc::new(builder.texts),
        cell_metadata: builder.cell_metadata,
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

    /// The part with which later changes of other programs are found.
    pub fn record_base(&self) -> RecordBase {
        RecordBase {
            texts: Arc::clone(&self.texts),
            metadata: Arc::clone(&self.metadata),
        }
    }

    /// Types, ids and sources of the cells.
    pub fn texts(&self) -> Arc<CellTexts> {
        Arc::clone(&self.texts)
    }

    /// The `metadata` of cell `index` as JSON; empty if it has none.
    pub fn cell_metadata(&self, index: usize) -> &[u8] {
        let before = index.checked_sub(1).map(|before| &self.cells[before]);
        let start = before.map_or(0, |before| before.metadata_end as usize);
        let end = self.cells[index].metadata_end as usize;
        let metadata = self.cell_metadata.as_bytes();
        metadata.get(start..end).unwrap_or_default()
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

    fn bytes(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; span.len()];
        super::os::read_at(&self.file, &mut bytes, span.start() as u64)?;
        Ok(bytes)
    }
}

impl Cells for Survey {
    fn count(&self) -> usize {
        self.texts.count()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.texts.kind(index)
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        self.texts.source(index)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.texts.id(index)
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
    texts: CellTexts,
    cell_metadata: String,
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
        self.texts.clear();
        self.cell_metadata.clear();
    }

    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>) {
        let id = scanned.id.map(json_text::decode);
        let source = self.texts.push_with(span.kind, id.as_deref(), |text| {
            if let Some(value) = scanned.source {
                source::append_text(value, text);
            }
        });
        if let Some(value) = scanned.source {
            self.non_ascii.literal |= !value.is_ascii();
            self.non_ascii.escaped |= value.is_ascii() && !source.is_ascii();
        }
        self.cell_metadata
            .push_str(&String::from_utf8_lossy(scanned.extras.metadata));
        // The metadata of all cells are not longer than the file, which has less than 4 GiB.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.cells.push(SurveyedCell {
            execution_count: NO_COUNT,
            metadata_end: offset(self.cell_metadata.len()),
            spans: MemberSpans {
                outputs: scanned.extras.outputs,
                execution_count: scanned.extras.execution_count,
                metadata: scanned.extras.metadata_span,
                end: offset(scanned.extras.end),
            },
        });
    }

    fn metadata(&mut self, value: &[u8]) {
        self.metadata = value.to_vec();
    }
}
