//! [`ExecutionReport`]: how each cell ended and what it produced.

use std::time::Duration;

use cellwright_kernel::process::Exit;
use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{
    Description, Ending, KernelError, KernelState, ShutdownReport, StopReason,
};
use cellwright_output::{BoundedJson, Captured, Outputs, Traceback};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::cell_event::{CellEvent, CellRef};
use super::notebook::{CellOutputs, NotebookReport};
use super::request::{CellRequest, ExecutionRequest, OnError};
use super::summary::ExecutionSummary;
use crate::failure::{Failure, Kind};
use crate::notice::{self, NoticeKind, UserNotice};

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct ExecutionReport {
    pub(crate) status: ExecutionStatus,
    /// The run it is, if it can be asked for again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) kernel: Option<KernelReport>,
    pub(crate) cells: Vec<CellReport>,
    died: Option<DeathReport>,
    /// The notebook that the cells are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notebook: Option<NotebookReport>,
    pub(crate) notices: Vec<UserNotice>,
    /// How long it took until a kernel was ready.
    #[serde(skip)]
    pub(crate) kernel_ready: Option<Duration>,
    /// How long all of it took.
    #[serde(skip)]
    pub(super) elapsed: Duration,
    /// What to tell a person at the end.
    #[serde(skip)]
    pub(super) failure: Option<Failure>,
    /// How the first cell ended that was not meant to end so.
    #[serde(skip)]
    first_failure: Option<ExecutionStatus>,
    /// Whether nothing was allowed to run.
    #[serde(skip)]
    not_started: bool,
    /// Whether everything that is put out goes to a notebook.
    #[serde(skip)]
    in_notebook: bool,
}

/// How a cell, or all of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutionStatus {
    Pending,
    Running,
    Ok,
    Error,
    Timeout,
    Cancelled,
    Died,
    NotStarted,
    Skipped,
}

impl ExecutionStatus {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Ok | Self::Skipped | Self::Pending | Self::Running => 0,
            Self::Error => 1,
            Self::Died | Self::NotStarted => 2,
            Self::Timeout => 124,
            Self::Cancelled => 130,
        }
    }

    /// Whether it has come to its end.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    fn from_stop_reason(reason: StopReason) -> Self {
        match reason {
            StopReason::TimedOut(_) => Self::Timeout,
            StopReason::Cancelled
            | StopReason::ShuttingDown
            | StopReason::Reset
            | StopReason::MemoryLimit { .. } => Self::Cancelled,
        }
    }
}

/// The kernel that ran them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KernelReport {
    backend: &'static str,
    name: String,
    pid: Option<u32>,
    interpreter: Option<String>,
    language: Option<String>,
    version: Option<String>,
    pub(crate) generation: u32,
}

impl KernelReport {
    pub(crate) fn new(description: &Description, generation: u32) -> Self {
        Self {
            backend: description.backend,
            name: description.name.clone(),
            pid: description.pid,
            interpreter: description
                .interpreter
                .as_ref()
                .map(|path| path.display().to_string()),
            language: description.language.clone(),
            version: description.version.clone(),
            generation,
        }
    }
}

/// One cell.
#[derive(Debug, Serialize)]
pub(crate) struct CellReport {
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) status: ExecutionStatus,
    pub(crate) execution_count: Option<u32>,
    pub(crate) duration_ms: f64,
    pub(crate) text: String,
    truncated: Option<Truncation>,
    images: Vec<ImageReport>,
    json: Vec<Value>,
    events: Vec<Value>,
    pub(crate) error: Option<ErrorReport>,
    #[serde(serialize_with = "serialize_outputs")]
    pub(crate) outputs: Option<CellOutputs>,
    /// What it means if it fails.
    #[serde(skip)]
    on_error: OnError,
    /// The number of the kernel that ran it.
    #[serde(skip)]
    pub(crate) generation: u32,
}

#[derive(Debug, Serialize)]
struct Truncation {
    total_bytes: u64,
    total_lines: u64,
    shown_bytes: u64,
    shown_lines: u64,
    artifact: Option<String>,
}

