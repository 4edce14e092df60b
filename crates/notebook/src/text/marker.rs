//! The lines of the text view that are not source.
//!
//! A marker begins a cell: `# %% [code] cell:3`, with the id (`# %% [code] cell:3 id:ab12`) when
//! asked for. Fences enclose outputs that are shown but not part of the text. A source line that
//! has the shape of either is shown with one more `%`, whatever number it has already.

use crate::cell::CellKind;

/// Prefix of every marker, fence and escaped line.
const START: &str = "# %%";
const FENCE_OPEN: &str = "--- outputs of cell:";
const FENCE_CLOSE: &str = "--- end of outputs ---";

/// A parsed marker line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<'t> {
    pub(crate) kind: CellKind,
    /// `None` without `cell:N`; saturates on numbers no notebook has.
    pub(crate) cell: Option<usize>,
    pub(crate) id: Option<&'t str>,
}

/// What a line of the view is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line<'t> {
    Marker(Marker<'t>),
    FenceOpen,
    FenceClose,
    /// A source line in the shape of a marker or fence, to be shown with one `%` less.
    Escaped,
    /// Text that somebody may have meant as a marker.
    NearMarker,
    Text,
}

/// Tells what `line` (without its line feed) is.
pub(crate) fn classify(line: &str) -> Line<'_> {
    if let Some((depth, found)) = shape(line) {
        return if depth > 2 { Line::Escaped } else { found };
    }
    if is_near(line) {
        return Line::NearMarker;
    }
    Line::Text
}

/// Whether a source line must be escaped in the view.
pub(crate) fn needs_escape(line: &str) -> bool {
    shape(line).is_some()
}

/// Whether any line of `source` might need an escape: a quick look before the careful one.
pub(crate) fn may_need_escape(source: &str) -> bool {
    memchr::memmem::find(source.as_bytes(), START.as_bytes()).is_some()
}

/// The marker line of a cell, without a line feed.
pub(crate) fn write(kind: CellKind, cell: Option<usize>, id: Option<&str>, out: &mut String) {
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

/// The lines around shown outputs.
pub(crate) fn fence_open(cell: usize) -> String {
    format!("{START}{FENCE_OPEN}{cell} (not part of the source) ---")
}

/// See [`fence_open`].
pub(crate) fn fence_close() -> String {
    format!("{START}{FENCE_CLOSE}")
}

/// An id that can stand in a marker. Others are left out of the view.
fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && !id.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The number of `%` and what the line is, if it has the shape of a marker or fence.
fn shape(line: &str) -> Option<(usize, Line<'_>)> {
    // A carriage return at the end belongs to the line break in a text with CRLF. Of several, too:
    // which of them such a text adds or takes away must not turn a line into a marker.
    let line = line.trim_end_matches('\r');
    if !line.starts_with(START) {
        return None;
    }
    let after = line[2..].trim_start_matches('%');
    let depth = line.len() - 2 - after.len();
    let found = if let Some(marker) = after.strip_prefix(" [").and_then(marker) {
        Line::Marker(marker)
    } else if after.starts_with(FENCE_OPEN) && after.ends_with(" ---") {
        Line::FenceOpen
    } else if after == FENCE_CLOSE {
        Line::FenceClose
    } else {
        return None;
    };
    Some((depth, found))
}

/// The part of a marker after the opening bracket.
fn marker(text: &str) -> Option<Marker<'_>> {
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

/// `# %%`, `#%% [code]`, `# %% [sql]`, ` # %% title`: what other tools take as a cell border, but
/// not commented magics such as `# %%time`.
fn is_near(line: &str) -> bool {
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

    fn marker(kind: CellKind, cell: Option<usize>, id: Option<&str>) -> Line<'_> {
        Line::Marker(Marker { kind, cell, id })
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
            ("# %%% [code] cell:0", Line::Escaped),
            ("# %%%% [raw]", Line::Escaped),
            ("# %%%--- end of outputs ---", Line::Escaped),
            ("# %%--- end of outputs ---", Line::FenceClose),
            (
                "# %%--- outputs of cell:3 (not part of the source) ---",
                Line::FenceOpen,
            ),
            ("# %% [sql]", Line::NearMarker),
            ("#%% [code]", Line::NearMarker),
            ("# %% [Code]", Line::NearMarker),
            ("# %% [code] ", Line::NearMarker),
            (" # %% [code]", Line::NearMarker),
            ("# %% [code] cell:", Line::NearMarker),
            ("# %% [code] cell:1 more", Line::NearMarker),
            ("# %% [code] id:a b", Line::NearMarker),
            ("# %%", Line::NearMarker),
            ("# %% Title", Line::NearMarker),
            ("# %%time", Line::Text),
            ("%%time", Line::Text),
            ("# %", Line::Text),
            ("", Line::Text),
        ] {
            assert_eq!(classify(line), expected, "{line:?}");
        }
    }
}
