//! [`CellEvent`]: the start and the end of a cell of a notebook, for viewers.

use serde::{Deserialize, Serialize};

use super::report::ExecutionStatus;

/// The start or the end of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum CellEvent {
    /// A cell starts.
    Begin {
        #[serde(flatten)]
        cell: CellRef,
    },
    /// A cell ended.
    End {
        #[serde(flatten)]
        cell: CellRef,
        status: ExecutionStatus,
        execution_count: Option<u32>,
        duration_ms: f64,
        /// Name and message of an exception.
        error: Option<(String, String)>,
        /// Whether the request expects an exception.
        expected: bool,
    },
}

/// The position of a cell in the notebook and in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellRef {
    /// Index in the notebook.
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    /// 1-based position among the cells that run.
    pub(crate) number: usize,
    /// Number of cells that run.
    pub(crate) total: usize,
}
