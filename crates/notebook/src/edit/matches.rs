//! Positions of text in the cells, for errors.

use crate::document::Cells;
use crate::error::{SimilarText, TextDifference, TextMatch};
use crate::text::marker::{self, ViewLine};
use crate::text::{MarkerStyle, append_cell};

/// The largest number of matches that an error lists.
pub(super) const MATCH_LIMIT: usize = 10;
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

/// The lines of a cell at ascending offsets of its source; at most ten.
pub(super) fn locate_in_cell(
    cells: &dyn Cells,
    index: usize,
    offsets: impl Iterator<Item = usize>,
) -> Vec<TextMatch> {
    let source = cells.source(index);
    let mut offsets = offsets.peekable();
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in source.split('\n').enumerate() {
        let end = start + line.len();
        let mut first = None;
        while let Some(at) = offsets.next_if(|&at| at <= end) {
            first.get_or_insert(at);
        }
        if let Some(at) = first {
            found.push(TextMatch {
                cell: index,
                line: Some(number + 1),
                text: excerpt(line, at - start),
            });
        }
        if found.len() == MATCH_LIMIT || offsets.peek().is_none() {
            break;
        }
        start = end + 1;
    }
    found
}

/// Texts in the cells that differ from `old` only in white space and case, or, if there are none,
/// the lines that are most similar to a line of `old`; at most three.
pub(super) fn find_similar(cells: &dyn Cells, old: &str) -> Vec<SimilarText> {
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
        for (at, _) in normalized.text.match_indices(&wanted) {
            let range = normalized.original(at, wanted.len(), &block);
            let difference = TextDifference::between(&block[range.clone()], old);
            let found = locate_offsets(&block, index, std::iter::once(range.start));
            let found = found.into_iter();
            similar.extend(
                found
                    .filter(|found| found.line.is_some() || means_markers(old))
                    .map(|place| SimilarText { place, difference }),
            );
        }
        similar.dedup_by(|next, last| next.place == last.place);
        if similar.len() >= SIMILAR_LIMIT {
            break;
        }
    }
    if similar.is_empty() {
        similar = nearest_lines(cells, old);
    }
    similar.truncate(SIMILAR_LIMIT);
    similar
}

/// The lines of cells that share most with the first line of `old` that is in no cell.
fn nearest_lines(cells: &dyn Cells, old: &str) -> Vec<SimilarText> {
    /// Less than this is not similar.
    const SIMILARITY_MIN: f64 = 0.6;
    /// More lines are not compared.
    const LINES_MAX: usize = 50_000;
    let contains = |line: &str| (0..cells.count()).any(|cell| cells.source(cell).contains(line));
    let is_marker = |line: &str| matches!(marker::classify(line), ViewLine::Marker(_));
    let missing = old
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !is_marker(line) && !contains(line));
    let Some(wanted) = missing.map(Pairs::new) else {
        return Vec::new();
    };
    let mut found: Vec<(f64, TextMatch)> = Vec::new();
    let mut lines = 0;
    for cell in 0..cells.count() {
        for (number, line) in cells.source(cell).lines().enumerate() {
            lines += 1;
            let similarity = wanted.similarity(&Pairs::new(line.trim()));
            if similarity < SIMILARITY_MIN {
                continue;
            }
            let place = TextMatch {
                cell,
                line: Some(number + 1),
                text: excerpt(line, 0),
            };
            found.push((similarity, place));
        }
        if lines > LINES_MAX {
            break;
        }
    }
    // Stable: of equal ones the first in the notebook.
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let similar = |(_, place)| SimilarText {
        place,
        difference: TextDifference::Other,
    };
    found.into_iter().take(SIMILAR_LIMIT).map(similar).collect()
}

/// The pairs of neighbouring characters of a line, sorted, which measure its similarity to others.
struct Pairs(Vec<(char, char)>);

impl Pairs {
    fn new(line: &str) -> Self {
        /// More characters of a line are not compared.
        const CHARS_MAX: usize = 400;
        let chars: Vec<char> = line
            .chars()
            .filter(|c| !c.is_whitespace())
            .flat_map(char::to_lowercase)
            .take(CHARS_MAX)
            .collect();
        let mut pairs: Vec<(char, char)> = chars.windows(2).map(|two| (two[0], two[1])).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// 1 for the same pairs, 0 for no common pair.
    fn similarity(&self, other: &Self) -> f64 {
        let total = self.0.len() + other.0.len();
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = 0;
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            match left.cmp(right) {
                std::cmp::Ordering::Less => drop(a.next()),
                std::cmp::Ordering::Greater => drop(b.next()),
                std::cmp::Ordering::Equal => {
                    common += 1;
                    a.next();
                    b.next();
                }
            }
        }
        if total == 0 {
            return 0.0;
        }
        let in_both = u32::try_from(2 * common).map_or(0.0, f64::from);
        in_both / u32::try_from(total).map_or(f64::MAX, f64::from)
    }
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

    /// The range of the original that a range of the text comes from.
    fn original(&self, at: usize, length: usize, original: &str) -> std::ops::Range<usize> {
        let last = self.offsets[at + length - 1];
        let end = original[last..].chars().next().map_or(1, char::len_utf8);
        self.offsets[at]..last + end
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
