//! [`CellEvent`]: the start and the end of a cell, for viewers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{ErrorReport, ExecutionStatus, KernelReport};

/// The start or the end of a cell, or the kernel that runs the cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CellEvent {
    /// The kernel is ready.
    KernelReady {
        /// The kernel.
        kernel: KernelReport,
        /// Time since the start of the execution, in milliseconds.
        kernel_ready_ms: f64,
    },
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
        /// The exception that the cell raised, or why it did not finish.
        error: Option<ErrorReport>,
        /// Whether the request expects an exception.
        expected: bool,
    },
}

/// The position of a cell in the notebook and in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellRef {
    /// Index in the notebook, or in the request, from 0.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// Position among the cells that run, from 1.
    pub number: usize,
    /// Number of cells that run.
    pub total: usize,
    /// The first line of its source that is not blank.
    pub first_line: String,
}
