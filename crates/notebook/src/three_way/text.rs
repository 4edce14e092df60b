//! Merges two changes of one text, line by line.

use std::ops::Range;

use super::ConflictMarkers;
use crate::lines::{LineHunk, line_hunks};

/// A merged text.
pub(super) struct MergedText {
    pub(super) text: String,
    /// Whether it has conflict markers.
    pub(super) conflict: bool,
}

/// Merges the changes from `base` to `ours` and to `theirs`. Adjacent changes are a conflict, as
/// in git.
pub(super) fn merge_text(
    base: &str,
    ours: &str,
    theirs: &str,
    markers: &ConflictMarkers,
) -> MergedText {
    // Lines are compared without line feeds: appending a line does not change the one before it.
    let base: Vec<&str> = base.split('\n').collect();
    let mut ours = TextSide::new(&base, ours);
    let mut theirs = TextSide::new(&base, theirs);
    let mut lines: Vec<String> = Vec::new();
    let mut conflict = false;
    let mut done = 0;
    let keep = |lines: &mut Vec<String>, range: &[&str]| {
        lines.extend(range.iter().map(|line| (*line).to_owned()));
    };
    while let Some(start) = ours
        .next_start()
        .into_iter()
        .chain(theirs.next_start())
        .min()
    {
        let mut end = start;
        let (mut by_us, mut by_them) = (false, false);
        loop {
            if let Some(further) = ours.consume_until(end) {
                (by_us, end) = (true, end.max(further));
            } else if let Some(further) = theirs.consume_until(end) {
                (by_them, end) = (true, end.max(further));
            } else {
                break;
            }
        }
        keep(&mut lines, &base[done..start]);
        let (our, their) = (ours.lines(start..end), theirs.lines(start..end));
        done = end;
        if !by_them || our == their {
            keep(&mut lines, our);
        } else if !by_us {
            keep(&mut lines, their);
        } else {
            conflict = true;
            let head = std::iter::zip(our, their).take_while(|(a, b)| a == b);
            let head = head.count();
            let tail = std::iter::zip(our[head..].iter().rev(), their[head..].iter().rev());
            let tail = tail.take_while(|(a, b)| a == b).count();
            keep(&mut lines, &our[..head]);
            lines.push(markers.marker_line('<', &markers.ours));
            keep(&mut lines, &our[head..our.len() - tail]);
            lines.push(markers.marker_line('=', ""));
            keep(&mut lines, &their[head..their.len() - tail]);
            lines.push(markers.marker_line('>', &markers.theirs));
            keep(&mut lines, &our[our.len() - tail..]);
        }
        ours.advance();
        theirs.advance();
    }
    keep(&mut lines, &base[done..]);
    MergedText {
        text: lines.join("\n"),
        conflict,
    }
}

/// One side's changes, consumed in order.
struct TextSide<'t> {
    lines: Vec<&'t str>,
    hunks: std::iter::Peekable<std::vec::IntoIter<LineHunk>>,
    /// Line offset of this side relative to the base, before and after the current range.
    offset_before: isize,
    offset_after: isize,
}

impl<'t> TextSide<'t> {
    fn new(base: &[&str], text: &'t str) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        Self {
            hunks: line_hunks(base, &lines).into_iter().peekable(),
            lines,
            offset_before: 0,
            offset_after: 0,
        }
    }

    /// The start of the next change.
    fn next_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Consumes the next change if it starts at `end` or earlier. Returns its end.
    fn consume_until(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.offset_after = hunk.new.end.cast_signed() - hunk.old.end.cast_signed();
        Some(hunk.old.end)
    }

    /// The lines of this side in the given range of the base.
    fn lines(&self, base: Range<usize>) -> &[&'t str] {
        let start = base.start.saturating_add_signed(self.offset_before);
        let end = base.end.saturating_add_signed(self.offset_after);
        &self.lines[start..end]
    }

    /// Completes the current range.
    fn advance(&mut self) {
        self.offset_before = self.offset_after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, ours: &str, theirs: &str) -> String {
        let markers = ConflictMarkers {
            size: 3,
            ours: "us".to_owned(),
            theirs: String::new(),
        };
        let merged = merge_text(base, ours, theirs, &markers);
        assert_eq!(merged.conflict, merged.text.contains("<<<"));
        merged.text
    }

    #[test]
    fn separated_changes_are_both_kept() {
        assert_eq!(merged("a\nb\nc", "A\nb\nc", "a\nb\nC"), "A\nb\nC");
        assert_eq!(
            merged("a\nb\nc", "x\na\nb\nc", "a\nb\nc\ny"),
            "x\na\nb\nc\ny"
        );
        assert_eq!(merged("a\nb\nc\nd", "a\nd", "a\nb\nc\nd\ne"), "a\nd\ne");
        assert_eq!(merged("a\nb", "a\nb\n", "A\nb"), "A\nb\n");
        assert_eq!(
            merged(
                "1\n2\n3\n4\n5\n6\n7",
                "1\nx\n3\n4\n5\ny\n7",
                "0\n1\n2\n3\nz\nz\n5\n6\n7"
            ),
            "0\n1\nx\n3\nz\nz\n5\ny\n7"
        );
    }

    #[test]
    fn one_sided_or_equal_changes_are_no_conflict() {
        for (a, b) in [
            ("a\nb\nc", "a\nB\nc\nd"),
            ("", "x"),
            ("x\ny", ""),
            ("a", "a\n"),
        ] {
            assert_eq!(merged(a, b, a), b);
            assert_eq!(merged(a, a, b), b);
            assert_eq!(merged(a, b, b), b);
        }
        assert_eq!(
            merged("a\nb\nc\nd", "a\nX\nc\nY", "a\nX\nc\nd"),
            "a\nX\nc\nY"
        );
    }

    #[test]
    fn adjacent_changes_conflict_without_common_lines() {
        assert_eq!(
            merged("a\nb\nc", "a\nsame\nB\nend\nc", "a\nsame\nb\nβ\nend\nc"),
            "a\nsame\n<<< us\nB\n===\nb\nβ\n>>>\nend\nc"
        );
        assert_eq!(merged("", "x", "y"), "<<< us\nx\n===\ny\n>>>");
        assert_eq!(
            merged("a\nb", "A\nb", "a\nB"),
            "<<< us\nA\nb\n===\na\nB\n>>>"
        );
        assert_eq!(merged("a\nb", "a", "a\nB"), "a\n<<< us\n===\nB\n>>>");
    }
}
