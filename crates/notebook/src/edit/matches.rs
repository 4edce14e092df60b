//! Positions of text in the cells, for errors.

use crate::document::Cells;
use crate::error::TextMatch;
use crate::text::marker::{self, ViewLine};
use crate::text::{MarkerStyle, append_cell};

/// The largest number of matches that an error lists.
const MATCH_LIMIT: usize = 10;
/// The largest number of similar texts that an error lists.
const SIMILAR_LIMIT: usize = 3;

/// Whether a text to replace is about markers.
pub(super) fn means_markers(old: &str) -> bool {
    old.contains("# %%")
}

/// The cells and lines of the matches of `old` at the offsets `found` of a view; at most ten.
pub(super) fn locate(view: &str, old: &str, found: &[usize]) -> Vec<TextMatch> {
    // A text that starts with a line break belongs to the line after it.
    let skipped = old.len() - old.trim_start_matches('\n').len();
    let skipped = if skipped == old.len() { 0 } else { skipped };
    let offsets = found.iter().map(|at| at + skipped);
    let mut matches = locate_offsets(view, 0, offsets);
    matches.truncate(MATCH_LIMIT);
    matches
}

/// The cells and lines at ascending offsets of a view that starts with `first_cell`. Several
/// offsets in one line give one entry.
fn locate_offsets(
    view: &str,
    first_cell: usize,
    offsets: impl Iterator<Item = usize>,
) -> Vec<TextMatch> {
    let mut offsets = offsets.peekable();
    let mut matches = Vec::new();
    // Markers so far, and lines since the last one.
    let (mut markers, mut line_number) = (0, 0);
    let mut start = 0;
    for line in view.split('\n') {
        line_number += 1;
        if matches!(marker::classify(line), ViewLine::Marker(_)) {
            markers += 1;
            line_number = 0;
        }
        let end = start + line.len();
        let mut first = None;
        while let Some(at) = offsets.next_if(|&at| at <= end) {
            first.get_or_insert(at);
        }
        if let Some(at) = first {
            matches.push(TextMatch {
                cell: first_cell + usize::saturating_sub(markers, 1),
                line: (line_number > 0).then_some(line_number),
                text: excerpt(line, at.saturating_sub(start)),
            });
        }
        if matches.len() == MATCH_LIMIT || offsets.peek().is_none() {
            break;
        }
        start = end + 1;
    }
    matches
}

/// The part of a line around an offset in it.
fn excerpt(line: &str, at: usize) -> String {
    const LENGTH_LIMIT: usize = 80;
    const CONTEXT_LENGTH: usize = 20;
    let line = line.trim_end();
    let before = line.get(..at).unwrap_or_default().chars().count();
    let length = line.chars().count();
    let skipped = if length <= LENGTH_LIMIT || before + CONTEXT_LENGTH <= LENGTH_LIMIT {
        0
    } else {
        before - CONTEXT_LENGTH
    };
    let shown: String = line.chars().skip(skipped).take(LENGTH_LIMIT).collect();
    let start = if skipped > 0 { "…" } else { "" };
    let end = if skipped + LENGTH_LIMIT < length {
        "…"
    } else {
        ""
    };
    format!("{start}{}{end}", shown.trim())
}

/// Texts in the cells that differ from `old` only in white space and case; at most three.
pub(super) fn find_similar(cells: &dyn Cells, old: &str) -> Vec<TextMatch> {
    let wanted = NormalizedText::new(old).text;
    let mut similar = Vec::new();
    if wanted.is_empty() {
        return similar;
    }
    for index in 0..cells.count() {
        let mut block = String::new();
        let (kind, source) = (cells.kind(index), cells.source(index));
        append_cell(&mut block, index, kind, None, &source, MarkerStyle::Indexes);
        let normalized = NormalizedText::new(&block);
        let offsets = normalized
            .text
            .match_indices(&wanted)
            .map(|(at, _)| normalized.offsets[at]);
        similar.extend(
            locate_offsets(&block, index, offsets)
                .into_iter()
                .filter(|found| found.line.is_some() || means_markers(old)),
        );
        if similar.len() >= SIMILAR_LIMIT {
            break;
        }
    }
    similar.truncate(SIMILAR_LIMIT);
    similar
}

/// A text without white space, in lower case.
struct NormalizedText {
    text: String,
    /// For each byte of the text, the offset of its character in the original.
    offsets: Vec<usize>,
}

impl NormalizedText {
    fn new(original: &str) -> Self {
        let mut text = String::new();
        let mut offsets = Vec::new();
        for (at, character) in original.char_indices() {
            if character.is_whitespace() {
                continue;
            }
            text.extend(character.to_lowercase());
            offsets.resize(text.len(), at);
        }
        Self { text, offsets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let line = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
        let shown = excerpt(&line, 100);
        assert_eq!(
            shown,
            format!("…{}needle{}…", "a".repeat(20), "b".repeat(54))
        );
        let shown = excerpt(&line, 0);
        assert_eq!(shown, format!("{}…", "a".repeat(80)));
        assert_eq!(excerpt("    x = 1  ", 4), "x = 1");
        let wide = "é".repeat(81);
        assert_eq!(excerpt(&wide, 2), format!("{}…", "é".repeat(80)));
    }
}
