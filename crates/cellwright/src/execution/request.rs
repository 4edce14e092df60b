//! [`ExecutionRequest`]: the cells to run, with their limits and inputs.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::session::{self, AfterJob, Job, JobCell, JobObserver};
use cellwright_kernel::{CannedAnswers, InputProvider, Request, Stdin, StopHandle, StopSignal};
use cellwright_output::Limits;
use cellwright_run::RunSpec;
use serde::{Deserialize, Serialize};

/// The most characters of a cell that stand for it where there is little room.
const LABEL_MAX: usize = 60;

/// Cells to run one after the other on one kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ExecutionRequest {
    pub(crate) cells: Vec<CellRequest>,
    /// What `input()` gets, one after the other over all cells.
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// How much of what they say is shown.
    #[serde(default)]
    pub(crate) inline_limits: InlineLimits,
    /// How long all of them may take together.
    #[serde(default)]
    pub(crate) total_timeout: Option<Duration>,
    /// The notebook that they are from, if what they put out is to be written there.
    #[serde(default)]
    pub(crate) notebook: Option<RunSpec>,
}

/// How much of an output is shown, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InlineLimits {
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
    pub(crate) fn limits(self) -> Limits {
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
pub(crate) struct CellRequest {
    pub(crate) code: String,
    pub(crate) title: Option<String>,
    /// `None`: as long as it takes.
    pub(crate) timeout: Option<Duration>,
    /// Whether it begins with a fresh kernel.
    pub(crate) reset: bool,
    /// The script that the code is.
    pub(crate) file: Option<PathBuf>,
    /// What it means if it fails.
    pub(crate) on_error: OnError,
}

/// What it means if a cell fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnError {
    /// Everything ends.
    #[default]
    Stop,
    /// The next one follows, and in the end it is told.
    Continue,
    /// Nothing: it was expected.
    Expected,
}

/// What the texts of all cells of a notebook may take in memory, in bytes; of each of them this many at
/// the least.
const ALL_TEXT_MAX: usize = 8 * 1024 * 1024;
const CELL_TEXT_MIN: usize = 2 * 1024;

/// What a cell of a notebook holds in memory until it ends, in bytes. The rest waits on disk.
const CELL_MEMORY_LIMIT: usize = 1024 * 1024;

/// Outputs of such a cell: whoever writes on both streams by turns makes one of every line. More of them are
/// counted and told.
const OUTPUTS_MAX: usize = 100_000;

impl ExecutionRequest {
    /// How much of what a cell says is held.
    pub(crate) fn limits(&self) -> Limits {
        let limits = self.inline_limits.limits();
        if self.notebook.is_none() {
            return limits;
        }
        let most = (ALL_TEXT_MAX / self.cells.len().max(1)).max(CELL_TEXT_MIN);
        Limits {
            inline_bytes: limits.inline_bytes.min(most),
            head_bytes: limits.head_bytes.min(most / 2),
            stream_bytes: CELL_MEMORY_LIMIT,
            display_bytes: CELL_MEMORY_LIMIT,
            outputs: OUTPUTS_MAX,
            ..limits
        }
    }

    /// What it is in a few words.
    pub(crate) fn label(&self) -> String {
        if let Some(order) = &self.notebook {
            let name = order.path.file_name().unwrap_or_default();
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

    /// The job that a session can run. Whatever it asks beyond the answers goes to the asker.
    pub(crate) fn job(
        &self,
        owner: &str,
        (stopper, stop): (StopHandle, StopSignal),
        audience: Box<dyn JobObserver>,
        asker: Option<InputProvider>,
    ) -> Job {
        let answers: CannedAnswers = self.answers.iter().cloned().collect();
        let stdin = Stdin::Answers(match asker {
            Some(asker) => answers.with_provider(asker),
            None => answers,
        });
        let cell = |wish: &CellRequest| JobCell {
            request: Request {
                stdin: stdin.clone(),
                script: wish.file.clone(),
                ..Request::new(wish.code.clone())
            },
            timeout: wish.timeout,
            reset: wish.reset,
            on_error: match wish.on_error {
                OnError::Stop => session::OnError::Stop,
                OnError::Continue | OnError::Expected => session::OnError::Continue,
            },
        };
        let stop = match self.total_timeout {
            Some(total) => stop.with_timeout(total),
            None => stop,
        };
        Job {
            cells: self.cells.iter().map(cell).collect(),
            owner: owner.to_owned(),
            label: self.label(),
            stop_handle: stopper,
            stop,
            after: AfterJob::KeepKernel,
            observer: audience,
        }
    }
}
