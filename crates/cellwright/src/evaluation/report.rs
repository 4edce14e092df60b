//! What came of an evaluation: how each cell ended and what it produced.

use std::time::Duration;

use cellwright_kernel::process::Exit;
use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{Description, Ending, Farewell, KernelError, State, StopReason};
use cellwright_output::{Captured, Json, Outputs, Traceback};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::mark::{Mark, Which};
use super::notebook::{NotebookReport, Put};
use super::verdict::Verdict;
use super::wish::{CellWish, Failing, Wish};
use crate::failure::{Failure, Kind};
use crate::notice::{self, Told};

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct EvalAnswer {
    pub(crate) status: Status,
    /// The run it is, if it can be asked for again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) kernel: Option<KernelReport>,
    pub(crate) cells: Vec<CellReport>,
    died: Option<Died>,
    /// The notebook that the cells are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notebook: Option<NotebookReport>,
    pub(crate) notices: Vec<Told>,
    /// How long it took until a kernel was ready.
    #[serde(skip)]
    pub(crate) ready: Option<Duration>,
    /// How long all of it took.
    #[serde(skip)]
    pub(super) took: Duration,
    /// What to tell a person at the end.
    #[serde(skip)]
    pub(super) trouble: Option<Failure>,
    /// How the first cell ended that was not meant to end so.
    #[serde(skip)]
    failed: Option<Status>,
    /// Whether nothing was allowed to run.
    #[serde(skip)]
    refused: bool,
    /// Whether everything that is put out goes to a notebook.
    #[serde(skip)]
    in_notebook: bool,
}

/// How a cell, or all of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Pending,
    Running,
    Ok,
    Error,
    Timeout,
    Cancelled,
    Died,
    Refused,
    Skipped,
}

impl Status {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Ok | Self::Skipped | Self::Pending | Self::Running => 0,
            Self::Error => 1,
            Self::Died | Self::Refused => 2,
            Self::Timeout => 124,
            Self::Cancelled => 130,
        }
    }

    /// Whether it has come to its end.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    fn of_stop(reason: StopReason) -> Self {
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
    pub(crate) fn of(description: &Description, generation: u32) -> Self {
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
    pub(crate) status: Status,
    pub(crate) execution_count: Option<u32>,
    pub(crate) duration_ms: f64,
    pub(crate) text: String,
    truncated: Option<Truncated>,
    images: Vec<ImageReport>,
    json: Vec<Value>,
    events: Vec<Value>,
    pub(crate) error: Option<ErrorReport>,
    #[serde(serialize_with = "outputs_or_none")]
    pub(crate) outputs: Option<Put>,
    /// What it means if it fails.
    #[serde(skip)]
    failing: Failing,
    /// The number of the kernel that ran it.
    #[serde(skip)]
    pub(crate) generation: u32,
}

#[derive(Debug, Serialize)]
struct Truncated {
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
struct Died {
    signal: Option<i32>,
    exit_code: Option<i32>,
    stderr_tail: String,
}

impl CellReport {
    fn new(index: usize, id: Option<String>, wish: &CellWish) -> Self {
        Self {
            index,
            id,
            title: wish.title.clone(),
            status: Status::Pending,
            execution_count: None,
            duration_ms: 0.0,
            text: String::new(),
            truncated: None,
            images: Vec::new(),
            json: Vec::new(),
            events: Vec::new(),
            error: None,
            outputs: None,
            failing: wish.failing,
            generation: 0,
        }
    }

    /// Whether it ended as it was meant to: also with an exception, if one was expected.
    pub(crate) fn is_well(&self) -> bool {
        self.status == Status::Ok
            || (self.status == Status::Error && self.failing == Failing::Expected)
    }

    /// What people call it.
    fn name(&self) -> String {
        match &self.id {
            Some(id) => format!("Cell {} (id {id})", self.index),
            None => format!("Cell {}", self.index),
        }
    }
}

impl EvalAnswer {
    pub(crate) fn new(session: Option<String>, wish: &Wish) -> Self {
        let planned = wish.order.as_ref().map(|order| &order.cells);
        let cell = |(at, cell): (usize, &CellWish)| match planned.and_then(|cells| cells.get(at)) {
            Some(planned) => CellReport::new(planned.index, planned.id.clone(), cell),
            None => CellReport::new(at, None, cell),
        };
        Self {
            status: Status::Pending,
            run: None,
            session,
            kernel: None,
            cells: wish.cells.iter().enumerate().map(cell).collect(),
            died: None,
            notebook: None,
            notices: Vec::new(),
            ready: None,
            took: Duration::ZERO,
            trouble: None,
            failed: None,
            refused: false,
            in_notebook: wish.order.is_some(),
        }
    }

