//! Writes the text view.

use crate::cell::CellKind;
use crate::document::Cells;

use super::marker;

/// The parts of a marker in addition to the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkerStyle {
    /// `cell:N`.
    #[default]
    Indexes,
    /// `cell:N id:ID tags:TAG,…`.
    Ids,
    /// Only the id, if there is one. Such markers do not change when earlier cells are added or
    /// removed.
    Stable,
}

/// The text view of all cells, without the newline that printing adds.
pub fn render(cells: &dyn Cells, markers: MarkerStyle) -> String {
    let mut out = String::new();
    for index in 0..cells.count() {
        let id = (markers != MarkerStyle::Indexes)
            .then(|| cells.id(index))
            .flatten();
        let tags = (markers == MarkerStyle::Ids).then(|| cells.tags(index));
        append_tagged_cell(
            &mut out,
            index,
            cells.kind(index),
            id.as_deref(),
            &tags.flatten().unwrap_or_default(),
            &cells.source(index),
            markers,
        );
    }
    out
}

/// Appends one cell to a view.
pub fn append_cell(
    out: &mut String,
    index: usize,
    kind: CellKind,
    id: Option<&str>,
    source: &str,
    markers: MarkerStyle,
) {
    append_tagged_cell(out, index, kind, id, &[], source, markers);
}

/// Appends one cell to a view. Its tags are shown together with ids.
pub fn append_tagged_cell(
    out: &mut String,
    index: usize,
    kind: CellKind,
    id: Option<&str>,
    tags: &[String],
    source: &str,
    markers: MarkerStyle,
) {
    if !out.is_empty() {
        out.push('\n');
    }
    let number = (markers != MarkerStyle::Stable).then_some(index);
    marker::write_marker(
        kind,
        number,
        id.filter(|_| markers != MarkerStyle::Indexes),
        if markers == MarkerStyle::Ids {
            tags
        } else {
            &[]
        },
        out,
    );
    if !source.is_empty() {
        out.push('\n');
        append_escaped(source, out);
    }
}

/// Appends lines, escaping those that look like markers or fences.
pub(crate) fn append_escaped(text: &str, out: &mut String) {
    if !marker::may_need_escape(text) {
        out.push_str(text);
        return;
    }
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if marker::needs_escape(line) {
            marker::append_escaped_line(line, out);
        } else {
            out.push_str(line);
        }
    }
}
