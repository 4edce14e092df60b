//! [`run`]: runs a whole notebook in one call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cellwright_kernel::session::{
    AfterJob, CellEnd, Job, JobCell, JobObserver, KernelLauncher, OnError, Policy, SessionId,
    SessionNotice, run_once,
};
use cellwright_kernel::{
    Description, Ending, KernelError, LateText, Request, ShutdownReport, StopHandle, StopReason,
    StopSignal,
};
use cellwright_notebook::Cells;
use cellwright_output::{Capture, Event, Limits, Sink, Traceback};
use cellwright_stdext::LockExt;

use crate::edits::Edit;
use crate::error::RunError;
use crate::incomplete_cell::{exit_error, incomplete_cell_error};
use crate::preview::preview;
use crate::record::{FinishedCell, RecordOutcome, Stores};
use crate::recorder::{Recorder, apply_edits};
use crate::run_spec::{PlannedCell, RunSpec};
use crate::selection::CellSelection;
use crate::{RAISES_EXCEPTION_TAG, SKIP_EXECUTION_TAG};

/// Options of [`run`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Cells to run; by default all.
    pub selection: CellSelection,
    /// Edits, applied before the first cell runs.
    pub edits: Vec<Edit>,
    /// Path of the notebook with outputs; `None` to write in place.
    pub output: Option<PathBuf>,
    /// Time limit of each cell.
    pub timeout: Option<Duration>,
    /// Time limit of all cells together.
    pub total_timeout: Option<Duration>,
    /// Whether to continue after a cell that failed.
    pub keep_going: bool,
    /// Whether to store start and end times in the metadata of each cell.
    pub timing: bool,
    /// Storage outside the notebook.
    pub stores: Stores,
    /// Limits of the text of each cell in the report.
    pub limits: Limits,
}

/// Result of a run.
#[derive(Debug)]
pub struct Report {
    /// The planned cells, in spec.
    pub cells: Vec<CellReport>,
    /// The kernel that ran them.
    pub kernel: Option<Description>,
    /// Result of writing the file.
    pub record: RecordOutcome,
}

/// Result of a cell.
#[derive(Debug)]
pub struct CellReport {
    /// The cell.
    pub cell: PlannedCell,
    /// How the cell ended.
    pub status: CellStatus,
    /// Execution count.
    pub count: Option<u32>,
    /// Output as text for a model.
    pub text: String,
    /// Duration.
    pub time: Duration,
}

/// How a cell ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CellStatus {
    /// The cell did not run.
    NotRun,
    /// The cell ran to its end.
    Completed,
    /// The cell raised an exception.
    Raised(Traceback),
    /// The cell was stopped.
    Stopped(StopReason),
    /// The kernel died or could not be started.
    Kernel(Arc<KernelError>),
}

impl Report {
    /// Whether every cell ran to its end and all outputs are in the file.
    pub fn succeeded(&self) -> bool {
        let completed = |cell: &CellReport| matches!(cell.status, CellStatus::Completed);
        let record = &self.record;
        let all_saved = record.failure.is_none() && record.conflicts.is_empty() && !record.panicked;
        all_saved && self.cells.iter().all(completed)
    }
}

/// Runs the cells of a notebook on a new kernel and writes the outputs to the file. `stop` ends the run early; the
/// outputs up to then are in the file.
pub async fn run(
    path: &Path,
    options: Options,
    launch: Arc<dyn KernelLauncher>,
    (stopper, stop): (StopHandle, StopSignal),
) -> Result<Report, RunError> {
    let preview = preview(path, &options.edits)?;
    let listing = &preview.listing;
    let runs = |index: &usize| {
        !listing.source(*index).trim().is_empty() && !listing.has_tag(*index, SKIP_EXECUTION_TAG)
    };
    let cells: Vec<PlannedCell> = options
        .selection
        .resolve(listing)?
        .into_iter()
        .filter(runs)
        .map(|index| PlannedCell::from_listing(listing, index))
        .collect();
    let spec = RunSpec {
        path: std::path::absolute(path)?,
        output: options
            .output
            .as_deref()
            .map(std::path::absolute)
            .transpose()?,
        revision: preview.revision.clone(),
        edits: options.edits.clone(),
        cells: cells.clone(),
        timing: options.timing,
        kernel_named: false,
        outputs_limit: None,
    };
    if cells.is_empty() {
        return Ok(Report {
            cells: Vec::new(),
            kernel: None,
            record: apply_edits(spec, options.stores)?,
        });
    }
    let cell = |planned: &PlannedCell| JobCell {
        request: Request::new(planned.source.clone()),
        timeout: options.timeout,
        reset: false,
        on_error: if options.keep_going || listing.has_tag(planned.index, RAISES_EXCEPTION_TAG) {
            OnError::Continue
        } else {
            OnError::Stop
        },
    };
    let outcome = Arc::new(Mutex::new(Outcome {
        cells: cells.iter().map(CellReport::not_run).collect(),
        kernel: None,
        refused: None,
        record: RecordOutcome::default(),
    }));
    let stage = Stage {
        recorder: Some(Recorder::start(spec, options.stores.clone())?),
        capture: None,
        committed: false,
        stopper: stopper.clone(),
        limits: options.limits,
        stores: options.stores,
        outcome: Arc::clone(&outcome),
    };
    let job = Job {
        cells: cells.iter().map(cell).collect(),
        owner: String::new(),
        label: path.display().to_string(),
        stop: match options.total_timeout {
            Some(total) => stop.with_timeout(total),
            None => stop,
        },
        stop_handle: stopper,
        after: AfterJob::ShutDown,
        observer: Box::new(stage),
    };
    run_once(launch, Policy::default(), job).await;
    let mut outcome = outcome.lock_ignoring_poison();
    if let Some(refused) = outcome.refused.take() {
        return Err(refused);
    }
    Ok(Report {
        cells: std::mem::take(&mut outcome.cells),
        kernel: outcome.kernel.take(),
        record: std::mem::take(&mut outcome.record),
    })
}

