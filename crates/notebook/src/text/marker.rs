//! The lines of the text view that are not source.
//!
//! A marker starts a cell: `# %% [code] cell:3`, optionally with the id and the tags (`# %% [code]
//! cell:3 id:ab12 tags:a,b`). The markers of the percent format (jupytext, VS Code) start cells, too: `# %%`
//! starts a code cell, `# %% [markdown]`, `# %% [md]` and `# %% [raw]` start the other kinds, and
//! a title or metadata may follow. Fences enclose outputs, which are shown but not part of the
//! text.
//!
//! All of them are `#`, at most one space, two `%`, and a rest. A source line with the same rest
//! and two or more `%` is shown with one more `%`. The rest alone decides whether a line has this
//! shape, never the number of `%`, so removing one `%` restores the line.

use crate::cell::CellKind;

/// Prefix of every marker and fence that the view shows.
const START: &str = "# %%";
const FENCE_OPEN: &str = "--- outputs of cell:";
const FENCE_CLOSE: &str = "--- end of outputs ---";
/// The number of `%` in a marker or fence; a line with more is an escaped source line.
const DEPTH: usize = 2;

/// A parsed marker line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<'t> {
    pub(crate) kind: CellKind,
    /// `None` without `cell:N`. Saturates on overflow.
    pub(crate) cell: Option<usize>,
    pub(crate) id: Option<&'t str>,
    /// The tags after `tags:`, joined by commas.
    pub(crate) tags: Option<&'t str>,
    /// Whether the marker states no kind: `# %%` or `# %% Title`.
    pub(crate) is_bare: bool,
    /// The title or metadata of the percent format; empty if there is none.
    pub(crate) text: &'t str,
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
        return if depth > DEPTH {
            ViewLine::Escaped
        } else {
            found
        };
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
    memchr::memmem::find(source.as_bytes(), b"%%").is_some()
}

/// Appends a line that needs an escape, with one more `%`.
pub(crate) fn append_escaped_line(line: &str, out: &mut String) {
    let (start, rest) = line.split_at(line.find('%').unwrap_or(0));
    out.push_str(start);
    out.push('%');
    out.push_str(rest);
}

/// Appends an escaped line without the additional `%`.
pub(crate) fn append_unescaped_line(line: &str, out: &mut String) {
    let (start, rest) = line.split_at(line.find('%').unwrap_or(0));
    out.push_str(start);
    out.push_str(rest.strip_prefix('%').unwrap_or(rest));
}

/// The marker line of a cell, without a line feed.
pub(crate) fn write_marker(
    kind: CellKind,
    cell: Option<usize>,
    id: Option<&str>,
    tags: &[String],
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
    for (index, tag) in shown_tags(tags).enumerate() {
        out.push_str(if index == 0 { " tags:" } else { "," });
        out.push_str(tag);
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
pub(crate) fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && !id.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The tags that a marker can show. Tags with white space are left out of the view.
pub(crate) fn shown_tags(tags: &[String]) -> impl Iterator<Item = &String> {
    tags.iter().filter(|tag| is_plain_tag(tag))
}

fn is_plain_tag(tag: &str) -> bool {
    is_plain_id(tag) && !tag.contains(',')
}

/// The number of `%` and the kind of the line, if it looks like a marker or fence.
fn marker_shape(line: &str) -> Option<(usize, ViewLine<'_>)> {
    // In a text with CRLF, a carriage return at the end belongs to the line break. The same holds
    // for several: adding or removing one of them must not turn a line into a marker.
    let line = line.trim_end_matches('\r');
    let after_sign = line.strip_prefix('#')?;
    let signs = after_sign.strip_prefix(' ').unwrap_or(after_sign);
    let rest = signs.trim_start_matches('%');
    let depth = signs.len() - rest.len();
    if depth < DEPTH {
        return None;
    }
    let has_space = signs.len() < after_sign.len();
    let found = if has_space && rest.starts_with(FENCE_OPEN) && rest.ends_with(" ---") {
        ViewLine::FenceOpen
    } else if has_space && rest == FENCE_CLOSE {
        ViewLine::FenceClose
    } else {
        ViewLine::Marker(parse_marker(rest)?)
    };
    Some((depth, found))
}

/// A space between the parts of a marker. A carriage return counts only at the end.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

/// The part of a marker after the percent signs.
fn parse_marker(rest: &str) -> Option<Marker<'_>> {
    let text = rest.trim_end_matches(is_space);
    if text.is_empty() {
        return Some(percent_marker(None, ""));
    }
    // Without a space it is a commented magic, such as `# %%time`.
    let text = text.strip_prefix([' ', '\t'])?.trim_start_matches(is_space);
    if text.starts_with('[') {
        let (kind, after) = parse_kind(text)?;
        return parse_address(kind, after);
    }
    if starts_with_address(text) {
        return None;
    }
    // A title may precede the kind.
    let kind = text
        .find(['[', '{'])
        .filter(|&at| text[..at].ends_with(is_space))
        .and_then(|at| parse_kind(&text[at..]))
        .map(|(kind, _)| kind);
    Some(percent_marker(kind, text))
}

fn percent_marker(kind: Option<CellKind>, text: &str) -> Marker<'_> {
    Marker {
        kind: kind.unwrap_or(CellKind::Code),
        cell: None,
        id: None,
        tags: None,
        is_bare: kind.is_none(),
        text,
    }
}