    /// Nothing may run, for this reason.
    pub(super) fn refuse(&mut self, failure: Failure) {
        self.refused = true;
        self.status = Status::Refused;
        self.trouble = Some(failure);
    }

    /// What the cells put out did not arrive. If one of them failed, that comes first.
    pub(super) fn unwritten(&mut self, failure: Failure) {
        match &mut self.trouble {
            None => self.trouble = Some(failure),
            Some(trouble) => {
                trouble.causes.push(failure.message);
                trouble.causes.extend(failure.causes);
                trouble.hints.extend(failure.hints);
            }
        }
    }

    /// Takes how a cell ended.
    pub(crate) fn take(&mut self, index: usize, end: CellEnd) {
        let refused = self.refused;
        let Some(cell) = self.cells.get_mut(index).filter(|_| !refused) else {
            return;
        };
        // A cell of a notebook that was not begun is as it was.
        let untouched = self.in_notebook && cell.status == Status::Pending;
        // Microseconds are as far as it makes sense.
        cell.duration_ms = (end.time.as_secs_f64() * 1e6).round() / 1e3;
        let status = match end.result {
            Ok(outcome) => {
                cell.execution_count = outcome.count;
                self.take_ending(index, outcome.ending)
            }
            Err(KernelError::StoppedEarly { reason }) => {
                self.stopped_before(index, reason);
                Status::of_stop(reason)
            }
            Err(error @ (KernelError::Died { .. } | KernelError::Protocol { .. })) => {
                let (exit, stderr) = match &error {
                    KernelError::Died { exit, stderr, .. } => (Some(*exit), stderr.clone()),
                    _ => (None, String::new()),
                };
                self.died = Some(Died {
                    signal: exit.and_then(|exit| exit.signal),
                    exit_code: exit.and_then(|exit| exit.code),
                    stderr_tail: stderr,
                });
                let trouble = Failure::in_cell(error, self.cells[index].index);
                self.notices
                    .push(Told::new("kernel_died", trouble.message.clone()));
                self.trouble = Some(trouble);
                Status::Died
            }
            // There was no kernel that could have run it, or is none any more.
            Err(error) => {
                self.trouble = Some(Failure::from(error));
                if self.has_run() {
                    Status::Died
                } else {
                    Status::Refused
                }
            }
        };
        self.cells[index].status = if untouched { Status::Skipped } else { status };
        if !self.cells[index].is_well() {
            // What ended everything is what a caller must know; of others the first.
            let last = !matches!(status, Status::Error | Status::Timeout);
            if last {
                self.failed = Some(status);
            }
            self.failed.get_or_insert(status);
        }
        self.status = self.failed.unwrap_or(Status::Ok);
    }

    /// Everything was stopped before a cell had begun.
    fn stopped_before(&mut self, index: usize, reason: StopReason) {
        let mut failure = Failure::stopped(reason, None);
        if self.in_notebook {
            let cell = format!("cell {}", self.cells[index].index);
            failure.message = failure.message.replace("the code", &cell);
        }
        // A cell that failed and was allowed to is not what ended it.
        let raised = |trouble: &Failure| matches!(trouble.kind, Kind::Raised);
        if self.trouble.as_ref().is_none_or(raised) {
            self.trouble = Some(failure);
        }
    }

    /// Whether a cell has run.
    fn has_run(&self) -> bool {
        let ran = |cell: &CellReport| {
            cell.status.is_final() && !matches!(cell.status, Status::Skipped | Status::Refused)
        };
        self.cells.iter().any(ran)
    }

    /// Nothing more will come: what did not run never will.
    pub(crate) fn close(&mut self) {
        let pending = |cell: &&mut CellReport| !cell.status.is_final();
        for cell in self.cells.iter_mut().filter(pending) {
            cell.status = Status::Skipped;
        }
        if !self.status.is_final() {
            self.status = self.failed.unwrap_or(Status::Ok);
        }
    }

    /// Whoever ran it came to grief.
    pub(crate) fn abandoned(&mut self) {
        if !self.status.is_final() {
            self.status = Status::Refused;
            self.trouble = Some(Failure::new(
                Kind::Bug,
                "This is a bug in cellwright: the session broke",
            ));
        }
        self.close();
    }

    /// Why not even a kernel could be had, if so.
    pub(crate) fn take_refusal(&mut self) -> Option<Failure> {
        if self.status == Status::Refused {
            return self.trouble.take();
        }
        None
    }

