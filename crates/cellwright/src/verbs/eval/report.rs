//! What `eval` answers: how each cell ended and what it produced.

use std::time::Duration;

use cellwright_kernel::process::Exit;
use cellwright_kernel::{Description, Ending, Farewell, KernelError, Outcome, State, StopReason};
use cellwright_output::{Captured, Json, Outputs, Traceback};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::failure::{Failure, Kind};
use crate::live::{Extent, Trouble};
use crate::notice::{self, Told};
use crate::screen::Screen;

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct EvalAnswer {
    pub(super) status: Status,
    session: Option<String>,
    kernel: Option<KernelReport>,
    pub(super) cells: Vec<CellReport>,
    died: Option<Died>,
    notices: Vec<Told>,
    /// What to tell a person at the end.
    #[serde(skip)]
    trouble: Option<Failure>,
    /// Why what was to be seen did not arrive.
    #[serde(skip)]
    unseen: Option<Trouble>,
}

/// How a cell, or all of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Error,
    Timeout,
    Cancelled,
    Died,
    Skipped,
}

impl Status {
    fn exit_code(self) -> u8 {
        match self {
            Self::Ok | Self::Skipped => 0,
            Self::Error => 1,
            Self::Died => 2,
            Self::Timeout => 124,
            Self::Cancelled => 130,
        }
    }

    fn of_stop(reason: StopReason) -> Self {
        match reason {
            StopReason::TimedOut(_) => Self::Timeout,
            StopReason::Cancelled | StopReason::ShuttingDown => Self::Cancelled,
        }
    }
}

/// The kernel that ran them.
#[derive(Debug, Serialize)]
pub(super) struct KernelReport {
    backend: &'static str,
    name: String,
    pid: Option<u32>,
    interpreter: Option<String>,
    version: Option<String>,
    generation: u32,
}

impl KernelReport {
    pub(super) fn of(description: &Description) -> Self {
        Self {
            backend: description.backend,
            name: description.name.clone(),
            pid: description.pid,
            interpreter: description
                .interpreter
                .as_ref()
                .map(|path| path.display().to_string()),
            version: description.version.clone(),
            generation: 1,
        }
    }
}

/// One cell.
#[derive(Debug, Serialize)]
pub(super) struct CellReport {
    pub(super) index: usize,
    id: Option<String>,
    title: Option<String>,
    status: Status,
    execution_count: Option<u32>,
    duration_ms: f64,
    text: String,
    truncated: Option<Truncated>,
    images: Vec<ImageReport>,
    json: Vec<Value>,
    events: Vec<Value>,
    error: Option<ErrorReport>,
    #[serde(serialize_with = "outputs_or_none")]
    outputs: Option<Outputs>,
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
struct ErrorReport {
    ename: String,
    evalue: String,
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
    pub(super) fn new(index: usize, time: Duration) -> Self {
        Self {
            index,
            id: None,
            title: None,
            status: Status::Skipped,
            execution_count: None,
            // Microseconds are as far as it makes sense.
            duration_ms: (time.as_secs_f64() * 1e6).round() / 1e3,
            text: String::new(),
            truncated: None,
            images: Vec::new(),
            json: Vec::new(),
            events: Vec::new(),
            error: None,
            outputs: None,
        }
    }
}

impl EvalAnswer {
    pub(super) fn new(kernel: KernelReport) -> Self {
        Self {
            status: Status::Ok,
            session: None,
            kernel: Some(kernel),
            cells: Vec::new(),
            died: None,
            notices: Vec::new(),
            trouble: None,
            unseen: None,
        }
    }

    /// Nothing ran: the stop came before the kernel was ready.
    pub(super) fn never_started(cells: usize, reason: StopReason) -> Self {
        let mut answer = Self {
            status: Status::of_stop(reason),
            session: None,
            kernel: None,
            cells: Vec::new(),
            died: None,
            notices: Vec::new(),
            trouble: Some(Failure::stopped(reason, None)),
            unseen: None,
        };
        for index in 0..cells {
            answer.skipped(index);
        }
        answer
    }

    /// Takes what could surprise.
    pub(super) fn tell(&mut self, notices: Vec<Told>) {
        self.notices.extend(notices);
    }

    /// A cell that was not run, because one before it failed.
    pub(super) fn skipped(&mut self, index: usize) {
        self.cells.push(CellReport::new(index, Duration::ZERO));
    }

