//! [`ExecutionRequest`]: the cells to run, with their limits and inputs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::session::{self, AfterJob, Job, JobCell, JobCells, JobObserver};
use cellwright_kernel::{
    InputAnswers, InputProvider, Request, Stdin, StopHandle, StopSignal, TimeLimit,
};
use cellwright_output::Limits;
use serde::{Deserialize, Serialize};

use crate::RAISES_EXCEPTION_TAG;
use crate::error_hints::HintContext;
use crate::listing::Listing;
use crate::run_spec::{PlannedCell, RunSpec};
use crate::shared_list;

/// Number of characters of a cell in its label.
const LABEL_MAX: usize = 60;

/// Number of characters of the first line of a cell in its events.
const FIRST_LINE_MAX: usize = 200;

/// Cells to run one after the other on one kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExecutionRequest {
    /// The cells in order. Shared, because a notebook may have very many.
    #[serde(with = "shared_list")]
    pub cells: Arc<[CellRequest]>,
    /// Replies to `input()`, in order, for all cells together.
    #[serde(default)]
    pub answers: Vec<String>,
    /// Limits of the text of each cell in the report.
    #[serde(default)]
    pub inline_limits: InlineLimits,
    /// Time limit of all cells together.
    #[serde(default)]
    pub total_timeout: Option<Duration>,
    /// The notebook in which the outputs are saved, if the cells are from one.
    #[serde(default)]
    pub notebook: Option<RunSpec>,
    /// Environment variables to set before the first cell, also in a kernel that runs already.
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// What hints on exceptions depend on.
    #[serde(default)]
    pub hint_context: HintContext,
}

/// Limits of the text of a cell, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct InlineLimits {
    inline: usize,
    head: usize,
    line: usize,
}

impl From<&Limits> for InlineLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            inline: limits.inline_bytes,
            head: limits.head_bytes,
            line: limits.line_bytes,
        }
    }
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl InlineLimits {
    /// The limits of a capture.
    pub fn limits(self) -> Limits {
        Limits {
            inline_bytes: self.inline,
            head_bytes: self.head,
            line_bytes: self.line,
            ..Limits::default()
        }
    }
}

/// One cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CellRequest {
    /// The source to run.
    pub code: String,
    /// A title for reports.
    pub title: Option<String>,
    /// Time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Whether the cell starts with a fresh kernel.
    pub reset: bool,
    /// The script from which the code was read.
    pub file: Option<PathBuf>,
    /// What an exception means for the execution.
    pub on_error: OnError,
}

impl CellRequest {
    /// The first line that is not blank, at most [`FIRST_LINE_MAX`] characters.
    pub(crate) fn first_line(&self) -> String {
        let mut lines = self.code.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
        line.chars().take(FIRST_LINE_MAX).collect()
    }
}

/// What happens when a cell raises an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The execution ends with an error.
    #[default]
    Stop,
    /// The next cell runs; the execution ends with an error.
    Continue,
    /// The next cell runs; the exception is not an error.
    Expected,
}

/// Size in bytes of the texts of all cells of a notebook in memory, with a minimum for each of them.
const ALL_TEXT_MAX: usize = 8 * 1024 * 1024;
const CELL_TEXT_MIN: usize = 2 * 1024;

/// Size in bytes of the outputs of a running cell of a notebook in memory. The rest waits on disk.
const CELL_MEMORY_LIMIT: usize = 1024 * 1024;

/// Number of outputs of a cell of a notebook: code that writes to both streams alternately creates one output per
/// line. Further outputs are counted in a notice.
const OUTPUTS_MAX: usize = 100_000;

