//! [`CellRecord`]: what is known of a cell while its notebook is written.

use std::time::SystemTime;

use cellwright_notebook::CELL_DEPTH;
use cellwright_notebook::file::Segment;
use cellwright_output::JsonStyle;

/// State of a planned cell. A notebook may have very many, so what few cells have is in maps of the saver.
#[derive(Default)]
pub(super) struct CellRecord {
    pub(super) is_started: bool,
    /// `None` if the notebook does not store them.
    pub(super) times: Option<Box<CellTimes>>,
    pub(super) execution_count: Option<u32>,
    /// Rendered outputs up to the end of the cell: one JSON array.
    pub(super) outputs: Option<Box<Segment>>,
}

/// Start and end of a cell.
pub(super) struct CellTimes {
    pub(super) started_at: SystemTime,
    pub(super) finished_at: Option<SystemTime>,
}

/// Joins several JSON arrays into one.
pub(super) fn join_arrays(arrays: &[Segment], style: &JsonStyle) -> Vec<Segment> {
    let [first, rest @ ..] = arrays else {
        return Vec::new();
    };
    if rest.is_empty() {
        return vec![first.clone()];
    }
    // Cut off: `[` of all but the first array, and the line break and `]` of all but the last.
    let line = if style.newline.is_empty() {
        0
    } else {
        style.newline.len() + style.indent.len() * CELL_DEPTH
    };
    let close = (line + 1) as u64;
    let mut pieces = vec![first.slice(0, first.length() - close)];
    for (at, array) in rest.iter().enumerate() {
        pieces.push(Segment::Bytes(style.comma.as_bytes().into()));
        let end = if at + 1 == rest.len() { 0 } else { close };
        pieces.push(array.slice(1, array.length() - end));
    }
    pieces
}