/// The kind in brackets and the text after it.
fn parse_kind(text: &str) -> Option<(CellKind, &str)> {
    let (name, after) = text.strip_prefix('[')?.split_once(']')?;
    let kind = match name {
        "md" => CellKind::Markdown,
        name => CellKind::from_name(name)?,
    };
    let is_word = after.is_empty() || after.starts_with(is_space);
    is_word.then(|| (kind, after.trim_start_matches(is_space)))
}

/// The part of a marker after the kind: an address, or a title or metadata.
fn parse_address(kind: CellKind, text: &str) -> Option<Marker<'_>> {
    if !starts_with_address(text) {
        return Some(percent_marker(Some(kind), text));
    }
    let mut marker = percent_marker(Some(kind), "");
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("cell:") {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return None;
        }
        marker.cell = Some(after[..digits].parse().unwrap_or(usize::MAX));
        rest = after[digits..].trim_start_matches(is_space);
        if !rest.is_empty() && rest.len() == after.len() - digits {
            return None;
        }
    }
    if let Some(after) = rest.strip_prefix("id:") {
        let (id, after) = after.split_at(after.find(is_space).unwrap_or(after.len()));
        if !is_plain_id(id) {
            return None;
        }
        marker.id = Some(id);
        rest = after.trim_start_matches(is_space);
    }
    if let Some(tags) = rest.strip_prefix("tags:") {
        if !tags.split(',').all(is_plain_tag) {
            return None;
        }
        marker.tags = Some(tags);
        rest = "";
    }
    rest.is_empty().then_some(marker)
}