impl ExecutionRequest {
    /// The request that runs the planned cells of a notebook. A cell that is tagged `raises-exception` may raise one.
    pub fn for_notebook(
        spec: RunSpec,
        listing: &Listing,
        timeout: Option<Duration>,
        keep_going: bool,
    ) -> Self {
        let cell = |planned: &PlannedCell| CellRequest {
            code: planned.source.clone(),
            timeout,
            on_error: if listing.has_tag(planned.index, RAISES_EXCEPTION_TAG) {
                OnError::Expected
            } else if keep_going {
                OnError::Continue
            } else {
                OnError::Stop
            },
            ..CellRequest::default()
        };
        Self {
            cells: spec.cells.iter().map(cell).collect(),
            notebook: Some(spec),
            ..Self::default()
        }
    }

    /// The limits of each cell.
    pub fn limits(&self) -> Limits {
        let limits = self.inline_limits.limits();
        if self.notebook.is_none() {
            return limits;
        }
        let text = (ALL_TEXT_MAX / self.cells.len().max(1)).max(CELL_TEXT_MIN);
        Limits {
            inline_bytes: limits.inline_bytes.min(text),
            head_bytes: limits.head_bytes.min(text / 2),
            stream_bytes: CELL_MEMORY_LIMIT,
            display_bytes: CELL_MEMORY_LIMIT,
            outputs: OUTPUTS_MAX,
            ..limits
        }
    }

    /// A short label: the name of the notebook, or the first line of the code.
    pub fn label(&self) -> String {
        if let Some(spec) = &self.notebook {
            let name = spec.path.display_path().file_name().unwrap_or_default();
            return name.to_string_lossy().into_owned();
        }
        let Some(cell) = self.cells.first() else {
            return String::new();
        };
        let line = cell.title.as_deref().unwrap_or_else(|| {
            let mut lines = cell.code.lines().map(str::trim);
            lines.find(|line| !line.is_empty()).unwrap_or_default()
        });
        let mut label: String = line.chars().take(LABEL_MAX).collect();
        if label.len() < line.len() {
            label.push('…');
        }
        if self.cells.len() > 1 {
            label.push_str(&format!(" (and {} more)", self.cells.len() - 1));
        }
        label
    }

    /// The job for a session. `input` receives the input requests for which there is no answer.
    pub fn job(
        &self,
        owner: &str,
        (stop_handle, stop): (StopHandle, StopSignal),
        observer: Box<dyn JobObserver>,
        input: Option<InputProvider>,
    ) -> Job {
        let answers: InputAnswers = self.answers.iter().cloned().collect();
        let stdin = Stdin::Answers(match input {
            Some(provider) => answers.with_provider(provider),
            None => answers,
        });
        let variable = |(name, value): &(String, String)| (name.clone(), Some(value.clone()));
        let env: Vec<(String, Option<String>)> = self.env.iter().map(variable).collect();
        let requests = Arc::clone(&self.cells);
        let create = move |at: usize| {
            let cell: &CellRequest = &requests[at];
            JobCell {
                request: Request {
                    stdin: stdin.clone(),
                    script: cell.file.clone(),
                    env: if at == 0 { env.clone() } else { Vec::new() },
                    ..Request::new(cell.code.clone())
                },
                timeout: cell.timeout,
                reset: cell.reset,
                on_error: match cell.on_error {
                    OnError::Stop => session::OnError::Stop,
                    OnError::Continue | OnError::Expected => session::OnError::Continue,
                },
            }
        };
        let resets = self.cells.iter().enumerate();
        let resets = resets.filter(|(_, cell)| cell.reset).map(|(at, _)| at);
        let cells = JobCells::new(self.cells.len(), resets, create);
        let stop = match self.total_timeout {
            Some(total) => stop.with_limit(TimeLimit::Total, total),
            None => stop,
        };
        // A call of `eval` waits for a busy session as long as its cell may take; a notebook waits its turn.
        let first = self.cells.first().filter(|_| self.notebook.is_none());
        Job {
            queue_timeout: first.and_then(|cell| cell.timeout),
            cells,
            owner: owner.to_owned(),
            label: self.label(),
            stop_handle,
            stop,
            after: AfterJob::KeepKernel,
            observer,
        }
    }
}
