//! An observer that reports the events of a job to the model.

use cellwright_kernel::session::{CellEnd, JobObserver, SessionNotice};
use cellwright_kernel::{Description, Ending, KernelError, LateText, Outcome, ShutdownReport};
use cellwright_output::{Event, Sink};

use super::model::Model;

/// Observes one job.
pub(super) struct CheckedObserver {
    pub(super) job: usize,
    pub(super) model: Model,
    pub(super) output: ByteCounter,
    pub(super) done: bool,
}

/// Counts the bytes that cells print.
#[derive(Default)]
pub(super) struct ByteCounter {
    bytes: usize,
}

impl Sink for ByteCounter {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.bytes += bytes.len();
        }
    }
}

impl JobObserver for CheckedObserver {
    fn on_kernel(&mut self, description: &Description, generation: u32, _is_new: bool) {
        let kernel = description.name.parse().unwrap();
        self.model
            .with(|state| state.kernel_reported(self.job, kernel, generation));
    }

    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.model.with(|state| state.cell_began(self.job, cell));
        &mut self.output
    }

    fn on_cell_end(&mut self, cell: usize, end: CellEnd) {
        let succeeded = matches!(
            &end.result,
            Ok(Outcome {
                ending: Ending::Completed,
                ..
            })
        );
        let description = match &end.result {
            Ok(outcome) => format!("{:?}", outcome.ending),
            Err(KernelError::Exhausted { .. }) => "exhausted".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        self.model
            .with(|state| state.cell_ended(self.job, cell, &end.result, succeeded, &description));
    }

    fn on_late_text(&mut self, cell: usize, late_text: &LateText) {
        let text = String::from_utf8_lossy(&late_text.bytes).into_owned();
        self.model
            .with(|state| state.late_text_received(self.job, cell, &text));
    }

    fn on_notice(&mut self, notice: SessionNotice) {
        self.model
            .with(|state| state.notice_received(self.job, &notice));
    }

    fn on_shutdown(&mut self, _report: &ShutdownReport) {}

    fn on_done(mut self: Box<Self>) {
        self.done = true;
        let bytes = self.output.bytes;
        self.model.with(|state| state.job_done(self.job, bytes));
    }
}

impl Drop for CheckedObserver {
    fn drop(&mut self) {
        if !self.done {
            let job = self.job;
            self.model
                .with(|state| state.violation(&format!("job {job} was dropped without `on_done`")));
        }
    }
}
