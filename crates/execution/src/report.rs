//! [`ExecutionReport`]: how each cell ended and what it produced.

mod cell_report;

use std::ops::Range;
use std::time::{Duration, SystemTime};

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_kernel::{Description, StopReason};
use cellwright_output::Traceback;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::cell_report::{CellDetails, CellOutputs, CellReport};
use super::duration::format_duration;

/// The result of an execution. Serialized, it is complete: a client of the host receives the same report as the
/// process that ran the cells. [`super::ReportDocument`] is what `--json` prints of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecutionReport {
    /// How the execution ended.
    pub status: ExecutionStatus,
    /// Id of the run, if a client can request the result again.
    pub run: Option<String>,
    /// Name of the session; `None` for a kernel that ended with the execution.
    pub session: Option<String>,
    /// The kernel that ran the cells.
    pub kernel: Option<KernelReport>,
    /// The cells in the order of the request.
    pub cells: Vec<CellReport>,
    /// How the kernel died, if it did.
    pub died: Option<DeathReport>,
    /// Path of the notebook that the cells are from.
    pub path: Option<String>,
    /// The saved notebook, if the cells are from one.
    pub notebook: Option<NotebookReport>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// Start of the execution.
    pub started: SystemTime,
    /// Time until the kernel was ready.
    pub kernel_ready: Option<Duration>,
    /// Time until everything was finished.
    pub elapsed: Duration,
    /// Why the execution failed. `None` although `status` is an error if the traceback of the only cell is enough.
    pub failure: Option<Failure>,
}

/// How a cell, or the whole execution, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Not started yet.
    Pending,
    /// Not finished yet.
    Running,
    /// Finished.
    Ok,
    /// Raised an exception.
    Error,
    /// Exceeded its time limit.
    Timeout,
    /// Was cancelled.
    Cancelled,
    /// The kernel died.
    Died,
    /// Could not be started.
    NotStarted,
    /// Not run, because an earlier cell failed.
    Skipped,
}

impl ExecutionStatus {
    /// The exit code of a command.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok | Self::Skipped | Self::Pending | Self::Running => 0,
            Self::Error => 1,
            Self::Died | Self::NotStarted => 2,
            Self::Timeout => 124,
            Self::Cancelled => 130,
        }
    }

    /// The name in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Died => "died",
            Self::NotStarted => "not_started",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the status does not change any more.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    pub(super) fn from_stop_reason(reason: StopReason) -> Self {
        match reason {
            StopReason::TimedOut { .. } => Self::Timeout,
            StopReason::Cancelled
            | StopReason::ShuttingDown
            | StopReason::Reset
            | StopReason::MemoryLimit { .. } => Self::Cancelled,
        }
    }
}

/// The kernel that ran the cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelReport {
    /// Name of the backend.
    pub backend: String,
    /// Name of the kernelspec, or of the runner.
    pub name: String,
    /// Name or URL of the Jupyter server that the kernel is on; `null` for a kernel on this machine without a server.
    pub server: Option<String>,
    /// Id of the kernel on its server, for `--existing`.
    pub kernel_id: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Path of the interpreter.
    pub interpreter: Option<String>,
    /// Programming language.
    pub language: Option<String>,
    /// Version of the language.
    pub version: Option<String>,
    /// Number of kernels that the session has had.
    pub generation: u32,
    /// Whether the kernel was started for this execution.
    pub is_new: bool,
}

impl KernelReport {
    /// Describes a kernel.
    pub fn new(description: &Description, generation: u32, is_new: bool) -> Self {
        Self {
            backend: description.backend.to_owned(),
            name: description.name.clone(),
            server: description.server.clone(),
            kernel_id: description.kernel_id.clone(),
            pid: description.pid,
            interpreter: description
                .interpreter
                .as_ref()
                .map(|path| path.display().to_string()),
            language: description.language.clone(),
            version: description.version.clone(),
            generation,
            is_new,
        }
    }

    /// Kernel, backend, server and interpreter, such as `python3 (runner), /usr/bin/python3`.
    pub fn describe(&self) -> String {
        let mut text = format!("{} ({})", self.name, self.backend);
        if let Some(server) = &self.server {
            text.push_str(" on ");
            text.push_str(server);
        }
        if let Some(interpreter) = &self.interpreter {
            text.push_str(", ");
            text.push_str(interpreter);
        }
        text
    }
}

/// How much of the output is in the text of a cell, and where all of it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TruncationReport {
    /// Size of the whole output in bytes.
    pub total_bytes: u64,
    /// Number of lines of the whole output.
    pub total_lines: u64,
    /// Size of the text in bytes.
    pub shown_bytes: u64,
    /// Number of lines of the text.
    pub shown_lines: u64,
    /// Size in bytes of the part that one line of the text stands for.
    pub elided_bytes: u64,
    /// Number of lines of that part.
    pub elided_lines: u64,
    /// The artifact with the whole output.
    pub artifact: Option<String>,
}

