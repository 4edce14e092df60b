//! Two changes of one text, put together line by line.

use std::ops::Range;

use super::Marks;
use crate::lines::{Hunk, hunks};

/// A text that two sides have changed.
pub(super) struct MergedText {
    pub(super) text: String,
    /// Whether lines of both stand between marks.
    pub(super) conflict: bool,
}

/// Puts the changes from `base` to `ours` and to `theirs` together. Changes that touch each other are
/// a conflict, as they are for git.
pub(super) fn merge(base: &str, ours: &str, theirs: &str, marks: &Marks) -> MergedText {
    // Without the line feeds: a line at the end that gets another one behind it has not changed.
    let base: Vec<&str> = base.split('\n').collect();
    let mut ours = Side::new(&base, ours);
    let mut theirs = Side::new(&base, theirs);
    let mut lines: Vec<String> = Vec::new();
    let mut conflict = false;
    let mut done = 0;
    let keep = |lines: &mut Vec<String>, range: &[&str]| {
        lines.extend(range.iter().map(|line| (*line).to_owned()));
    };
    while let Some(start) = ours.next().into_iter().chain(theirs.next()).min() {
        let mut end = start;
        let (mut by_us, mut by_them) = (false, false);
        loop {
            if let Some(further) = ours.take(end) {
                (by_us, end) = (true, end.max(further));
            } else if let Some(further) = theirs.take(end) {
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
            lines.push(marks.line('<', &marks.ours));
            keep(&mut lines, &our[head..our.len() - tail]);
            lines.push(marks.line('=', ""));
            keep(&mut lines, &their[head..their.len() - tail]);
            lines.push(marks.line('>', &marks.theirs));
            keep(&mut lines, &our[our.len() - tail..]);
        }
        ours.settle();
        theirs.settle();
    }
    keep(&mut lines, &base[done..]);
    MergedText {
        text: lines.join("\n"),
        conflict,
    }
}

/// One side's changes, taken one after the other.
struct Side<'t> {
    lines: Vec<&'t str>,
    hunks: std::iter::Peekable<std::vec::IntoIter<Hunk>>,
    /// How far this side is ahead of the base: before the stretch at hand, and behind it.
    before: isize,
    behind: isize,
}

impl<'t> Side<'t> {
    fn new(base: &[&str], text: &'t str) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        Self {
            hunks: hunks(base, &lines).into_iter().peekable(),
            lines,
            before: 0,
            behind: 0,
        }
    }

    /// Where the next change begins.
    fn next(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Takes the next change if it begins at `end` or before; says where it ends.
    fn take(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.behind = hunk.new.end.cast_signed() - hunk.old.end.cast_signed();
        Some(hunk.old.end)
    }

    /// What this side has in the place of these lines of the base.
    fn lines(&self, base: Range<usize>) -> &[&'t str] {
        let start = base.start.saturating_add_signed(self.before);
        let end = base.end.saturating_add_signed(self.behind);
        &self.lines[start..end]
    }

    /// The stretch at hand is done.
    fn settle(&mut self) {
        self.before = self.behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, ours: &str, theirs: &str) -> String {
        let marks = Marks {
            size: 3,
            ours: "us".to_owned(),
            theirs: String::new(),
        };
        let merged = merge(base, ours, theirs, &marks);
        assert_eq!(merged.conflict, merged.text.contains("<<<"));
        merged.text
    }

    #[test]
    fn changes_with_a_line_between_them_are_both_there() {
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
    fn one_side_or_the_same_change_twice_is_no_conflict() {
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
    fn changes_that_touch_stand_between_marks_without_what_they_share() {
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
