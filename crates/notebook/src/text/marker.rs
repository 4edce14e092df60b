//! The lines of the text view that are not source.
//!
//! A marker starts a cell: `# %% [code] cell:3`, optionally with the id (`# %% [code] cell:3
//! id:ab12`). Fences enclose outputs, which are shown but not part of the text. A source line
//! that looks like either is shown with one more `%`, whatever number it already has.

use crate::cell::CellKind;

/// Prefix of every marker, fence and escaped line.
const START: &str = "# %%";
const FENCE_OPEN: &str = "--- outputs of cell:";
const FENCE_CLOSE: &str = "--- end of outputs ---";

/// A parsed marker line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<'t> {
    pub(crate) kind: CellKind,
    /// `None` without `cell:N`. Saturates on overflow.
    pub(crate) cell: Option<usize>,
    pub(crate) id: Option<&'t str>,
}

/// The kind of a line of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewLine<'t> {
    Marker(Marker<'t>),
    FenceOpen,
    FenceClose,
    /// A source line that looks like a marker or fence, escaped by one more `%`.
    Escaped,
    /// Text that may have been meant as a marker.
    NearMarker,
    Text,
}

/// Classifies `line`, which has no line feed.
pub(crate) fn classify(line: &str) -> ViewLine<'_> {
    if let Some((depth, found)) = marker_shape(line) {
        return if depth > 2 { ViewLine::Escaped } else { found };
    }
    if is_near_marker(line) {
        return ViewLine::NearMarker;
    }
    ViewLine::Text
}

/// Whether a source line must be escaped in the view.
pub(crate) fn needs_escape(line: &str) -> bool {
    marker_shape(line).is_some()
}

/// Whether any line of `source` might need an escape: a fast check before the exact one.
pub(crate) fn may_need_escape(source: &str) -> bool {
    memchr::memmem::find(source.as_bytes(), START.as_bytes()).is_some()
}

/// The marker line of a cell, without a line feed.
pub(crate) fn write_marker(
    kind: CellKind,
    cell: Option<usize>,
    id: Option<&str>,
    out: &mut String,
) {
    out.push_str(START);
    out.push_str(" [");
    out.push_str(kind.name());
    out.push(']');
    if let Some(cell) = cell {
        out.push_str(" cell:");
        out.push_str(&cell.to_string());
    }
    if let Some(id) = id.filter(|id| is_plain_id(id)) {
        out.push_str(" id:");
        out.push_str(id);
    }
}

/// The line before displayed outputs.
pub(crate) fn fence_open(cell: usize) -> String {
    format!("{START}{FENCE_OPEN}{cell} (not part of the source) ---")
}

/// The line after displayed outputs.
pub(crate) fn fence_close() -> String {
    format!("{START}{FENCE_CLOSE}")
}

/// Whether an id can be part of a marker. Other ids are left out of the view.
fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && !id.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The number of `%` and the kind of the line, if it looks like a marker or fence.
fn marker_shape(line: &str) -> Option<(usize, ViewLine<'_>)> {
    // In a text with CRLF, a carriage return at the end belongs to the line break. The same holds
    // for several: adding or removing one of them must not turn a line into a marker.
    let line = line.trim_end_matches('\r');
    if !line.starts_with(START) {
        return None;
    }
    let after = line[2..].trim_start_matches('%');
    let depth = line.len() - 2 - after.len();
    let found = if let Some(marker) = after.strip_prefix(" [").and_then(parse_marker) {
        ViewLine::Marker(marker)
    } else if after.starts_with(FENCE_OPEN) && after.ends_with(" ---") {
        ViewLine::FenceOpen
    } else if after == FENCE_CLOSE {
        ViewLine::FenceClose
    } else {
        return None;
    };
    Some((depth, found))
}

/// The part of a marker after the opening bracket.
fn parse_marker(text: &str) -> Option<Marker<'_>> {
    let (kind, mut rest) = text.split_once(']')?;
    let kind = CellKind::from_name(kind)?;
    let mut cell = None;
    if let Some(after) = rest.strip_prefix(" cell:") {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return None;
        }
        cell = Some(after[..digits].parse().unwrap_or(usize::MAX));
        rest = &after[digits..];
    }
    let mut id = None;
    if let Some(after) = rest.strip_prefix(" id:") {
        if !is_plain_id(after) {
            return None;
        }
        id = Some(after);
        rest = "";
    }
    rest.is_empty().then_some(Marker { kind, cell, id })
}

/// `# %%`, `#%% [code]`, `# %% [sql]`, ` # %% title`: cell borders of other tools, but not
/// commented magics such as `# %%time`.
fn is_near_marker(line: &str) -> bool {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('#') else {
        return false;
    };
    let Some(rest) = rest.trim_start_matches(' ').strip_prefix("%%") else {
        return false;
    };
    rest.is_empty() || rest.starts_with([' ', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(kind: CellKind, cell: Option<usize>, id: Option<&str>) -> ViewLine<'_> {
        ViewLine::Marker(Marker { kind, cell, id })
    }

    #[test]
    fn markers_match_exactly() {
        use CellKind::{Code, Markdown, Raw};
        for (line, expected) in [
            ("# %% [code] cell:0", marker(Code, Some(0), None)),
            ("# %% [markdown]", marker(Markdown, None, None)),
            ("# %% [raw] id:a-b", marker(Raw, None, Some("a-b"))),
            (
                "# %% [code] cell:12 id:ab",
                marker(Code, Some(12), Some("ab")),
            ),
            ("# %% [code] cell:0\r", marker(Code, Some(0), None)),
            ("# %% [code] cell:007", marker(Code, Some(7), None)),
            (
                "# %% [code] cell:99999999999999999999999",
                marker(Code, Some(usize::MAX), None),
            ),
            ("# %%% [code] cell:0", ViewLine::Escaped),
            ("# %%%% [raw]", ViewLine::Escaped),
            ("# %%%--- end of outputs ---", ViewLine::Escaped),
            ("# %%--- end of outputs ---", ViewLine::FenceClose),
            (
                "# %%--- outputs of cell:3 (not part of the source) ---",
                ViewLine::FenceOpen,
            ),
            ("# %% [sql]", ViewLine::NearMarker),
            ("#%% [code]", ViewLine::NearMarker),
            ("# %% [Code]", ViewLine::NearMarker),
            ("# %% [code] ", ViewLine::NearMarker),
            (" # %% [code]", ViewLine::NearMarker),
            ("# %% [code] cell:", ViewLine::NearMarker),
            ("# %% [code] cell:1 more", ViewLine::NearMarker),
            ("# %% [code] id:a b", ViewLine::NearMarker),
            ("# %%", ViewLine::NearMarker),
            ("# %% Title", ViewLine::NearMarker),
            ("# %%time", ViewLine::Text),
            ("%%time", ViewLine::Text),
            ("# %", ViewLine::Text),
            ("", ViewLine::Text),
        ] {
            assert_eq!(classify(line), expected, "{line:?}");
        }
    }
}
