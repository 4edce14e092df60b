//! The outline of a notebook: one entry per cell.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::metadata;
use crate::outputs::{self, OutputSummary};

/// One cell of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Its index.
    pub index: usize,
    /// Its id.
    pub id: Option<String>,
    /// Its kind.
    pub kind: CellKind,
    /// Its tags.
    pub tags: Vec<String>,
    /// Level of the heading that a Markdown cell starts with.
    pub heading: Option<usize>,
    /// Its first line that is not blank.
    pub first_line: String,
    /// Number of lines of its source.
    pub lines: usize,
    /// Its execution count.
    pub execution_count: Option<u64>,
    /// Its outputs.
    pub outputs: Vec<OutputSummary>,
}

/// The outline of a notebook.
pub fn outline(notebook: &Notebook) -> Vec<OutlineEntry> {
    (0..notebook.count())
        .map(|index| outline_entry(notebook, index))
        .collect()
}

fn outline_entry(notebook: &Notebook, index: usize) -> OutlineEntry {
    let kind = notebook.kind(index);
    let source = notebook.source(index);
    let first_line = source.lines().find(|line| !line.trim().is_empty());
    let first_line = first_line.unwrap_or_default().trim_end().to_owned();
    let is_code = kind == CellKind::Code;
    OutlineEntry {
        index,
        id: notebook.id(index).map(std::borrow::Cow::into_owned),
        kind,
        tags: metadata::tags(notebook.cell_metadata(index)),
        heading: (kind == CellKind::Markdown)
            .then(|| heading_level(&first_line))
            .flatten(),
        lines: source.lines().count(),
        execution_count: is_code
            .then(|| outputs::execution_count(notebook, index))
            .flatten(),
        outputs: outputs::summaries(notebook, index),
        first_line,
    }
}

fn heading_level(line: &str) -> Option<usize> {
    let level = line.len() - line.trim_start_matches('#').len();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}
