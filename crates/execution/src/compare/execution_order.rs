//! Whether cells ran in order, according to their execution counts.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The stored execution count of a code cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredCount {
    /// Index of the cell in the notebook.
    pub cell: usize,
    /// Whether the cell has nothing to run.
    pub is_empty: bool,
    /// Execution count.
    pub count: Option<u64>,
}

/// A cell that did not run in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OrderProblem {
    /// The cell has not run.
    NeverRun {
        /// Index of the cell, from 0.
        #[serde(rename = "index")]
        cell: usize,
    },
    /// The cell has the same count as another one: they ran in different kernels.
    Duplicate {
        /// Index of the cell, from 0.
        #[serde(rename = "index")]
        cell: usize,
        /// Index of the first cell with the same count.
        #[serde(rename = "other_index")]
        other: usize,
        /// The count.
        count: u64,
    },
    /// The cell ran before a cell above it.
    OutOfOrder {
        /// Index of the cell, from 0.
        #[serde(rename = "index")]
        cell: usize,
        /// Execution count of the cell.
        count: u64,
        /// Index of the cell above it that ran later.
        #[serde(rename = "other_index")]
        other: usize,
        /// Execution count of that cell.
        other_count: u64,
    },
}

impl OrderProblem {
    /// Index of the cell that did not run in order.
    pub fn cell(&self) -> usize {
        match self {
            Self::NeverRun { cell }
            | Self::Duplicate { cell, .. }
            | Self::OutOfOrder { cell, .. } => *cell,
        }
    }
}

impl fmt::Display for OrderProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRun { cell } => write!(f, "cell {cell} has never run"),
            Self::Duplicate { cell, other, count } => write!(
                f,
                "cell {cell} and cell {other} have the same execution count {count}: they did not run one \
                 after the other in one kernel"
            ),
            Self::OutOfOrder {
                cell,
                count,
                other,
                other_count,
            } => write!(
                f,
                "cell {cell} ran before cell {other} above it (execution counts {count} and {other_count})"
            ),
        }
    }
}

/// Finds the code cells that did not run in order, according to their execution counts. Gaps are accepted: a cell
/// may have run twice. Cells with nothing to run need no count.
pub fn check_order(cells: impl IntoIterator<Item = StoredCount>) -> Vec<OrderProblem> {
    let mut problems = Vec::new();
    let mut first: HashMap<u64, usize> = HashMap::new();
    let mut latest: Option<(u64, usize)> = None;
    for StoredCount {
        cell,
        is_empty,
        count,
    } in cells
    {
        let Some(count) = count else {
            if !is_empty {
                problems.push(OrderProblem::NeverRun { cell });
            }
            continue;
        };
        if let Some(&other) = first.get(&count) {
            problems.push(OrderProblem::Duplicate { cell, other, count });
            continue;
        }
        first.insert(count, cell);
        match latest {
            Some((other_count, other)) if count < other_count => {
                problems.push(OrderProblem::OutOfOrder {
                    cell,
                    count,
                    other,
                    other_count,
                });
            }
            _ => latest = Some((count, cell)),
        }
    }
    problems
}
