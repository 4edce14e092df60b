//! [`CellEvent`]: the start and the end of a cell, for viewers.

use serde::{Deserialize, Serialize};

use super::report::ExecutionStatus;

/// Something that happened between what cells say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum CellEvent {
    /// A cell begins.
    Begin {
        #[serde(flatten)]
        cell: CellRef,
    },
    /// A cell has ended.
    End {
        #[serde(flatten)]
        cell: CellRef,
        status: ExecutionStatus,
        execution_count: Option<u32>,
        duration_ms: f64,
        /// Name and message of an exception.
        error: Option<(String, String)>,
        /// Whether an exception was expected.
        expected: bool,
    },
}

/// Which cell it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellRef {
    /// Its place in the notebook.
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    /// The how many it is of those that run, from 1.
    pub(crate) number: usize,
    pub(crate) total: usize,
}
