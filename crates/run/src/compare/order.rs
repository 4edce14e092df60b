//! Whether cells ran in order, as far as their execution counts tell.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

/// What a code cell tells of its last run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The index of the cell in the notebook.
    pub cell: usize,
    /// Whether there is nothing in it to run.
    pub is_empty: bool,
    /// Its execution count.
    pub count: Option<u64>,
}

/// A cell that did not run in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Disorder {
    /// It did not run at all.
    NeverRun {
        /// The cell.
        cell: usize,
    },
    /// It has the count of another: they ran in different kernels.
    Duplicate {
        /// The cell.
        cell: usize,
        /// The first that has the same count.
        other: usize,
        /// The count.
        count: u64,
    },
    /// It ran before one that stands above it.
    OutOfOrder {
        /// The cell.
        cell: usize,
        /// Its count.
        count: u64,
        /// The cell above it that ran later.
        other: usize,
        /// The count of that.
        other_count: u64,
    },
}

impl Disorder {
    /// The cell that this is about.
    pub fn cell(&self) -> usize {
        match self {
            Self::NeverRun { cell }
            | Self::Duplicate { cell, .. }
            | Self::OutOfOrder { cell, .. } => *cell,
        }
    }
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRun { cell } => write!(f, "cell {cell} has never run"),
            Self::Duplicate { cell, other, count } => write!(
                f,
                "cell {cell} has the execution count {count}, as cell {other} has: they did not run in one \
                 kernel, one after the other"
            ),
            Self::OutOfOrder {
                cell,
                count,
                other,
                other_count,
            } => write!(
                f,
                "cell {cell} ran before cell {other}, which stands above it (execution counts {count} and \
                 {other_count})"
            ),
        }
    }
}

/// The code cells that did not run in their turn, by what their execution counts say. Gaps are no
/// disorder: a cell may have run twice. Cells with nothing in them need not run.
pub fn order(cells: &[Ran]) -> Vec<Disorder> {
    let mut found = Vec::new();
    let mut first: HashMap<u64, usize> = HashMap::new();
    let mut latest: Option<(u64, usize)> = None;
    for &Ran {
        cell,
        is_empty,
        count,
    } in cells
    {
        let Some(count) = count else {
            if !is_empty {
                found.push(Disorder::NeverRun { cell });
            }
            continue;
        };
        if let Some(&other) = first.get(&count) {
            found.push(Disorder::Duplicate { cell, other, count });
            continue;
        }
        first.insert(count, cell);
        match latest {
            Some((other_count, other)) if count < other_count => {
                found.push(Disorder::OutOfOrder {
                    cell,
                    count,
                    other,
                    other_count,
                });
            }
            _ => latest = Some((count, cell)),
        }
    }
    found
}
