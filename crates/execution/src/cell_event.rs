//! [`CellEvent`]: the start and the end of a cell of a notebook, for viewers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ExecutionStatus;

/// The start or the end of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CellEvent {
    /// A cell starts.
    Begin {
        /// The cell.
        #[serde(flatten)]
        cell: CellRef,
    },
    /// A cell ended.
    End {
        /// The cell.
        #[serde(flatten)]
        cell: CellRef,
        /// How it ended.
        status: ExecutionStatus,
        /// The number that the kernel gave the execution.
        execution_count: Option<u32>,
        /// Duration in milliseconds.
        duration_ms: f64,
        /// Name and message of an exception.
        error: Option<(String, String)>,
        /// Whether the request expects an exception.
        expected: bool,
    },
}

/// The position of a cell in the notebook and in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellRef {
    /// Index in the notebook.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// 1-based position among the cells that run.
    pub number: usize,
    /// Number of cells that run.
    pub total: usize,
    /// The first line of its source that is not blank.
    pub first_line: String,
}
