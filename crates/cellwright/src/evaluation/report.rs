//! What came of an evaluation: how each cell ended and what it produced.

use std::time::Duration;

use cellwright_kernel::process::Exit;
use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{Description, Ending, Farewell, KernelError, State, StopReason};
use cellwright_output::{Captured, Json, Outputs, Traceback};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::failure::{Failure, Kind};
use crate::live::{Extent, Trouble};
use crate::notice::{self, Told};
use crate::screen::Screen;

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
    pub(crate) notices: Vec<Told>,
    /// How long it took until a kernel was ready.
    #[serde(skip)]
    pub(crate) ready: Option<Duration>,
    /// What to tell a person at the end.
    #[serde(skip)]
    trouble: Option<Failure>,
}

/// What a person is told at the end, and the exit code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) status: Status,
    notices: Vec<Told>,
    trouble: Option<Failure>,
    /// How long it took until a kernel was ready.
    #[serde(default)]
    pub(crate) ready: Option<Duration>,
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
    id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) status: Status,
    pub(crate) execution_count: Option<u32>,
    duration_ms: f64,
    pub(crate) text: String,
    truncated: Option<Truncated>,
    images: Vec<ImageReport>,
    json: Vec<Value>,
    events: Vec<Value>,
    error: Option<ErrorReport>,
    #[serde(serialize_with = "outputs_or_none")]
    pub(crate) outputs: Option<Outputs>,
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
    pub(crate) fn new(index: usize, title: Option<String>) -> Self {
        Self {
            index,
            id: None,
            title,
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
        }
    }
}

impl EvalAnswer {
    pub(crate) fn new(session: Option<String>, titles: Vec<Option<String>>) -> Self {
        let cells = titles.into_iter().enumerate();
        Self {
            status: Status::Pending,
            run: None,
            session,
            kernel: None,
            cells: cells
                .map(|(index, title)| CellReport::new(index, title))
                .collect(),
            died: None,
            notices: Vec::new(),
            ready: None,
            trouble: None,
        }
    }

    /// Takes how a cell ended.
    pub(crate) fn take(&mut self, index: usize, end: CellEnd) {
        let Some(cell) = self.cells.get_mut(index) else {
            return;
        };
        // Microseconds are as far as it makes sense.
        cell.duration_ms = (end.time.as_secs_f64() * 1e6).round() / 1e3;
        let status = match end.result {
            Ok(outcome) => {
                cell.execution_count = outcome.count;
                self.take_ending(index, outcome.ending)
            }
            Err(KernelError::StoppedEarly { reason }) => {
                self.trouble = Some(Failure::stopped(reason, None));
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
                let trouble = Failure::in_cell(error, index);
                self.notices
                    .push(Told::new("kernel_died", trouble.message.clone()));
                self.trouble = Some(trouble);
                Status::Died
            }
            // There was no kernel that could have run it.
            Err(error) => {
                self.trouble = Some(Failure::from(error));
                Status::Refused
            }
        };
        self.cells[index].status = status;
        self.status = status;
    }

    /// Nothing more will come: what did not run never will.
    pub(crate) fn close(&mut self) {
        let pending = |cell: &&mut CellReport| !cell.status.is_final();
        for cell in self.cells.iter_mut().filter(pending) {
            cell.status = Status::Skipped;
        }
        if !self.status.is_final() {
            self.status = Status::Ok;
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
                let message = format!("Cell {index} raised {}", traceback.name);
                cell.error = Some(traceback.into());
                // Of a single cell the traceback says enough.
                if self.cells.len() > 1 {
                    let after = self.cells.len() - index - 1;
                    let failure = Failure::new(Kind::Raised, message);
                    self.trouble = Some(match after {
                        0 => failure,
                        1 => failure.hint("the cell after it was skipped"),
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
        self.notices.push(Told::new("unpeaceful_end", text));
    }

    /// Takes what a cell produced.
    pub(crate) fn finish(&mut self, index: usize, captured: Captured) {
        self.notices.extend(notice::tell_output(&captured.notices));
        let Some(cell) = self.cells.get_mut(index) else {
            return;
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
        cell.outputs = Some(captured.outputs);
        if let Some(prompt) = captured.stdin_refused {
            self.notices.push(Told::new(
                "input_refused",
                format!(
                    "cell {index} asked for input ({prompt:?}) and got none; --answer TEXT answers"
                ),
            ));
        }
    }

    /// What a person is told at the end.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            status: self.status,
            notices: self.notices.clone(),
            trouble: self.trouble.clone(),
            ready: self.ready,
        }
    }
}

impl Verdict {
    /// Why there was no kernel for it, if there was none.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let refused = self.status == Status::Refused;
        self.trouble.clone().filter(|_| refused)
    }

    /// Says what is to be said at the end; gives the exit code. `unseen` is why what the code said did
    /// not arrive.
    pub(crate) fn show(
        &self,
        screen: &Screen,
        extent: Extent,
        unseen: Option<&Trouble>,
    ) -> Result<u8, Failure> {
        match unseen {
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
            .filter(|notice| !said.contains(&notice.kind.as_ref()))
            // Everything was shown.
            .filter(|notice| extent != Extent::Full || notice.kind != "output_cut")
            .cloned()
            .collect();
        screen.notices(&notices);
        if let Some(trouble) = &self.trouble {
            screen.report(trouble);
        }
        Ok(self.status.exit_code())
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