#[derive(Debug, Serialize)]
struct ImageReport {
    mime: String,
    bytes: u64,
    width: Option<u32>,
    height: Option<u32>,
    artifact: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ErrorReport {
    pub(crate) ename: String,
    pub(crate) evalue: String,
    traceback: Vec<String>,
}

impl From<Traceback> for ErrorReport {
    fn from(traceback: Traceback) -> Self {
        Self {
            ename: traceback.name,
            evalue: traceback.value,
            traceback: traceback.lines,
        }
    }
}

#[derive(Debug, Serialize)]
struct DeathReport {
    signal: Option<i32>,
    exit_code: Option<i32>,
    stderr_tail: String,
}

impl CellReport {
    fn new(index: usize, id: Option<String>, wish: &CellRequest) -> Self {
        Self {
            index,
            id,
            title: wish.title.clone(),
            status: ExecutionStatus::Pending,
            execution_count: None,
            duration_ms: 0.0,
            text: String::new(),
            truncated: None,
            images: Vec::new(),
            json: Vec::new(),
            events: Vec::new(),
            error: None,
            outputs: None,
            on_error: wish.on_error,
            generation: 0,
        }
    }

    /// Whether it ended as it was meant to: also with an exception, if one was expected.
    pub(crate) fn ended_as_expected(&self) -> bool {
        self.status == ExecutionStatus::Ok
            || (self.status == ExecutionStatus::Error && self.on_error == OnError::Expected)
    }

    /// What people call it.
    fn describe(&self) -> String {
        match &self.id {
            Some(id) => format!("Cell {} (id {id})", self.index),
            None => format!("Cell {}", self.index),
        }
    }
}

impl ExecutionReport {
    pub(crate) fn new(session: Option<String>, wish: &ExecutionRequest) -> Self {
        let planned = wish.notebook.as_ref().map(|order| &order.cells);
        let cell = |(at, cell): (usize, &CellRequest)| match planned.and_then(|cells| cells.get(at))
        {
            Some(planned) => CellReport::new(planned.index, planned.id.clone(), cell),
            None => CellReport::new(at, None, cell),
        };
        Self {
            status: ExecutionStatus::Pending,
            run: None,
            session,
            kernel: None,
            cells: wish.cells.iter().enumerate().map(cell).collect(),
            died: None,
            notebook: None,
            notices: Vec::new(),
            kernel_ready: None,
            elapsed: Duration::ZERO,
            failure: None,
            first_failure: None,
            not_started: false,
            in_notebook: wish.notebook.is_some(),
        }
    }

    /// Nothing may run, for this reason.
    pub(super) fn record_not_started(&mut self, failure: Failure) {
        self.not_started = true;
        self.status = ExecutionStatus::NotStarted;
        self.failure = Some(failure);
    }

    /// What the cells put out did not arrive. If one of them failed, that comes first.
    pub(super) fn record_save_failure(&mut self, failure: Failure) {
        match &mut self.failure {
            None => self.failure = Some(failure),
            Some(trouble) => {
                trouble.causes.push(failure.message);
                trouble.causes.extend(failure.causes);
                trouble.hints.extend(failure.hints);
            }
        }
    }

    /// Takes how a cell ended.
    pub(crate) fn record_end(&mut self, index: usize, end: CellEnd) {
        let refused = self.not_started;
        let Some(cell) = self.cells.get_mut(index).filter(|_| !refused) else {
            return;
        };
        // A cell of a notebook that was not begun is as it was.
        let untouched = self.in_notebook && cell.status == ExecutionStatus::Pending;
        // Microseconds are as far as it makes sense.
        cell.duration_ms = (end.duration.as_secs_f64() * 1e6).round() / 1e3;
        let status = match end.result {
            Ok(outcome) => {
                cell.execution_count = outcome.execution_count;
                self.record_ending(index, outcome.ending)
            }
            Err(KernelError::StoppedEarly { reason }) => {
                self.record_stop_before(index, reason);
                ExecutionStatus::from_stop_reason(reason)
            }
            Err(error @ (KernelError::Died { .. } | KernelError::Protocol { .. })) => {
                let (exit, stderr) = match &error {
                    KernelError::Died { exit, stderr, .. } => (Some(*exit), stderr.clone()),
                    _ => (None, String::new()),
                };
                self.died = Some(DeathReport {
                    signal: exit.and_then(|exit| exit.signal),
                    exit_code: exit.and_then(|exit| exit.code),
                    stderr_tail: stderr,
                });
                let trouble = Failure::from_cell_error(error, self.cells[index].index);
                self.notices.push(UserNotice::new(
                    NoticeKind::KernelDied,
                    trouble.message.clone(),
                ));
                self.failure = Some(trouble);
                ExecutionStatus::Died
            }
            // There was no kernel that could have run it, or is none any more.
            Err(error) => {
                self.failure = Some(Failure::from(error));
                if self.any_cell_ran() {
                    ExecutionStatus::Died
                } else {
                    ExecutionStatus::NotStarted
                }
            }
        };
        self.cells[index].status = if untouched {
            ExecutionStatus::Skipped
        } else {
            status
        };
        if !self.cells[index].ended_as_expected() {
            // What ended everything is what a caller must know; of others the first.
            let last = !matches!(status, ExecutionStatus::Error | ExecutionStatus::Timeout);
            if last {
                self.first_failure = Some(status);
            }
            self.first_failure.get_or_insert(status);
        }
        self.status = self.first_failure.unwrap_or(ExecutionStatus::Ok);
    }

