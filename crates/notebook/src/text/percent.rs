//! The percent format of jupytext and VS Code, as far as it differs from the text view.
//!
//! In that format a file may start with a header, the text of Markdown and raw cells is commented
//! (`# ## Title`) or in triple quotes, and a blank line precedes each marker. Only blocks whose
//! marker has no address are read like that: a block with an address comes from the text view.
//!
//! A commented block of one line, such as `# Prices`, is also a heading of the text view. It
//! counts as commented only if something else in the text is specific to the percent format.

use crate::cell::CellKind;
use crate::error::Notice;

use super::marker::{self, ViewLine};
use super::parse::Block;

/// The lines before and after a header.
const HEADER_BORDER: &str = "# ---";
const QUOTES: &str = "\"\"\"";

/// The number of lines of the header at the start of `text`, and of the blank lines after it; 0
/// without a header.
pub(super) fn header_length(text: &str) -> usize {
    let is_border = |line: &str| line.trim_end() == HEADER_BORDER;
    let mut lines = text.split('\n');
    if !lines.next().is_some_and(is_border) {
        return 0;
    }
    let mut length = 1;
    for line in lines.by_ref() {
        length += 1;
        if is_border(line) {
            return length + lines.take_while(|line| line.trim().is_empty()).count();
        }
        let is_inside =
            line.starts_with('#') && !matches!(marker::classify(line), ViewLine::Marker(_));
        if !is_inside {
            return 0;
        }
    }
    0
}

/// Reads the blocks without an address as the percent format means them. `is_percent` states that
/// the text has a header or a bare marker.
pub(super) fn convert(
    blocks: &mut [Block],
    header_lines: usize,
    is_percent: bool,
) -> Option<Notice> {
    let (mut uncommented, mut unquoted) = (0, 0);
    for block in blocks.iter_mut().filter(|block| !block.has_address()) {
        if block.kind != CellKind::Code {
            if let Some(text) = unquote(&block.source) {
                block.source = text.to_owned();
                unquoted += 1;
                continue;
            }
            if let Some(text) = uncomment(&block.source, is_percent) {
                block.source = text;
                uncommented += 1;
                continue;
            }
        }
        if is_percent {
            let length = without_blank_lines_at_end(&block.source).len();
            block.source.truncate(length);
        }
    }
    (header_lines > 0 || uncommented > 0 || unquoted > 0).then_some(Notice::PercentFormat {
        header_lines,
        uncommented,
        unquoted,
    })
}

/// The text between lines of triple quotes.
fn unquote(source: &str) -> Option<&str> {
    let inside = without_blank_lines_at_end(source)
        .strip_prefix(QUOTES)?
        .strip_prefix('\n')?;
    if inside == QUOTES {
        return Some("");
    }
    inside.strip_suffix(QUOTES)?.strip_suffix('\n')
}

/// The text without comment signs, if it is commented in the percent format.
fn uncomment(source: &str, is_percent: bool) -> Option<String> {
    let source = without_blank_lines_at_end(source);
    let lines = || source.split('\n').filter(|line| !line.trim().is_empty());
    if !lines().all(|line| line == "#" || line.starts_with("# ")) {
        return None;
    }
    let is_commented = match lines().count() {
        0 => false,
        1 => is_percent || lines().any(|line| line.starts_with("# #")),
        _ => true,
    };
    is_commented.then(|| {
        let lines: Vec<&str> = source.split('\n').map(without_comment_sign).collect();
        lines.join("\n")
    })
}

fn without_comment_sign(line: &str) -> &str {
    line.strip_prefix("# ")
        .or_else(|| line.strip_prefix('#'))
        .unwrap_or(line)
}

/// The text without the blank lines at its end, and without the newline before them.
fn without_blank_lines_at_end(text: &str) -> &str {
    let mut kept = text;
    while let Some((before, last)) = kept.rsplit_once('\n') {
        if !last.trim().is_empty() {
            return kept;
        }
        kept = before;
    }
    if kept.trim().is_empty() { "" } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_commented_block_at_the_start() {
        for (text, length) in [
            ("# ---\n# a: 1\n#   b: 2\n# ---\n\n \n# %%", 6),
            ("# ---\r\n# ---\r\n# %%", 2),
            ("# ---\n# ---", 2),
            ("# ---\n# a", 0),
            ("# ---\nx\n# ---", 0),
            ("# ---\n# %%\n# ---", 0),
            ("\n# ---\n# ---", 0),
            ("# %%\n# ---\n# ---", 0),
            ("", 0),
        ] {
            assert_eq!(header_length(text), length, "{text:?}");
        }
    }

    #[test]
    fn commented_text_needs_evidence() {
        for (source, plain, percent) in [
            ("# Prices", None, Some("Prices")),
            ("# # Prices", Some("# Prices"), Some("# Prices")),
            ("\n# # Prices", Some("\n# Prices"), Some("\n# Prices")),
            ("# ## Prices", Some("## Prices"), Some("## Prices")),
            ("# a\n# b", Some("a\nb"), Some("a\nb")),
            ("# a\n#\n#   b\n\n", Some("a\n\n  b"), Some("a\n\n  b")),
            ("# a\n\n# b", Some("a\n\nb"), Some("a\n\nb")),
            ("# a\ntext", None, None),
            ("## a\n## b", None, None),
            ("#a\n#b", None, None),
            ("", None, None),
            ("\n\n", None, None),
        ] {
            assert_eq!(uncomment(source, false).as_deref(), plain, "{source:?}");
            assert_eq!(uncomment(source, true).as_deref(), percent, "{source:?}");
        }
    }

    #[test]
    fn quotes_must_be_the_first_and_the_last_line() {
        for (source, expected) in [
            ("\"\"\"\na\n\nb\n\"\"\"", Some("a\n\nb")),
            ("\"\"\"\na\n\"\"\"\n\n", Some("a")),
            ("\"\"\"\n\"\"\"", Some("")),
            ("\"\"\"\n\n\"\"\"", Some("")),
            ("\"\"\"", None),
            ("\"\"\"a\n\"\"\"", None),
            ("\"\"\"\na\"\"\"", None),
            ("\"\"\"\na\n\"\"\"\nb", None),
            ("a\n\"\"\"", None),
        ] {
            assert_eq!(unquote(source), expected, "{source:?}");
        }
    }

    #[test]
    fn blank_lines_at_the_end_are_removed_with_their_newline() {
        for (text, expected) in [
            ("a\n\n \n", "a"),
            ("a", "a"),
            ("\na\n", "\na"),
            ("\n\n", ""),
            (" ", ""),
            ("", ""),
        ] {
            assert_eq!(without_blank_lines_at_end(text), expected, "{text:?}");
        }
    }
}