/// Whether a text starts like an address. If it is not one, the line is almost a marker: read as
/// a title, it would replace a cell by a new one.
fn starts_with_address(text: &str) -> bool {
    ["cell:", "id:", "tags:"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// `# %% [sql]`, ` # %% title`, `# %% cell:3`: cell borders of other tools and misspelled markers,
/// but not commented magics such as `# %%time`.
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
    use CellKind::{Code, Markdown, Raw};

    fn marker(kind: CellKind, cell: Option<usize>, id: Option<&str>) -> ViewLine<'_> {
        ViewLine::Marker(Marker {
            kind,
            cell,
            id,
            tags: None,
            is_bare: false,
            text: "",
        })
    }

    fn percent(kind: Option<CellKind>, text: &str) -> ViewLine<'_> {
        ViewLine::Marker(percent_marker(kind, text))
    }

    #[test]
    fn markers_with_addresses_match_exactly() {
        for (line, expected) in [
            ("# %% [code] cell:0", marker(Code, Some(0), None)),
            ("# %% [markdown]", marker(Markdown, None, None)),
            ("# %% [raw] id:a-b", marker(Raw, None, Some("a-b"))),
            (
                "# %% [code] cell:12 id:ab",
                marker(Code, Some(12), Some("ab")),
            ),
            ("# %% [code] cell:0\r", marker(Code, Some(0), None)),
            ("# %% [code] cell:0 \r\r", marker(Code, Some(0), None)),
            ("#%% [code] cell:0", marker(Code, Some(0), None)),
            ("# %% [code] cell:007", marker(Code, Some(7), None)),
            (
                "# %% [code] cell:99999999999999999999999",
                marker(Code, Some(usize::MAX), None),
            ),
            ("# %%--- end of outputs ---", ViewLine::FenceClose),
            (
                "# %%--- outputs of cell:3 (not part of the source) ---",
                ViewLine::FenceOpen,
            ),
            (" # %% [code]", ViewLine::NearMarker),
            ("#  %% [code]", ViewLine::NearMarker),
            ("# %% [code] cell:", ViewLine::NearMarker),
            ("# %% [code] cell:1 more", ViewLine::NearMarker),
            ("# %% [code] cell:1 tags:", ViewLine::NearMarker),
            ("# %% [code] cell:1 tags:a,,b", ViewLine::NearMarker),
            ("# %% [code] cell:1 tags:a id:b", ViewLine::NearMarker),
            ("# %% [code] cell:1id:a", ViewLine::NearMarker),
            ("# %% [code] id:a b", ViewLine::NearMarker),
            ("# %% cell:1", ViewLine::NearMarker),
        ] {
            assert_eq!(classify(line), expected, "{line:?}");
        }
    }

    #[test]
    fn markers_may_have_tags() {
        for line in [
            "cell:3 id:ab tags:a,b-c",
            "cell:3 tags:a,b-c",
            "tags:a,b-c \r",
        ] {
            let line = format!("# %% [code] {line}");
            let ViewLine::Marker(found) = classify(&line) else {
                panic!("{line:?} is not a marker");
            };
            assert_eq!(found.tags, Some("a,b-c"), "{line:?}");
            assert!(needs_escape(&line));
        }
        let mut written = String::new();
        let tags = ["a", "two words", "b,c", "d"].map(str::to_owned);
        write_marker(Code, Some(0), Some("x"), &tags, &mut written);
        assert_eq!(written, "# %% [code] cell:0 id:x tags:a,d");
    }

    #[test]
    fn markers_of_the_percent_format_may_have_text() {
        for (line, expected) in [
            ("# %%", percent(None, "")),
            ("#%%", percent(None, "")),
            ("# %% \t\r", percent(None, "")),
            ("# %% Load data", percent(None, "Load data")),
            ("#%% Load data", percent(None, "Load data")),
            ("# %% tags=[\"x\"]", percent(None, "tags=[\"x\"]")),
            ("# %% {\"a\": 1}", percent(None, "{\"a\": 1}")),
            ("# %% Fit [a, b]", percent(None, "Fit [a, b]")),
            ("# %% [code] ", percent(Some(Code), "")),
            ("# %% [code] Load", percent(Some(Code), "Load")),
            ("# %% [markdown]", percent(Some(Markdown), "")),
            ("# %% [md]", percent(Some(Markdown), "")),
            ("#%% [md] Title", percent(Some(Markdown), "Title")),
            ("# %% [raw] a=1", percent(Some(Raw), "a=1")),
            (
                "# %% Title [markdown] a=1",
                percent(Some(Markdown), "Title [markdown] a=1"),
            ),
            ("# %% [sql]", ViewLine::NearMarker),
            ("# %% [Code]", ViewLine::NearMarker),
            ("# %% [code]x", ViewLine::NearMarker),
            ("# %%[markdown]", ViewLine::NearMarker),
            (" # %%", ViewLine::NearMarker),
            ("# %%time", ViewLine::Text),
            ("#%%time", ViewLine::Text),
            ("%%time", ViewLine::Text),
            ("# %", ViewLine::Text),
            ("", ViewLine::Text),
        ] {
            assert_eq!(classify(line), expected, "{line:?}");
        }
    }

    #[test]
    fn escapes_are_inverted() {
        for line in [
            "# %%",
            "#%%",
            "# %%%",
            "#%%%% \r",
            "# %% title",
            "#%% title",
            "# %%% [code] cell:0",
            "# %% [md]",
            "# %%--- end of outputs ---",
        ] {
            assert!(needs_escape(line) && may_need_escape(line), "{line:?}");
            let mut escaped = String::new();
            append_escaped_line(line, &mut escaped);
            assert_eq!(classify(&escaped), ViewLine::Escaped, "{escaped:?}");
            let mut unescaped = String::new();
            append_unescaped_line(&escaped, &mut unescaped);
            assert_eq!(unescaped, line);
        }
        for line in [
            " # %%",
            "# %%time",
            "# %%%time",
            "# %% [sql]",
            "#%%--- end of outputs ---",
            "%%",
        ] {
            assert!(!needs_escape(line), "{line:?}");
        }
    }
}
