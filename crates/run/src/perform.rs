//! A whole notebook in one call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cellwright_kernel::session::{
    Audience, Cell, CellEnd, Failing, Job, Launch, Notice, Policy, SessionId, Then, run_once,
};
use cellwright_kernel::{
    Description, Ending, Farewell, KernelError, LateText, Request, Stop, StopReason, Stopper,
};
use cellwright_notebook::Cells;
use cellwright_output::{Capture, Event, Limits, Sink, Traceback};

use crate::choice::{Choice, ChoiceError};
use crate::edits::Edit;
use crate::order::{LookError, Order, Planned, edit, look};
use crate::recorder::{CommitError, Ended, Places, Recorder, Written};
use crate::unfinished::unfinished;
use crate::{MAY_RAISE, SKIPPED};

/// How a notebook is to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which cells; all of them unless something is said.
    pub choice: Choice,
    /// Edits that are made before the first cell runs, or not at all.
    pub edits: Vec<Edit>,
    /// Where the notebook goes with its outputs, if not to where it was.
    pub output: Option<PathBuf>,
    /// How long each cell may take.
    pub timeout: Option<Duration>,
    /// How long all of them may take together.
    pub total_timeout: Option<Duration>,
    /// Whether the next cell follows one that failed.
    pub keep_going: bool,
    /// Whether cells are told in the file when they ran.
    pub timing: bool,
    /// Where things are kept that do not go into the notebook.
    pub places: Places,
    /// How much of what a cell says is told in the report.
    pub limits: Limits,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// The cells that were to run, in order.
    pub cells: Vec<CellReport>,
    /// The kernel that ran them.
    pub kernel: Option<Description>,
    /// What became of the file.
    pub written: Written,
}

/// What came of a cell.
#[derive(Debug)]
pub struct CellReport {
    /// Which it is.
    pub cell: Planned,
    /// How it ended.
    pub status: CellStatus,
    /// Its number.
    pub count: Option<u32>,
    /// What it said, as a model would read it.
    pub text: String,
    /// How long it ran.
    pub time: Duration,
}

/// How a cell ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CellStatus {
    /// It did not run.
    NotRun,
    /// To its last line.
    Completed,
    /// With an exception.
    Raised(Traceback),
    /// It was stopped.
    Stopped(StopReason),
    /// With its kernel, or without one.
    Kernel(Arc<KernelError>),
}

/// Why nothing ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The notebook cannot be read, or the edits do not fit it.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The cells that are meant are not there.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The notebook was changed, or could not be edited, when the kernel was ready.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// There is no kernel.
    #[error(transparent)]
    Kernel(Arc<KernelError>),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Report {
    /// Whether every cell came to its end, and everything is in the file.
    pub fn is_well(&self) -> bool {
        let completed = |cell: &CellReport| matches!(cell.status, CellStatus::Completed);
        let written = &self.written;
        let kept = written.failure.is_none() && written.conflicts.is_empty() && !written.broken;
        kept && self.cells.iter().all(completed)
    }
}

/// Runs the cells of a notebook on a kernel of its own and writes what they put out back into the file.
/// `stop` ends it early: what ran until then is in the file.
pub async fn run(
    path: &Path,
    options: Options,
    launch: Arc<dyn Launch>,
    (stopper, stop): (Stopper, Stop),
) -> Result<Report, RunError> {
    let seen = look(path, &options.edits)?;
    let listing = &seen.listing;
    let runs = |index: &usize| {
        !listing.source(*index).trim().is_empty() && !listing.has_tag(*index, SKIPPED)
    };
    let cells: Vec<Planned> = options
        .choice
        .resolve(listing)?
        .into_iter()
        .filter(runs)
        .map(|index| Planned::of(listing, index))
        .collect();
    let order = Order {
        path: std::path::absolute(path)?,
        output: options
            .output
            .as_deref()
            .map(std::path::absolute)
            .transpose()?,
        revision: seen.revision.clone(),
        edits: options.edits.clone(),
        cells: cells.clone(),
        timing: options.timing,
        kernel_named: false,
        largest: None,
    };
    if cells.is_empty() {
        return Ok(Report {
            cells: Vec::new(),
            kernel: None,
            written: edit(order, options.places)?,
        });
    }
    let cell = |planned: &Planned| Cell {
        request: Request::new(planned.source.clone()),
        timeout: options.timeout,
        reset: false,
        failing: if options.keep_going || listing.has_tag(planned.index, MAY_RAISE) {
            Failing::GoesOn
        } else {
            Failing::Ends
        },
    };
    let outcome = Arc::new(Mutex::new(Outcome {
        cells: cells.iter().map(CellReport::of).collect(),
        kernel: None,
        refused: None,
        written: Written::default(),
    }));
    let stage = Stage {
        recorder: Some(Recorder::start(order, options.places.clone())?),
        capture: None,
        committed: false,
        stopper: stopper.clone(),
        limits: options.limits,
        places: options.places,
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
        stopper,
        then: Then::End,
        audience: Box::new(stage),
    };
    run_once(launch, Policy::default(), job).await;
    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(refused) = outcome.refused.take() {
        return Err(refused);
    }
    Ok(Report {
        cells: std::mem::take(&mut outcome.cells),
        kernel: outcome.kernel.take(),
        written: std::mem::take(&mut outcome.written),
    })
}

