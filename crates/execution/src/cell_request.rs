//! [`CellRequest`]: one cell to run, with its limits. [`CellRequests`]: all cells of an execution.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::planned_cells::PlannedCells;

/// Number of characters of the first line of a cell in its events.
const FIRST_LINE_MAX: usize = 200;

/// One cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CellRequest {
    /// The source to run.
    pub code: String,
    /// A title for reports.
    pub title: Option<String>,
    /// Time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Whether the cell starts with a fresh kernel.
    pub reset: bool,
    /// The script from which the code was read.
    pub file: Option<PathBuf>,
    /// What an exception means for the execution.
    pub on_error: OnError,
}

impl CellRequest {
    /// The first line that is not blank, at most [`FIRST_LINE_MAX`] characters.
    pub(crate) fn first_line(&self) -> String {
        let mut lines = self.code.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
        line.chars().take(FIRST_LINE_MAX).collect()
    }
}

/// What happens when a cell raises an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The execution ends with an error.
    #[default]
    Stop,
    /// The next cell runs; the execution ends with an error.
    Continue,
    /// The next cell runs; the exception is not an error.
    Expected,
}

impl OnError {
    /// What an exception means for a run that continues after an exception, or does not.
    pub fn keep_going(keep_going: bool) -> Self {
        if keep_going {
            Self::Continue
        } else {
            Self::Stop
        }
    }
}

/// The cells of an execution. Clones share them.
#[derive(Clone, Debug)]
pub enum CellRequests {
    /// Pieces of code.
    Code(Arc<[CellRequest]>),
    /// Cells of a notebook, which all have the same limits.
    Notebook {
        /// The cells.
        cells: PlannedCells,
        /// Time limit of each cell; `None` for no limit.
        timeout: Option<Duration>,
        /// What an exception of a cell means that no tag allows to raise one.
        on_error: OnError,
    },
}

impl CellRequests {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Code(cells) => cells.len(),
            Self::Notebook { cells, .. } => cells.len(),
        }
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cells. Those of a notebook are created one after the other.
    pub fn iter(&self) -> impl Iterator<Item = CellRequest> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Cell `at`.
    pub fn get(&self, at: usize) -> Option<CellRequest> {
        match self {
            Self::Code(cells) => cells.get(at).cloned(),
            Self::Notebook {
                cells,
                timeout,
                on_error,
            } => cells.get(at).map(|planned| CellRequest {
                code: planned.source,
                timeout: *timeout,
                on_error: if planned.raises_exception {
                    OnError::Expected
                } else {
                    *on_error
                },
                ..CellRequest::default()
            }),
        }
    }
}
