//! A notebook at a glance: one line for each cell.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::outputs::{self, OutputSummary};

/// One cell of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub index: usize,
    /// Its id.
    pub id: Option<String>,
    /// Its kind.
    pub kind: CellKind,
    /// Level of the heading it begins with, for Markdown.
    pub heading: Option<usize>,
    /// Its first line that is not blank.
    pub first_line: String,
    /// How many lines its source has.
    pub lines: usize,
    /// Its execution count.
    pub execution_count: Option<u64>,
    /// What it has put out.
    pub outputs: Vec<OutputSummary>,
}

/// The outline of a notebook.
pub fn outline(notebook: &Notebook) -> Vec<Entry> {
    (0..notebook.count())
        .map(|index| entry(notebook, index))
        .collect()
}

fn entry(notebook: &Notebook, index: usize) -> Entry {
    let kind = notebook.kind(index);
    let source = notebook.source(index);
    let first_line = source.lines().find(|line| !line.trim().is_empty());
    let first_line = first_line.unwrap_or_default().trim_end().to_owned();
    let is_code = kind == CellKind::Code;
    Entry {
        index,
        id: notebook.id(index).map(std::borrow::Cow::into_owned),
        kind,
        heading: (kind == CellKind::Markdown)
            .then(|| heading(&first_line))
            .flatten(),
        lines: source.lines().count(),
        execution_count: is_code
            .then(|| outputs::execution_count(notebook, index))
            .flatten(),
        outputs: outputs::summaries(notebook, index),
        first_line,
    }
}

fn heading(line: &str) -> Option<usize> {
    let level = line.len() - line.trim_start_matches('#').len();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}