struct Outcome {
    cells: Vec<CellReport>,
    kernel: Option<Description>,
    refused: Option<RunError>,
    written: Written,
}

/// Is told what happens, and has it recorded.
struct Stage {
    recorder: Option<Recorder>,
    /// The cell that runs.
    capture: Option<(usize, Capture)>,
    committed: bool,
    stopper: Stopper,
    limits: Limits,
    places: Places,
    outcome: Arc<Mutex<Outcome>>,
}

impl CellReport {
    fn of(cell: &Planned) -> Self {
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
        look(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Audience for Stage {
    fn accepted(&mut self, _session: SessionId) {}

    fn kernel(&mut self, description: &Description, _generation: u32) {
        self.with(|outcome| outcome.kernel = Some(description.clone()));
        let Some(recorder) = self.recorder.as_ref().filter(|_| !self.committed) else {
            return;
        };
        match recorder.commit() {
            Ok(()) => {
                recorder.kernel(description);
                self.committed = true;
            }
            Err(error) => {
                self.with(|outcome| outcome.refused = Some(error.into()));
                self.stopper.stop(StopReason::Cancelled);
            }
        }
    }

    fn begin(&mut self, cell: usize) -> &mut dyn Sink {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| self.committed) {
            recorder.begin(cell);
        }
        let capture = Capture::new(self.limits.clone(), self.places.artifacts.clone());
        &mut self.capture.insert((cell, capture)).1
    }

    fn end(&mut self, cell: usize, end: CellEnd) {
        let last = unfinished(&end);
        let time = end.time;
        let (status, count) = match end.result {
            Ok(outcome) => {
                let status = match outcome.ending {
                    Ending::Completed | Ending::Exited { code: 0 } => CellStatus::Completed,
                    Ending::Raised(traceback) => CellStatus::Raised(traceback),
                    Ending::Exited { .. } => CellStatus::Raised(last.clone().unwrap_or_default()),
                    Ending::Stopped { reason, .. } => CellStatus::Stopped(reason),
                };
                (status, outcome.count)
            }
            Err(KernelError::StoppedEarly { reason }) => (CellStatus::Stopped(reason), None),
            Err(error) => (CellStatus::Kernel(Arc::new(error)), None),
        };
        let captured = self.capture.take().map(|(_, mut capture)| {
            if let Some(last) = last {
                // Wherever it was: this is said in the cell.
                capture.push(Event::Aside(false));
                capture.push(Event::Raised(last));
            }
            capture.finish()
        });
        self.with(|outcome| {
            // What never had a kernel never ran.
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
            recorder.end(Ended {
                cell,
                count,
                outputs: captured.outputs,
                at: SystemTime::now(),
            });
        }
    }

    fn late(&mut self, cell: usize, text: &LateText) {
        match (&mut self.capture, &self.recorder) {
            (Some((own, capture)), _) if *own == cell => capture.push(Event::Text {
                stream: text.stream,
                bytes: &text.bytes,
            }),
            (_, Some(recorder)) => recorder.late(cell, text.stream, &text.bytes),
            (_, None) => {}
        }
    }

    fn tell(&mut self, _notice: Notice) {}

    fn farewell(&mut self, _farewell: &Farewell) {}

    fn done(mut self: Box<Self>) {
        if let Some(recorder) = self.recorder.take() {
            let written = recorder.finish();
            self.with(|outcome| outcome.written = written);
        }
    }
}
