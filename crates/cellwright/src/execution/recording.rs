//! [`NotebookRecorder`]: saves the outputs of cells in their notebook while they run.

use std::io;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_output::{Outputs, Stream};
use cellwright_run::{CommitError, FinishedCell, RecordOutcome, Recorder, RunSpec, Stores};

/// A recorder, and what was ordered.
pub(super) struct NotebookRecorder {
    order: RunSpec,
    recorder: Recorder,
    phase: RecordingPhase,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordingPhase {
    /// There was no kernel yet.
    WaitingForKernel,
    /// Cells run.
    Running,
    /// Nothing may run.
    Rejected,
}

impl NotebookRecorder {
    pub(super) fn start(order: RunSpec, places: Stores) -> io::Result<Self> {
        Ok(Self {
            recorder: Recorder::start(order.clone(), places)?,
            order,
            phase: RecordingPhase::WaitingForKernel,
        })
    }

    pub(super) fn order(&self) -> &RunSpec {
        &self.order
    }

    /// Whether cells may run.
    pub(super) fn accepts_outputs(&self) -> bool {
        self.phase == RecordingPhase::Running
    }

    /// There is a kernel, the first or another one.
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

    pub(super) fn finish_cell(&self, cell: usize, count: Option<u32>, outputs: Outputs) {
        if self.phase == RecordingPhase::Running {
            let at = SystemTime::now();
            self.recorder.finish_cell(FinishedCell {
                cell,
                execution_count: count,
                outputs,
                finished_at: at,
            });
        }
    }

    pub(super) fn record_late(&self, cell: usize, stream: Stream, bytes: &[u8]) {
        if self.phase == RecordingPhase::Running {
            self.recorder.append_late(cell, stream, bytes);
        }
    }

    /// Writes the last word.
    pub(super) fn finish(self) -> (RecordOutcome, RunSpec) {
        (self.recorder.finish(), self.order)
    }
}
