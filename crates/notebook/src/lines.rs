//! Where two texts differ, line by line, in bounded time.

use std::ops::Range;

/// A stretch of lines.
pub(crate) enum Change {
    /// These lines of the old text stay.
    Keep(Range<usize>),
    /// These lines become those.
    Replace {
        old: Range<usize>,
        new: Range<usize>,
    },
}

/// Beyond this many comparisons the lines between the common ends count as replaced.
const MOST_COMPARISONS: usize = 4_000_000;

/// How `old` becomes `new`.
pub(crate) fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let head = std::iter::zip(old, new).take_while(|(a, b)| a == b).count();
    let tail = std::iter::zip(old[head..].iter().rev(), new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let old_middle = head..old.len() - tail;
    let new_middle = head..new.len() - tail;
    let mut changes = vec![Change::Keep(0..head)];
    if old_middle.len() * new_middle.len() > MOST_COMPARISONS {
        changes.push(Change::Replace {
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
                Change::Keep(old_index..old_index + len)
            }
            other => Change::Replace {
                old: other.old_range(),
                new: other.new_range(),
            },
        }));
    }
    changes.push(Change::Keep(old_middle.end..old.len()));
    changes
}

/// Lines of the old text and what stands in their place in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// Where `old` and `new` differ; there is at least one common line between two of these.
pub(crate) fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for change in changes(old, new) {
        let Change::Replace { old, new } = change else {
            continue;
        };
        match hunks.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => hunks.push(Hunk { old, new }),
        }
    }
    hunks
}
