//! Line diffs in bounded time.

use std::ops::Range;

/// A range of lines.
pub(crate) enum LineChange {
    /// Lines of the old text that stay.
    Keep(Range<usize>),
    /// Lines of the old text that are replaced.
    Replace {
        old: Range<usize>,
        new: Range<usize>,
    },
}

/// Beyond this many comparisons, all lines between the common head and tail count as replaced.
const COMPARISON_LIMIT: usize = 4_000_000;

/// The changes from `old` to `new`.
pub(crate) fn diff_lines(old: &[&str], new: &[&str]) -> Vec<LineChange> {
    let head = std::iter::zip(old, new).take_while(|(a, b)| a == b).count();
    let tail = std::iter::zip(old[head..].iter().rev(), new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let old_middle = head..old.len() - tail;
    let new_middle = head..new.len() - tail;
    let mut changes = vec![LineChange::Keep(0..head)];
    if old_middle.len() * new_middle.len() > COMPARISON_LIMIT {
        changes.push(LineChange::Replace {
            old: old_middle.clone(),
            new: new_middle,
        });
    } else {
        let ops = similar::capture_diff(
            similar::Algorithm::Myers,
            old,
            old_middle.clone(),
            new,
            new_middle,
        );
        changes.extend(ops.into_iter().map(|op| match op {
            similar::DiffOp::Equal { old_index, len, .. } => {
                LineChange::Keep(old_index..old_index + len)
            }
            other => LineChange::Replace {
                old: other.old_range(),
                new: other.new_range(),
            },
        }));
    }
    changes.push(LineChange::Keep(old_middle.end..old.len()));
    changes
}

/// Lines of the old text and their replacement in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineHunk {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The changed lines between `old` and `new`. There is at least one common line between two
/// hunks.
pub(crate) fn line_hunks(old: &[&str], new: &[&str]) -> Vec<LineHunk> {
    let mut hunks: Vec<LineHunk> = Vec::new();
    for change in diff_lines(old, new) {
        let LineChange::Replace { old, new } = change else {
            continue;
        };
        match hunks.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => hunks.push(LineHunk { old, new }),
        }
    }
    hunks
}