    /// Everything was stopped before a cell had begun.
    fn record_stop_before(&mut self, index: usize, reason: StopReason) {
        let cell = self.in_notebook.then(|| self.cells[index].index);
        let failure = Failure::from_stop(reason, None, cell);
        // A cell that failed and was allowed to is not what ended it.
        let raised = |trouble: &Failure| matches!(trouble.kind, Kind::Raised);
        if self.failure.as_ref().is_none_or(raised) {
            self.failure = Some(failure);
        }
    }

    /// Whether a cell has run.
    fn any_cell_ran(&self) -> bool {
        let ran = |cell: &CellReport| {
            cell.status.is_final()
                && !matches!(
                    cell.status,
                    ExecutionStatus::Skipped | ExecutionStatus::NotStarted
                )
        };
        self.cells.iter().any(ran)
    }

    /// Nothing more will come: what did not run never will.
    pub(crate) fn close(&mut self) {
        let pending = |cell: &&mut CellReport| !cell.status.is_final();
        for cell in self.cells.iter_mut().filter(pending) {
            cell.status = ExecutionStatus::Skipped;
        }
        if !self.status.is_final() {
            self.status = self.first_failure.unwrap_or(ExecutionStatus::Ok);
        }
    }

    /// Whoever ran it came to grief.
    pub(crate) fn record_abandoned(&mut self) {
        if !self.status.is_final() {
            self.status = ExecutionStatus::NotStarted;
            self.failure = Some(Failure::new(
                Kind::Bug,
                "This is a bug in cellwright: the session broke",
            ));
        }
        self.close();
    }

    /// Why not even a kernel could be had, if so.
    pub(crate) fn take_start_failure(&mut self) -> Option<Failure> {
        if self.status == ExecutionStatus::NotStarted {
            return self.failure.take();
        }
        None
    }

    fn record_ending(&mut self, index: usize, ending: Ending) -> ExecutionStatus {
        let cell = &mut self.cells[index];
        match ending {
            Ending::Completed | Ending::Exited { code: 0, .. } => ExecutionStatus::Ok,
            Ending::Raised(traceback) => {
                let message = format!("{} raised {}", cell.describe(), traceback.name);
                cell.error = Some(traceback.into());
                let failing = cell.on_error;
                // Of a single cell the traceback says enough.
                if self.cells.len() > 1 && failing != OnError::Expected {
                    let after = self.cells.len() - index - 1;
                    let failure = Failure::new(Kind::Raised, message);
                    self.failure.get_or_insert(match (after, failing) {
                        (0, _) | (_, OnError::Continue) => failure,
                        (1, _) => failure.hint("the cell after it was skipped"),
                        _ => failure.hint(format!("the {after} cells after it were skipped")),
                    });
                }
                ExecutionStatus::Error
            }
            Ending::Exited { code, .. } => {
                cell.error = Some(ErrorReport {
                    ename: "SystemExit".to_owned(),
                    evalue: code.to_string(),
                    traceback: Vec::new(),
                });
                self.failure.get_or_insert(Failure::new(
                    Kind::Raised,
                    format!("The code asked to exit with code {code}"),
                ));
                ExecutionStatus::Error
            }
            Ending::Stopped { reason, state } => {
                let cell = self.in_notebook.then_some(cell.index);
                let trouble = Failure::from_stop(reason, Some(state), cell);
                let kind = match state {
                    KernelState::Preserved => NoticeKind::Interrupted,
                    KernelState::Lost => NoticeKind::KernelKilled,
                };
                self.notices
                    .push(UserNotice::new(kind, trouble.message.clone()));
                self.failure = Some(trouble);
                ExecutionStatus::from_stop_reason(reason)
            }
        }
    }