    /// Takes how a cell ended.
    pub(super) fn take(&mut self, cell: &mut CellReport, result: Result<Outcome, KernelError>) {
        let status = match result {
            Ok(outcome) => {
                cell.execution_count = outcome.count;
                self.take_ending(cell, outcome.ending)
            }
            Err(KernelError::StoppedEarly { reason }) => {
                self.trouble = Some(Failure::stopped(reason, None));
                Status::of_stop(reason)
            }
            Err(error) => {
                let (exit, stderr) = match &error {
                    KernelError::Died { exit, stderr, .. } => (Some(*exit), stderr.clone()),
                    _ => (None, String::new()),
                };
                self.died = Some(Died {
                    signal: exit.and_then(|exit| exit.signal),
                    exit_code: exit.and_then(|exit| exit.code),
                    stderr_tail: stderr,
                });
                let trouble = Failure::in_cell(error, cell.index);
                self.notices.push(Told {
                    kind: "kernel_died",
                    text: trouble.message.clone(),
                });
                self.trouble = Some(trouble);
                Status::Died
            }
        };
        cell.status = status;
        self.status = status;
    }

    fn take_ending(&mut self, cell: &mut CellReport, ending: Ending) -> Status {
        match ending {
            Ending::Completed | Ending::Exited { code: 0 } => Status::Ok,
            Ending::Raised(traceback) => {
                cell.error = Some(traceback.into());
                Status::Error
            }
            Ending::Exited { code } => {
                cell.error = Some(ErrorReport {
                    ename: "SystemExit".to_owned(),
                    evalue: code.to_string(),
                    traceback: Vec::new(),
                });
                self.trouble = Some(Failure::new(
                    Kind::Raised,
                    format!("The code asked to exit with code {code}"),
                ));
                Status::Error
            }
            Ending::Stopped { reason, state } => {
                let trouble = Failure::stopped(reason, Some(state));
                let kind = match state {
                    State::Kept => "interrupted",
                    State::Lost => "kernel_killed",
                };
                self.notices.push(Told {
                    kind,
                    text: trouble.message.clone(),
                });
                self.trouble = Some(trouble);
                Status::of_stop(reason)
            }
        }
    }

    /// Takes how the kernel ended.
    pub(super) fn farewell(&mut self, farewell: &Farewell) {
        let text = match farewell.exit {
            _ if self.status != Status::Ok => return,
            _ if !farewell.in_peace => {
                "the code's threads or exit handlers were still running when time was up; they were \
                 ended"
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
        let kind = "unpeaceful_end";
        self.notices.push(Told { kind, text });
    }

    /// Takes why what was to be seen did not arrive.
    pub(super) fn unseen(&mut self, trouble: Option<&Trouble>) {
        if let Some(trouble) = trouble {
            self.unseen = Some(trouble.clone());
        }
    }

    /// Takes what a cell produced.
    pub(super) fn finish(&mut self, mut cell: CellReport, captured: Captured) {
        self.notices.extend(notice::tell_output(&captured.notices));
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
        cell.outputs = Some(captured.outputs);
        if let Some(prompt) = captured.stdin_refused {
            self.notices.push(Told {
                kind: "input_refused",
                text: format!(
                    "cell {} asked for input ({prompt:?}) and got none; --answer TEXT answers",
                    cell.index
                ),
            });
        }
        self.cells.push(cell);
    }

    /// Shows what has not been seen yet; says the exit code.
    pub(crate) fn show(&self, screen: &Screen, extent: Extent) -> Result<u8, Failure> {
        let code = self.status.exit_code();
        if screen.json {
            return match screen.document(self) {
                Err(failure) if !failure.is_silent() => Err(failure),
                _ => Ok(code),
            };
        }
        match &self.unseen {
            // Whoever has read enough stops the code, which is no failure of it.
            Some(Trouble::Closed) if self.status == Status::Cancelled => return Ok(0),
            Some(Trouble::Unwritable(why)) if self.status == Status::Ok => {
                let message = "The code ran to its end, but its output could not be written";
                let mut failure = Failure::new(Kind::BadFile, message);
                failure.causes.push(why.clone());
                return Err(failure.hint("do not repeat it without need: it has done its work"));
            }
            _ => {}
        }
        // What stopped a cell is said once, as an error; what is missing in the outputs for a notebook
        // matters to those who get them.
        let said = [
            "interrupted",
            "kernel_killed",
            "kernel_died",
            "streams_shortened",
        ];
        let notices: Vec<Told> = self
            .notices
            .iter()
            .filter(|notice| !said.contains(&notice.kind))
            // Everything was shown.
            .filter(|notice| extent != Extent::Full || notice.kind != "output_cut")
            .cloned()
            .collect();
        screen.notices(&notices);
        if let Some(trouble) = &self.trouble {
            screen.report(trouble);
        }
        Ok(code)
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
fn outputs_or_none<S: Serializer>(
    outputs: &Option<Outputs>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match outputs {
        Some(outputs) => outputs.serialize(serializer),
        None => serializer.collect_seq([(); 0]),
    }
}
