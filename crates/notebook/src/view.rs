//! Builds the text view and a baseline while the file is scanned, without keeping the file.

use std::collections::HashSet;

use crate::baseline::{BASELINE_LIMIT, Baseline, BaselineCell};
use crate::cell::{CellKind, CellSpans};
use crate::document::{Cells, Notebook};
use crate::error::Notice;
use crate::json::text as json_text;
use crate::metadata;
use crate::revision::Revision;
use crate::scan::{CellExtras, ScanDetail, ScannedCell, Visitor};
use crate::source;
use crate::text::{MarkerStyle, append_tagged_cell};

/// A notebook as text, with the other results of the same scan.
#[derive(Debug)]
pub struct NotebookView {
    /// The revision of the content.
    pub revision: Revision,
    /// The number of cells.
    pub count: usize,
    /// The text view, without the newline that printing adds. Empty if not requested.
    pub text: String,
    /// The requested cell.
    pub cell: Option<CellSummary>,
    /// Irregularities that were left unchanged; at most ten.
    pub notices: Vec<Notice>,
    pub(crate) baseline: Option<Baseline>,
}

/// One cell, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSummary {
    /// Its index.
    pub index: usize,
    /// Its id.
    pub id: Option<String>,
    /// Its kind.
    pub kind: CellKind,
    /// Its source.
    pub source: String,
}

impl CellSummary {
    /// Cell `index` of `cells`.
    pub fn new(cells: &dyn Cells, index: usize) -> Self {
        Self {
            index,
            id: cells.id(index).map(std::borrow::Cow::into_owned),
            kind: cells.kind(index),
            source: cells.source(index).into_owned(),
        }
    }
}

/// The requested parts of a [`NotebookView`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ViewRequest {
    pub(crate) text: Option<MarkerStyle>,
    pub(crate) cell: Option<usize>,
}

impl ViewRequest {
    /// The values that the scan must provide.
    pub(crate) fn detail(self) -> ScanDetail {
        match self.text {
            Some(MarkerStyle::Ids) => ScanDetail::SourcesAndMetadata,
            _ => ScanDetail::Sources,
        }
    }
}

/// Builds a [`NotebookView`] cell by cell.
pub(crate) struct ViewBuilder {
    request: ViewRequest,
    count: usize,
    text: String,
    cell: Option<CellSummary>,
    baseline: Option<Baseline>,
    baseline_bytes: usize,
    irregularities: Vec<(usize, Irregularity)>,
    /// Hashes of the ids so far.
    ids: HashSet<Revision>,
    /// A buffer, reused for each cell.
    source: String,
}

/// An irregularity that a validator would report. All but the first exist only since nbformat
/// 4.5.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Irregularity {
    NoSource,
    NoId,
    InvalidId,
    DuplicateId,
}

impl Irregularity {
    fn description(self) -> &'static str {
        match self {
            Self::NoSource => "it has no `source`",
            Self::NoId => "it has no `id`, which nbformat 4.5 requires",
            Self::InvalidId => "its `id` is not valid in nbformat 4.5",
            Self::DuplicateId => "its `id` is the same as that of an earlier cell",
        }
    }
}

/// Letters, digits, `-` and `_`, at most 64 of them.
fn is_allowed_id(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&id.len()) && id.bytes().all(allowed)
}

/// The largest number of irregularities that are reported.
const NOTICE_LIMIT: usize = 10;

impl ViewBuilder {
    pub(crate) fn new(request: ViewRequest) -> Self {
        Self {
            request,
            count: 0,
            text: String::new(),
            cell: None,
            baseline: Some(Baseline::default()),
            baseline_bytes: 0,
            irregularities: Vec::new(),
            ids: HashSet::new(),
            source: String::new(),
        }
    }

    /// Builds the view of a loaded notebook.
    pub(crate) fn build(request: ViewRequest, notebook: &Notebook) -> NotebookView {
        let mut builder = Self::new(request);
        for index in 0..notebook.count() {
            let span = notebook.cell(index);
            let scanned = ScannedCell {
                source: (!span.source.is_empty()).then(|| notebook.slice(span.source)),
                id: (!span.id.is_empty()).then(|| notebook.slice(span.id)),
                hash: notebook.cell_hash(index),
                extras: CellExtras {
                    metadata: match request.text {
                        Some(MarkerStyle::Ids) => notebook.cell_metadata(index),
                        _ => &[],
                    },
                    ..CellExtras::default()
                },
            };
            builder.cell(span, &scanned);
        }
        builder.finish(notebook.revision(), notebook.minor())
    }

    fn note_irregularity(&mut self, cell: usize, irregularity: Irregularity) {
        // Nearly every cell of an old notebook has no id: keep only a few of each kind.
        let same = self
            .irregularities
            .iter()
            .filter(|(_, other)| *other == irregularity)
            .count();
        if same < NOTICE_LIMIT {
            self.irregularities.push((cell, irregularity));
        }
    }

    pub(crate) fn finish(self, revision: Revision, minor: u32) -> NotebookView {
        let notices = self
            .irregularities
            .into_iter()
            .filter(|(_, irregularity)| minor >= 5 || *irregularity == Irregularity::NoSource)
            .map(|(cell, irregularity)| Notice::Irregular {
                cell,
                problem: irregularity.description(),
            })
            .take(NOTICE_LIMIT)
            .collect();
        NotebookView {
            revision,
            count: self.count,
            text: self.text,
            cell: self.cell,
            notices,
            baseline: self.baseline,
        }
    }
}

impl Notebook {
    /// Irregularities that a validator would report; at most ten.
    pub fn irregularities(&self) -> Vec<Notice> {
        ViewBuilder::build(ViewRequest::default(), self).notices
    }
}

impl Visitor for ViewBuilder {
    fn begin_cells(&mut self) {
        *self = Self::new(self.request);
    }

    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>) {
        let index = self.count;
        self.count += 1;
        self.source.clear();
        match scanned.source {
            Some(value) => source::append_text(value, &mut self.source),
            None => self.note_irregularity(index, Irregularity::NoSource),
        }
        let id = scanned.id.map(json_text::decode);
        match id.as_deref() {
            None => self.note_irregularity(index, Irregularity::NoId),
            Some(id) if !is_allowed_id(id) => {
                self.note_irregularity(index, Irregularity::InvalidId);
            }
            Some(id) if !self.ids.insert(Revision::compute(id.as_bytes())) => {
                self.note_irregularity(index, Irregularity::DuplicateId);
            }
            Some(_) => {}
        }
        if let Some(markers) = self.request.text {
            append_tagged_cell(
                &mut self.text,
                index,
                span.kind,
                id.as_deref(),
                &metadata::tags(scanned.extras.metadata),
                &self.source,
                markers,
            );
        }
        if self.request.cell == Some(index) {
            self.cell = Some(CellSummary {
                index,
                id: id.as_deref().map(str::to_owned),
                kind: span.kind,
                source: self.source.clone(),
            });
        }
        self.baseline_bytes += self.source.len() + 64;
        if self.baseline_bytes > BASELINE_LIMIT {
            self.baseline = None;
        }
        if let Some(baseline) = &mut self.baseline {
            baseline.cells.push(BaselineCell {
                kind: span.kind,
                id: id.map(std::borrow::Cow::into_owned),
                source: self.source.clone(),
                hash: scanned.hash,
            });
        }
    }
}