    /// Takes how the kernel ended.
    pub(crate) fn record_shutdown(&mut self, farewell: &ShutdownReport) {
        let text = match farewell.exit {
            _ if self.status.is_final() && self.status != ExecutionStatus::Ok => return,
            _ if !farewell.graceful => {
                "the kernel did not end in time after the last cell; it was ended, with whatever threads \
                 or exit handlers still ran"
                    .to_owned()
            }
            Some(Exit { code: Some(0), .. }) | None => return,
            Some(Exit { signal: Some(signal), .. }) => {
                format!("after the last cell the interpreter was ended by signal {signal}")
            }
            Some(Exit { code, .. }) => format!(
                "after the last cell the interpreter ended with exit code {}",
                code.unwrap_or(-1)
            ),
        };
        self.notices
            .push(UserNotice::new(NoticeKind::UncleanShutdown, text));
    }

    /// Takes what a cell produced; hands on what is for a notebook.
    pub(crate) fn record_output(&mut self, index: usize, captured: Captured) -> Outputs {
        let in_file = self.in_notebook;
        let missing = |notice: &&UserNotice| {
            let in_notebook = [NoticeKind::StreamsShortened, NoticeKind::DisplaysMoved];
            !in_file || !in_notebook.contains(&notice.kind)
        };
        // What is too much to be told is in the notebook.
        let told = notice::describe_output(&captured.notices);
        self.notices.extend(told.iter().filter(missing).cloned());
        let Some(cell) = self.cells.get_mut(index) else {
            return captured.outputs;
        };
        cell.truncated = captured.truncation.map(|cut| Truncation {
            total_bytes: cut.total.bytes,
            total_lines: cut.total.lines,
            shown_bytes: cut.shown.bytes,
            shown_lines: cut.shown.lines,
            artifact: cut.artifact.map(|id| id.to_string()),
        });
        cell.images = captured
            .images
            .iter()
            .map(|image| ImageReport {
                mime: image.mime.clone(),
                bytes: image.bytes,
                width: image.width,
                height: image.height,
                artifact: image.artifact.map(|id| id.to_string()),
            })
            .collect();
        cell.text = captured.text;
        cell.json = captured.json.into_iter().map(json_value).collect();
        cell.events = captured.status;
        let index = cell.index;
        if let Some(prompt) = captured.stdin_refused {
            self.notices.push(UserNotice::new(
                NoticeKind::InputRefused,
                format!(
                    "cell {index} asked for input (`{}`) and got none",
                    prompt.escape_debug()
                ),
            ));
        }
        captured.outputs
    }

    /// Which cell of a notebook it is.
    pub(super) fn cell_ref(&self, at: usize) -> Option<CellRef> {
        let cell = self.cells.get(at)?;
        Some(CellRef {
            index: cell.index,
            id: cell.id.clone(),
            number: at + 1,
            total: self.cells.len(),
        })
    }

    /// How a cell of a notebook ended, for those who look on.
    pub(super) fn end_event(&self, at: usize) -> Option<CellEvent> {
        let cell = self.cells.get(at)?;
        let error = cell.error.as_ref();
        Some(CellEvent::End {
            cell: self.cell_ref(at)?,
            status: cell.status,
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            error: error.map(|error| (error.ename.clone(), error.evalue.clone())),
            expected: cell.on_error == OnError::Expected,
        })
    }

    /// What a person is told at the end.
    pub(crate) fn summarize(&self) -> ExecutionSummary {
        ExecutionSummary {
            status: self.status,
            notices: self.notices.clone(),
            failure: self.failure.clone(),
            kernel_ready: self.kernel_ready,
            summary: self.summary(),
        }
    }
}

fn json_value(json: BoundedJson) -> Value {
    match json {
        BoundedJson::Whole(value) => value,
        BoundedJson::Truncated { text, .. } => Value::String(text),
    }
}

/// A cell that did not run has none.
#[expect(clippy::ref_option, reason = "that is how serde calls it")]
fn serialize_outputs<S: Serializer>(
    outputs: &Option<CellOutputs>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match outputs {
        Some(outputs) => outputs.serialize(serializer),
        None => serializer.collect_seq([(); 0]),
    }
}
