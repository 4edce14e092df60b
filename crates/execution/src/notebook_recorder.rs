//! [`NotebookRecorder`]: saves the outputs of cells in their notebook while they run.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_output::{Outputs, Stream};

use crate::{CommitError, FinishedCell, RecordOutcome, Recorder, RunSpec, Stores};

/// A recorder with its specification and phase.
pub(super) struct NotebookRecorder {
    spec: RunSpec,
    recorder: Recorder,
    phase: RecordingPhase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordingPhase {
    WaitingForKernel,
    Running,
    /// The commit failed, so no cell may run.
    Rejected,
}

impl NotebookRecorder {
    pub(super) fn start(spec: RunSpec, stores: Stores) -> io::Result<Self> {
        Ok(Self {
            recorder: Recorder::start(spec.clone(), stores)?,
            spec,
            phase: RecordingPhase::WaitingForKernel,
        })
    }

    pub(super) fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Whether cells may run.
    pub(super) fn accepts_outputs(&self) -> bool {
        self.phase == RecordingPhase::Running
    }

    /// Applies the edits when the first kernel is ready, and sets the kernel of the following cells.
    pub(super) fn kernel_ready(&mut self, kernel: &Description) -> Result<(), CommitError> {
        match self.phase {
            RecordingPhase::WaitingForKernel => {
                self.phase = RecordingPhase::Rejected;
                self.recorder.commit()?;
                self.recorder.set_kernel(kernel);
                self.phase = RecordingPhase::Running;
            }
            RecordingPhase::Running => self.recorder.set_kernel(kernel),
            RecordingPhase::Rejected => {}
        }
        Ok(())
    }

    pub(super) fn start_cell(&self, cell: usize) {
        if self.phase == RecordingPhase::Running {
            self.recorder.begin_cell(cell);
        }
    }

    pub(super) fn finish_cell(
        &self,
        cell: usize,
        count: Option<u32>,
        outputs: Outputs,
        widget_state: Option<Arc<str>>,
    ) {
        if self.phase == RecordingPhase::Running {
            self.recorder.finish_cell(FinishedCell {
                cell,
                execution_count: count,
                outputs,
                finished_at: SystemTime::now(),
                widget_state,
            });
        }
    }

    pub(super) fn record_late(&self, cell: usize, stream: Stream, bytes: &[u8]) {
        if self.phase == RecordingPhase::Running {
            self.recorder.append_late(cell, stream, bytes);
        }
    }

    /// Saves the remaining changes.
    pub(super) fn finish(self) -> (RecordOutcome, RunSpec) {
        (self.recorder.finish(), self.spec)
    }
}