    fn take_ending(&mut self, index: usize, ending: Ending) -> Status {
        let cell = &mut self.cells[index];
        match ending {
            Ending::Completed | Ending::Exited { code: 0 } => Status::Ok,
            Ending::Raised(traceback) => {
                let message = format!("{} raised {}", cell.name(), traceback.name);
                cell.error = Some(traceback.into());
                let failing = cell.failing;
                // Of a single cell the traceback says enough.
                if self.cells.len() > 1 && failing != Failing::Expected {
                    let after = self.cells.len() - index - 1;
                    let failure = Failure::new(Kind::Raised, message);
                    self.trouble.get_or_insert(match (after, failing) {
                        (0, _) | (_, Failing::Counts) => failure,
                        (1, _) => failure.hint("the cell after it was skipped"),
                        _ => failure.hint(format!("the {after} cells after it were skipped")),
                    });
                }
                Status::Error
            }
            Ending::Exited { code } => {
                cell.error = Some(ErrorReport {
                    ename: "SystemExit".to_owned(),
                    evalue: code.to_string(),
                    traceback: Vec::new(),
                });
                self.trouble.get_or_insert(Failure::new(
                    Kind::Raised,
                    format!("The code asked to exit with code {code}"),
                ));
                Status::Error
            }
            Ending::Stopped { reason, state } => {
                let mut trouble = Failure::stopped(reason, Some(state));
                if self.in_notebook {
                    let place = format!(" in cell {};", cell.index);
                    trouble.message = trouble.message.replacen(';', &place, 1);
                }
                let kind = match state {
                    State::Kept => "interrupted",
                    State::Lost => "kernel_killed",
                };
                self.notices.push(Told::new(kind, trouble.message.clone()));
                self.trouble = Some(trouble);
                Status::of_stop(reason)
            }
        }
    }

    /// Takes how the kernel ended.
    pub(crate) fn farewell(&mut self, farewell: &Farewell) {
        let text = match farewell.exit {
            _ if self.status.is_final() && self.status != Status::Ok => return,
            _ if !farewell.in_peace => {
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
        self.notices.push(Told::new("unpeaceful_end", text));
    }

    /// Takes what a cell produced; hands on what is for a notebook.
    pub(crate) fn finish(&mut self, index: usize, captured: Captured) -> Outputs {
        let in_file = self.in_notebook;
        let missing = |notice: &&Told| {
            !in_file || !["streams_shortened", "displays_moved"].contains(&notice.kind.as_ref())
        };
        // What is too much to be told is in the notebook.
        let told = notice::tell_output(&captured.notices);
        self.notices.extend(told.iter().filter(missing).cloned());
        let Some(cell) = self.cells.get_mut(index) else {
            return captured.outputs;
        };
        cell.truncated = captured.cut.map(|cut| Truncated {
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
            self.notices.push(Told::new(
                "input_refused",
                format!(
                    "cell {index} asked for input ({prompt:?}) and got none; --answer TEXT answers"
                ),
            ));
        }
        captured.outputs
    }

    /// Which cell of a notebook it is.
    pub(super) fn which(&self, at: usize) -> Option<Which> {
        let cell = self.cells.get(at)?;
        Some(Which {
            index: cell.index,
            id: cell.id.clone(),
            number: at + 1,
            of: self.cells.len(),
        })
    }

    /// How a cell of a notebook ended, for those who look on.
    pub(super) fn end_mark(&self, at: usize) -> Option<Mark> {
        let cell = self.cells.get(at)?;
        let error = cell.error.as_ref();
        Some(Mark::End {
            cell: self.which(at)?,
            status: cell.status,
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            error: error.map(|error| (error.ename.clone(), error.evalue.clone())),
            expected: cell.failing == Failing::Expected,
        })
    }

    /// What a person is told at the end.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            status: self.status,
            notices: self.notices.clone(),
            trouble: self.trouble.clone(),
            ready: self.ready,
            summary: self.summary(),
        }
    }
}

fn json_value(json: Json) -> Value {
    match json {
        Json::Whole(value) => value,
        Json::Cut { text, .. } => Value::String(text),
    }
}

/// A cell that did not run has none.
#[expect(clippy::ref_option, reason = "that is how serde calls it")]
fn outputs_or_none<S: Serializer>(outputs: &Option<Put>, serializer: S) -> Result<S::Ok, S::Error> {
    match outputs {
        Some(outputs) => outputs.serialize(serializer),
        None => serializer.collect_seq([(); 0]),
    }
}