struct Outcome {
    cells: Vec<CellReport>,
    kernel: Option<Description>,
    refused: Option<RunError>,
    record: RecordOutcome,
}

/// Observes the session and records the outputs.
struct Stage {
    recorder: Option<Recorder>,
    /// The running cell.
    capture: Option<(usize, Capture)>,
    committed: bool,
    stopper: StopHandle,
    limits: Limits,
    stores: Stores,
    outcome: Arc<Mutex<Outcome>>,
}

impl CellReport {
    fn not_run(cell: &PlannedCell) -> Self {
        Self {
            cell: cell.clone(),
            status: CellStatus::NotRun,
            count: None,
            text: String::new(),
            time: Duration::ZERO,
        }
    }
}

impl Stage {
    fn with<T>(&self, look: impl FnOnce(&mut Outcome) -> T) -> T {
        look(&mut self.outcome.lock_ignoring_poison())
    }
}

impl JobObserver for Stage {
    fn on_accepted(&mut self, _session: SessionId) {}

    fn on_kernel(&mut self, description: &Description, _generation: u32) {
        self.with(|outcome| outcome.kernel = Some(description.clone()));
        let Some(recorder) = self.recorder.as_ref().filter(|_| !self.committed) else {
            return;
        };
        match recorder.commit() {
            Ok(()) => {
                recorder.set_kernel(description);
                self.committed = true;
            }
            Err(error) => {
                self.with(|outcome| outcome.refused = Some(error.into()));
                self.stopper.stop(StopReason::Cancelled);
            }
        }
    }

    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| self.committed) {
            recorder.begin_cell(cell);
        }
        let capture = Capture::new(self.limits.clone(), self.stores.artifacts.clone());
        &mut self.capture.insert((cell, capture)).1
    }

    fn on_cell_end(&mut self, cell: usize, end: CellEnd) {
        let last = incomplete_cell_error(&end);
        let time = end.duration;
        let (status, count) = match end.result {
            Ok(outcome) => {
                let status = match outcome.ending {
                    Ending::Completed | Ending::Exited { code: 0, .. } => CellStatus::Completed,
                    Ending::Raised(traceback) => CellStatus::Raised(traceback),
                    Ending::Exited { code, .. } => CellStatus::Raised(exit_error(code)),
                    Ending::Stopped { reason, .. } => CellStatus::Stopped(reason),
                };
                (status, outcome.execution_count)
            }
            Err(KernelError::StoppedEarly { reason }) => (CellStatus::Stopped(reason), None),
            Err(error) => (CellStatus::Kernel(Arc::new(error)), None),
        };
        let captured = self.capture.take().map(|(_, mut capture)| {
            if let Some(last) = last {
                // The error belongs to the cell, wherever its output went before.
                capture.push(Event::ShowOnly(false));
                capture.push(Event::Raised(last));
            }
            capture.finish()
        });
        self.with(|outcome| {
            // Without a kernel no cell ran.
            if let (CellStatus::Kernel(error), None) = (&status, &outcome.kernel) {
                outcome.refused = Some(RunError::Kernel(Arc::clone(error)));
            }
            if let Some(report) = outcome.cells.get_mut(cell) {
                report.status = status;
                report.count = count;
                report.time = time;
                report.text = captured
                    .as_ref()
                    .map(|captured| captured.text.clone())
                    .unwrap_or_default();
            }
        });
        if let (Some(captured), Some(recorder), true) = (captured, &self.recorder, self.committed) {
            recorder.finish_cell(FinishedCell {
                cell,
                execution_count: count,
                outputs: captured.outputs,
                finished_at: SystemTime::now(),
            });
        }
    }

    fn on_late_text(&mut self, cell: usize, text: &LateText) {
        match (&mut self.capture, &self.recorder) {
            (Some((own, capture)), _) if *own == cell => capture.push(Event::Text {
                stream: text.stream,
                bytes: &text.bytes,
            }),
            (_, Some(recorder)) => recorder.append_late(cell, text.stream, &text.bytes),
            (_, None) => {}
        }
    }

    fn on_notice(&mut self, _notice: SessionNotice) {}

    fn on_shutdown(&mut self, _farewell: &ShutdownReport) {}

    fn on_done(mut self: Box<Self>) {
        if let Some(recorder) = self.recorder.take() {
            let record = recorder.finish();
            self.with(|outcome| outcome.record = record);
        }
    }
}
