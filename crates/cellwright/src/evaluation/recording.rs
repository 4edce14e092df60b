//! What cells put out, on its way into their notebook.

use std::io;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_output::{Outputs, Stream};
use cellwright_run::{CommitError, Ended, Order, Places, Recorder, Written};

/// A recorder, and what was ordered.
pub(super) struct Recording {
    order: Order,
    recorder: Recorder,
    phase: Phase,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There was no kernel yet.
    Before,
    /// Cells run.
    Running,
    /// Nothing may run.
    Refused,
}

impl Recording {
    pub(super) fn start(order: Order, places: Places) -> io::Result<Self> {
        Ok(Self {
            recorder: Recorder::start(order.clone(), places)?,
            order,
            phase: Phase::Before,
        })
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Whether cells may run.
    pub(super) fn runs(&self) -> bool {
        self.phase == Phase::Running
    }

    /// There is a kernel, the first or another one.
    pub(super) fn ready(&mut self, kernel: &Description) -> Result<(), CommitError> {
        match self.phase {
            Phase::Before => {
                self.phase = Phase::Refused;
                self.recorder.commit()?;
                self.recorder.kernel(kernel);
                self.phase = Phase::Running;
            }
            Phase::Running => self.recorder.kernel(kernel),
            Phase::Refused => {}
        }
        Ok(())
    }

    pub(super) fn begin(&self, cell: usize) {
        if self.phase == Phase::Running {
            self.recorder.begin(cell);
        }
    }

    pub(super) fn end(&self, cell: usize, count: Option<u32>, outputs: Outputs) {
        if self.phase == Phase::Running {
            let at = SystemTime::now();
            self.recorder.end(Ended {
                cell,
                count,
                outputs,
                at,
            });
        }
    }

    pub(super) fn late(&self, cell: usize, stream: Stream, bytes: &[u8]) {
        if self.phase == Phase::Running {
            self.recorder.late(cell, stream, bytes);
        }
    }

    /// Writes the last word.
    pub(super) fn finish(self) -> (Written, Order) {
        (self.recorder.finish(), self.order)
    }
}