/// An image that a cell displayed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImageReport {
    /// MIME type.
    pub mime: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Width in pixels.
    pub width: Option<u32>,
    /// Height in pixels.
    pub height: Option<u32>,
    /// The artifact with the image.
    pub artifact: Option<String>,
    /// Where the text of its display is in the text of the cell, in bytes.
    #[schemars(with = "Option<TextRange>")]
    pub text_range: Option<Range<usize>>,
}

/// A part of a text.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the schema of a range")]
struct TextRange {
    /// Offset of the first byte.
    start: usize,
    /// Offset after the last byte.
    end: usize,
}

/// An exception.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// Name of the exception.
    pub ename: String,
    /// Message of the exception.
    pub evalue: String,
    /// Lines of the traceback.
    pub traceback: Vec<String>,
    /// What the caller can do about it.
    #[serde(default)]
    pub hints: Vec<String>,
}

impl From<Traceback> for ErrorReport {
    fn from(traceback: Traceback) -> Self {
        Self {
            ename: traceback.name,
            evalue: traceback.value,
            traceback: traceback.lines,
            hints: Vec::new(),
        }
    }
}

/// How the kernel died.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeathReport {
    /// Signal that ended the kernel.
    pub signal: Option<i32>,
    /// Exit code of the kernel.
    pub exit_code: Option<i32>,
    /// The end of what it wrote to stderr.
    pub stderr_tail: String,
}

/// The notebook after the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotebookReport {
    /// Path of the written file.
    pub path: String,
    /// Whether the file was written.
    pub changed: bool,
    /// Revision after the run.
    pub revision: Option<String>,
    /// Whether another writer changed the file during the run.
    pub merged: bool,
    /// Cells whose outputs could not be saved.
    pub conflicts: Vec<ConflictReport>,
    /// The artifact with the outputs that could not be saved.
    pub artifact: Option<String>,
}

/// A cell whose outputs could not be saved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConflictReport {
    /// Index of the cell.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// What another writer did to it.
    pub why: ConflictReason,
}

/// What another writer did to the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    /// It changed the source.
    Changed,
    /// It removed the cell.
    Gone,
}

impl ConflictReason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }
}

impl ExecutionReport {
    /// The exit code of the execution, or of saving its results if the code ended well.
    pub fn exit_code(&self) -> u8 {
        match &self.failure {
            Some(failure)
                if matches!(
                    self.status,
                    ExecutionStatus::Ok | ExecutionStatus::NotStarted
                ) =>
            {
                failure.exit_code()
            }
            _ => self.status.exit_code(),
        }
    }

    /// Why no cell was started, if so.
    pub fn start_failure(&self) -> Option<&Failure> {
        let not_started = self.status == ExecutionStatus::NotStarted;
        self.failure.as_ref().filter(|_| not_started)
    }

    /// The first cell that did not end as intended, and why.
    pub fn failed_cell(&self) -> Option<(&CellReport, &ErrorReport)> {
        let failed = |cell: &&CellReport| !cell.ended_as_expected();
        let mut cells = self.cells.iter().filter(failed);
        cells.find_map(|cell| Some((cell, cell.error.as_deref()?)))
    }

    /// Whether there is a notice of this kind.
    pub fn has_notice(&self, kind: NoticeKind) -> bool {
        self.notices.iter().any(|notice| notice.kind == kind)
    }

    /// The report without the outputs of its cells, for a client that does not need them.
    #[must_use]
    pub fn without_outputs(&self) -> Self {
        let mut report = self.clone();
        for cell in &mut report.cells {
            cell.set_outputs(None);
        }
        report
    }

    /// A summary of the run of a notebook, in a few lines. It names `kernel`.
    pub fn summary(&self, kernel: Option<&KernelReport>) -> Option<String> {
        let notebook = self.notebook.as_ref()?;
        let (mut ok, mut failed, mut skipped) = (0, 0, 0);
        for cell in &self.cells {
            match cell.status {
                _ if cell.ended_as_expected() => ok += 1,
                ExecutionStatus::Skipped
                | ExecutionStatus::NotStarted
                | ExecutionStatus::Pending => skipped += 1,
                _ => failed += 1,
            }
        }
        let all = ok + failed + skipped;
        let plural = if all == 1 { "" } else { "s" };
        let mut place = format!("in {}", format_duration(self.elapsed));
        if let Some(kernel) = kernel {
            place.push_str(" on ");
            place.push_str(&kernel.describe());
        }
        let mut lines = if ok == all {
            format!("ran {all} cell{plural} {place}")
        } else {
            let ran = ok + failed;
            format!("ran {ran} of {all} cell{plural} {place}: {ok} ok")
        };
        if failed > 0 {
            lines.push_str(&format!(", {failed} failed"));
        }
        if skipped > 0 {
            lines.push_str(&format!(", {skipped} not run"));
        }
        if let Some(revision) = &notebook.revision {
            let verb = if notebook.changed {
                "written"
            } else {
                "unchanged"
            };
            // The name of a file can contain line ends.
            let path = notebook.path.replace(char::is_control, "\u{fffd}");
            lines.push_str(&format!("\n{verb}: {path}\nrevision: {revision}"));
        }
        Some(lines)
    }
}
