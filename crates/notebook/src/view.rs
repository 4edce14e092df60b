//! Looking at a notebook without holding it: the text view is built while the file goes by.

use std::collections::HashSet;

use crate::baseline::{BaseCell, Baseline, LARGEST};
use crate::cell::{CellKind, CellSpan};
use crate::document::{Cells, Notebook};
use crate::error::Notice;
use crate::json::text as json_text;
use crate::revision::Revision;
use crate::scan::{Found, Rest, Visitor};
use crate::source;
use crate::text::{Markers, append_cell};

/// A notebook as text, and what else one look at it told.
#[derive(Debug)]
pub struct Glance {
    /// The name of the content.
    pub revision: Revision,
    /// How many cells there are.
    pub count: usize,
    /// The text view, without the newline that printing adds. Empty if none was asked for.
    pub text: String,
    /// The cell that was asked for.
    pub cell: Option<CellSummary>,
    /// Oddities that were left as they are; at most ten.
    pub notices: Vec<Notice>,
    pub(crate) baseline: Option<Baseline>,
}

/// What is told of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSummary {
    /// Its place.
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
    pub fn of(cells: &dyn Cells, index: usize) -> Self {
        Self {
            index,
            id: cells.id(index).map(std::borrow::Cow::into_owned),
            kind: cells.kind(index),
            source: cells.source(index).into_owned(),
        }
    }
}

/// What a look should bring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) text: Option<Markers>,
    pub(crate) cell: Option<usize>,
}

/// Builds a [`Glance`] cell by cell.
pub(crate) struct Viewer {
    wanted: Wanted,
    count: usize,
    text: String,
    cell: Option<CellSummary>,
    baseline: Option<Baseline>,
    baseline_bytes: usize,
    odd: Vec<(usize, Oddity)>,
    /// Hashes of the ids so far.
    ids: HashSet<Revision>,
    /// Kept between cells to reuse its memory.
    source: String,
}

/// What a validator would complain about. All but the first only since nbformat 4.5.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Oddity {
    NoSource,
    NoId,
    OddId,
    DoubleId,
}

impl Oddity {
    fn words(self) -> &'static str {
        match self {
            Self::NoSource => "it has no `source`",
            Self::NoId => "it has no `id`, which nbformat 4.5 wants",
            Self::OddId => "its `id` is not one that nbformat 4.5 allows",
            Self::DoubleId => "its `id` is also that of an earlier cell",
        }
    }
}

/// Letters, digits, `-` and `_`, at most 64 of them.
fn is_allowed_id(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&id.len()) && id.bytes().all(allowed)
}

/// How many oddities are worth telling.
const MOST_NOTICES: usize = 10;

impl Viewer {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            count: 0,
            text: String::new(),
            cell: None,
            baseline: Some(Baseline::default()),
            baseline_bytes: 0,
            odd: Vec::new(),
            ids: HashSet::new(),
            source: String::new(),
        }
    }

    /// Looks at a notebook that is in memory.
    pub(crate) fn look(wanted: Wanted, notebook: &Notebook) -> Glance {
        let mut viewer = Self::new(wanted);
        for index in 0..notebook.count() {
            let span = notebook.cell(index);
            let found = Found {
                source: (!span.source.is_empty()).then(|| notebook.slice(span.source)),
                id: (!span.id.is_empty()).then(|| notebook.slice(span.id)),
                hash: notebook.cell_hash(index),
                rest: Rest::default(),
            };
            viewer.cell(span, &found);
        }
        viewer.finish(notebook.revision(), notebook.minor())
    }

    fn notice(&mut self, cell: usize, oddity: Oddity) {
        // Without ids nearly every cell of an old notebook would be here; of each sort a few do.
        let same = self
            .odd
            .iter()
            .filter(|(_, known)| *known == oddity)
            .count();
        if same < MOST_NOTICES {
            self.odd.push((cell, oddity));
        }
    }

    pub(crate) fn finish(self, revision: Revision, minor: u32) -> Glance {
        let notices = self
            .odd
            .into_iter()
            .filter(|(_, oddity)| minor >= 5 || *oddity == Oddity::NoSource)
            .map(|(cell, oddity)| Notice::Irregular {
                cell,
                what: oddity.words(),
            })
            .take(MOST_NOTICES)
            .collect();
        Glance {
            revision,
            count: self.count,
            text: self.text,
            cell: self.cell,
            notices,
            baseline: self.baseline,
        }
    }
}

impl Visitor for Viewer {
    fn begin(&mut self) {
        *self = Self::new(self.wanted);
    }

    fn cell(&mut self, span: &CellSpan, found: &Found<'_>) {
        let index = self.count;
        self.count += 1;
        self.source.clear();
        match found.source {
            Some(value) => source::append_text(value, &mut self.source),
            None => self.notice(index, Oddity::NoSource),
        }
        let id = found.id.map(json_text::decode);
        match id.as_deref() {
            None => self.notice(index, Oddity::NoId),
            Some(id) if !is_allowed_id(id) => self.notice(index, Oddity::OddId),
            Some(id) if !self.ids.insert(Revision::of(id.as_bytes())) => {
                self.notice(index, Oddity::DoubleId);
            }
            Some(_) => {}
        }
        if let Some(markers) = self.wanted.text {
            append_cell(
                &mut self.text,
                index,
                span.kind,
                id.as_deref(),
                &self.source,
                markers,
            );
        }
        if self.wanted.cell == Some(index) {
            self.cell = Some(CellSummary {
                index,
                id: id.as_deref().map(str::to_owned),
                kind: span.kind,
                source: self.source.clone(),
            });
        }
        self.baseline_bytes += self.source.len() + 64;
        if self.baseline_bytes > LARGEST {
            self.baseline = None;
        }
        if let Some(baseline) = &mut self.baseline {
            baseline.cells.push(BaseCell {
                kind: span.kind,
                id: id.map(std::borrow::Cow::into_owned),
                source: self.source.clone(),
                hash: found.hash,
            });
        }
    }
}
