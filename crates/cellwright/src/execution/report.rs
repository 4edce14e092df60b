//! [`ExecutionReport`]: how each cell ended and what it produced.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::{Description, StopReason};
use cellwright_output::{Outputs, Traceback};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::duration::format_duration;
use super::request::OnError;
use crate::failure::Failure;
use crate::notice::{NoticeKind, UserNotice};

/// The result of an execution. Serialized, it is complete: a client of the host receives the same report as the
/// process that ran the cells. [`super::ReportDocument`] is what `--json` prints of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecutionReport {
    pub(crate) status: ExecutionStatus,
    /// Id of the run, if a client can ask for it again.
    pub(crate) run: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) kernel: Option<KernelReport>,
    pub(crate) cells: Vec<CellReport>,
    pub(crate) died: Option<DeathReport>,
    /// The saved notebook, if the cells are from one.
    pub(crate) notebook: Option<NotebookReport>,
    pub(crate) notices: Vec<UserNotice>,
    /// Time until the kernel was ready.
    pub(crate) kernel_ready: Option<Duration>,
    /// Time until everything was finished.
    pub(crate) elapsed: Duration,
    /// Why the execution failed. `None` although `status` is an error if the traceback of the only cell is enough.
    pub(crate) failure: Option<Failure>,
}

/// How a cell, or the whole execution, ended.
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

    /// The name in JSON and in tables.
    pub(crate) fn name(self) -> &'static str {
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
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    pub(super) fn from_stop_reason(reason: StopReason) -> Self {
        match reason {
            StopReason::TimedOut(_) => Self::Timeout,
            StopReason::Cancelled
            | StopReason::ShuttingDown
            | StopReason::Reset
            | StopReason::MemoryLimit { .. } => Self::Cancelled,
        }
    }
}

/// The kernel that ran the cells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KernelReport {
    pub(crate) backend: String,
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    pub(crate) interpreter: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) generation: u32,
}

impl KernelReport {
    pub(crate) fn new(description: &Description, generation: u32) -> Self {
        Self {
            backend: description.backend.to_owned(),
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

/// The result of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellReport {
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) status: ExecutionStatus,
    pub(crate) execution_count: Option<u32>,
    pub(crate) duration_ms: f64,
    /// Output as text, bounded.
    pub(crate) text: String,
    pub(crate) truncated: Option<TruncationReport>,
    pub(crate) images: Vec<ImageReport>,
    /// Displayed JSON values.
    pub(crate) json: Vec<Value>,
    /// Status events.
    pub(crate) events: Vec<Value>,
    pub(crate) error: Option<ErrorReport>,
    /// `None` for a cell that did not run, and in a report without outputs.
    pub(crate) outputs: Option<CellOutputs>,
    pub(crate) on_error: OnError,
    /// Generation of the kernel that ran the cell.
    pub(crate) generation: u32,
}

impl CellReport {
    /// Whether the cell ended as intended: also with an exception, if the request expects one.
    pub(crate) fn ended_as_expected(&self) -> bool {
        self.status == ExecutionStatus::Ok
            || (self.status == ExecutionStatus::Error && self.on_error == OnError::Expected)
    }

    /// Whether the cell was started.
    pub(crate) fn ran(&self) -> bool {
        self.status.is_final()
            && !matches!(
                self.status,
                ExecutionStatus::Skipped | ExecutionStatus::NotStarted
            )
    }
}

/// The nbformat outputs of a cell.
#[derive(Clone, Debug)]
pub(crate) enum CellOutputs {
    /// As captured.
    Captured(Arc<Outputs>),
    /// As JSON: read from the saved notebook, or received from the host.
    Json(Box<RawValue>),
}

impl Serialize for CellOutputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Captured(outputs) => outputs.serialize(serializer),
            Self::Json(outputs) => outputs.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CellOutputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Json)
    }
}

/// How much of the output is in [`CellReport::text`], and where all of it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TruncationReport {
    pub(crate) total_bytes: u64,
    pub(crate) total_lines: u64,
    pub(crate) shown_bytes: u64,
    pub(crate) shown_lines: u64,
    pub(crate) artifact: Option<String>,
}

/// An image that a cell displayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ImageReport {
    pub(crate) mime: String,
    pub(crate) bytes: u64,
    pub(crate) width: Option<u32>,
    pub(crate) height: Option<u32>,
    pub(crate) artifact: Option<String>,
}

/// An exception.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ErrorReport {
    pub(crate) ename: String,
    pub(crate) evalue: String,
    pub(crate) traceback: Vec<String>,
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

/// How the kernel died.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeathReport {
    pub(crate) signal: Option<i32>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) stderr_tail: String,
}

/// The notebook after the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NotebookReport {
    pub(crate) path: String,
    /// Whether the file was written.
    pub(crate) changed: bool,
    pub(crate) revision: Option<String>,
    /// Whether another writer changed the file during the run.
    pub(crate) merged: bool,
    /// Cells whose outputs could not be saved.
    pub(crate) conflicts: Vec<ConflictReport>,
    /// The artifact with the outputs that could not be saved.
    pub(crate) artifact: Option<String>,
}

/// A cell whose outputs could not be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConflictReport {
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    pub(crate) why: ConflictReason,
}

/// What another writer did to the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConflictReason {
    Changed,
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
    pub(crate) fn exit_code(&self) -> u8 {
        match &self.failure {
            Some(failure) if self.status == ExecutionStatus::Ok => failure.exit_code(),
            _ => self.status.exit_code(),
        }
    }

    /// Why no cell was started, if so.
    pub(crate) fn start_failure(&self) -> Option<&Failure> {
        let not_started = self.status == ExecutionStatus::NotStarted;
        self.failure.as_ref().filter(|_| not_started)
    }

    /// Whether there is a notice of this kind.
    pub(crate) fn has_notice(&self, kind: NoticeKind) -> bool {
        self.notices.iter().any(|notice| notice.kind == kind)
    }

    /// The report without the outputs of its cells, for a client that does not need them.
    pub(crate) fn without_outputs(&self) -> Self {
        let mut report = self.clone();
        for cell in &mut report.cells {
            cell.outputs = None;
        }
        report
    }

    /// A summary of the run of a notebook, in a few lines.
    pub(crate) fn summary(&self) -> Option<String> {
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
        let elapsed = format_duration(self.elapsed);
        let mut lines = if ok == all {
            format!("ran {all} cell{plural} in {elapsed}")
        } else {
            let ran = ok + failed;
            format!("ran {ran} of {all} cell{plural} in {elapsed}: {ok} ok")
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
            lines.push_str(&format!(
                "\n{verb}: {}\nrevision: {revision}",
                notebook.path
            ));
        }
        Some(lines)
    }
}
