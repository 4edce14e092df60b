//! [`ExecutionRequest`]: the cells to run, with their limits and inputs.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::session::{self, AfterJob, Job, JobCell, JobCells, JobObserver};
use cellwright_kernel::{
    InputAnswers, InputProvider, Request, Stdin, StopHandle, StopSignal, TimeLimit,
};
use cellwright_output::Limits;
use serde::{Deserialize, Serialize};

use crate::cell_request::{CellRequest, CellRequests, OnError};
use crate::error_hints::HintContext;
use crate::run_spec::RunSpec;
use crate::shared_list;

/// Number of characters of a cell in its label.
const LABEL_MAX: usize = 60;

/// Cells to run one after the other on one kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExecutionRequest {
    /// The cells in order; none if the cells are from a notebook.
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
    /// The notebook with the cells, in which the outputs are saved.
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

/// Size in bytes of the texts of all cells of a notebook in memory, with a minimum for each of them.
const ALL_TEXT_MAX: usize = 8 * 1024 * 1024;
const CELL_TEXT_MIN: usize = 2 * 1024;

/// Size in bytes of the outputs of a running cell of a notebook in memory. The rest waits on disk.
const CELL_MEMORY_LIMIT: usize = 1024 * 1024;

/// Number of outputs of a cell of a notebook: code that writes to both streams alternately creates one output per
/// line. Further outputs are counted in a notice.
const OUTPUTS_MAX: usize = 100_000;

impl ExecutionRequest {
    /// The request that runs the planned cells of a notebook.
    pub fn for_notebook(spec: RunSpec) -> Self {
        Self {
            notebook: Some(spec),
            ..Self::default()
        }
    }

    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        match &self.notebook {
            Some(spec) => spec.cells.len(),
            None => self.cells.len(),
        }
    }

    /// The cells, also those of a notebook.
    pub fn cell_requests(&self) -> CellRequests {
        match &self.notebook {
            Some(spec) => CellRequests::Notebook {
                cells: spec.cells.clone(),
                timeout: spec.timeout,
                on_error: spec.on_error,
            },
            None => CellRequests::Code(Arc::clone(&self.cells)),
        }
    }

    /// The limits of each cell.
    pub fn limits(&self) -> Limits {
        let limits = self.inline_limits.limits();
        if self.notebook.is_none() {
            return limits;
        }
        let text = (ALL_TEXT_MAX / self.cell_count().max(1)).max(CELL_TEXT_MIN);
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
        let requests = self.cell_requests();
        let create = move |at: usize| {
            let cell = requests.get(at).unwrap_or_default();
            JobCell {
                request: Request {
                    stdin: stdin.clone(),
                    script: cell.file,
                    env: if at == 0 { env.clone() } else { Vec::new() },
                    ..Request::new(cell.code)
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
        let cells = JobCells::new(self.cell_count(), resets, create);
        let stop = match self.total_timeout {
            Some(total) => stop.with_limit(TimeLimit::Total, total),
            None => stop,
        };
        // A call of `eval` waits for a busy session as long as its cell may take; a notebook waits its turn.
        let first = self.cells.first();
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
