//! Input and result of a [`Recorder`](crate::Recorder), shared with its saver thread.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_notebook::file::{Survey, WriteGuard};
use cellwright_notebook::{Baselines, NotebookError, Notice, Revision};
use cellwright_output::{ArtifactId, Artifacts, Outputs, Stream};

use crate::duration_store::DurationStore;
use crate::edits::InvalidEdit;

/// Storage outside the notebook, and the guard of the notebook.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    /// Store for outputs that cannot be written to the notebook.
    pub artifacts: Option<Artifacts>,
    /// Store of earlier revisions, for merging edits.
    pub baselines: Option<Baselines>,
    /// Store of the durations of cells.
    pub durations: Option<DurationStore>,
    /// Asked before the notebook is written, because another program may have it open.
    pub guard: Option<Arc<dyn WriteGuard>>,
}

/// A command to the saver thread.
pub(crate) enum RecorderCommand {
    /// Apply the edits, find the planned cells and reply.
    Commit(SyncSender<Result<(), CommitError>>),
    /// Set the kernel that runs the cells.
    SetKernel(Box<Description>),
    /// Mark a cell as started.
    BeginCell { cell: usize, at: SystemTime },
    /// Record the result of a cell.
    FinishCell(Box<FinishedCell>),
    /// Append late output to a cell.
    AppendLate {
        cell: usize,
        stream: Stream,
        bytes: Vec<u8>,
    },
}

/// Result of a cell, as it is written to the notebook.
#[derive(Debug)]
pub struct FinishedCell {
    /// Position among the planned cells.
    pub cell: usize,
    /// Execution count.
    pub execution_count: Option<u32>,
    /// Outputs. The last one of an incomplete cell is an error, see
    /// [`incomplete_cell_error`](crate::incomplete_cell_error).
    pub outputs: Outputs,
    /// Time at which the cell finished.
    pub finished_at: SystemTime,
    /// State of the kernel's widgets as JSON text, if it has changed: `metadata.widgets` at the end of the run.
    pub widget_state: Option<Arc<str>>,
}

/// Why no cell may run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The edits could not be applied, or the file could not be read or written.
    #[error(transparent)]
    Notebook(#[from] NotebookError),
    /// An edit is invalid.
    #[error(transparent)]
    Edit(#[from] InvalidEdit),
    /// Planned cells were changed in the file or removed from it.
    #[error("{} of the planned cells were changed in the file", cells.len())]
    CellsChanged {
        /// Index of each such cell at the time of planning.
        cells: Vec<usize>,
        /// Whether the edits were applied before: they are in the file then.
        edited: bool,
    },
    /// The saver thread has panicked.
    #[error("the thread that writes the notebook has ended")]
    RecorderGone,
}

/// Outcome of a recording.
#[derive(Debug, Default)]
pub struct RecordOutcome {
    /// Number of times the file was written.
    pub saves: usize,
    /// Whether another program changed the file during the run.
    pub merged: bool,
    /// Revision after the last save.
    pub revision: Option<Revision>,
    /// The notebook after the last save.
    pub survey: Option<Survey>,
    /// Index in the file of each planned cell after the last save; `None` for cells that did not run.
    pub cell_indexes: Vec<Option<usize>>,
    /// Cells whose outputs could not be written.
    pub conflicts: Vec<CellConflict>,
    /// Error of the last save.
    pub failure: Option<NotebookError>,
    /// Artifact with the outputs that could not be written to the notebook.
    pub artifact: Option<ArtifactId>,
    /// Artifacts of outputs that were too large for the notebook, each with the position of its cell among the
    /// planned cells.
    pub moved_outputs: Vec<(usize, ArtifactId)>,
    /// Notices of the guard, each once.
    pub notices: Vec<Notice>,
    /// Whether the saver thread panicked: the content of the file is unknown then.
    pub panicked: bool,
}

/// A cell whose outputs could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellConflict {
    /// Position among the planned cells.
    pub cell: usize,
    /// Why they could not be written.
    pub reason: cellwright_notebook::file::CellConflict,
}
