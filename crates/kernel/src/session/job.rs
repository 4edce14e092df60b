//! [`Job`]: cells that run one after the other without a cell of another job in between, and
//! [`JobObserver`], which receives the results.

use std::fmt;
use std::time::{Duration, SystemTime};

use cellwright_output::{Sink, Stream};

use super::status::SessionId;
use crate::error::KernelError;
use crate::kernel::{Description, KernelNotice, LateText, Outcome, Request, ShutdownReport};
use crate::process::Exit;
use crate::stop::{StopHandle, StopSignal};

/// Cells to run one after the other. The job ends at the first cell that fails, unless that cell
/// allows the job to continue.
pub struct Job {
    /// The cells.
    pub cells: JobCells,
    /// The owner that the job runs for.
    pub owner: String,
    /// A short description of the job, shown to callers that wait for the session.
    pub label: String,
    /// Stops the job; sessions use it, too.
    pub stop_handle: StopHandle,
    /// The signal of `stop_handle`.
    pub stop: StopSignal,
    /// How long the job waits for a busy session.
    pub queue_timeout: Option<Duration>,
    /// What to do with the kernel afterwards.
    pub after: AfterJob,
    /// Receives the results.
    pub observer: Box<dyn JobObserver>,
}

/// The cells of a job. Each is created when it runs, because a notebook may have very many.
pub struct JobCells {
    count: usize,
    /// Whether the first cell needs a fresh kernel, and the positions of the others that do.
    reset_first: bool,
    later_resets: Vec<usize>,
    create: Box<dyn Fn(usize) -> JobCell + Send + Sync>,
}

impl JobCells {
    /// `count` cells, which `create` creates.
    pub fn new(
        count: usize,
        resets: impl IntoIterator<Item = usize>,
        create: impl Fn(usize) -> JobCell + Send + Sync + 'static,
    ) -> Self {
        let mut later_resets: Vec<usize> = resets.into_iter().collect();
        let reset_first = later_resets.contains(&0);
        later_resets.retain(|&cell| cell > 0);
        Self {
            count,
            reset_first,
            later_resets,
            create: Box::new(create),
        }
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Creates the cell at a position.
    pub(super) fn create(&self, at: usize) -> JobCell {
        (self.create)(at)
    }

    /// Whether the cell at a position needs a fresh kernel.
    pub(super) fn needs_reset(&self, at: usize) -> bool {
        if at == 0 {
            return self.reset_first;
        }
        self.later_resets.contains(&at)
    }

    /// The position of the first cell after the first one that needs a fresh kernel.
    pub(super) fn later_reset(&self) -> Option<usize> {
        self.later_resets.first().copied()
    }

    /// Sets whether the first cell needs a fresh kernel.
    pub(super) fn set_reset_first(&mut self, reset: bool) {
        self.reset_first = reset;
    }
}

impl FromIterator<JobCell> for JobCells {
    fn from_iter<I: IntoIterator<Item = JobCell>>(cells: I) -> Self {
        let cells: Vec<JobCell> = cells.into_iter().collect();
        let resets: Vec<usize> = (0..cells.len()).filter(|&at| cells[at].reset).collect();
        Self::new(cells.len(), resets, move |at| cells[at].clone())
    }
}

impl fmt::Debug for JobCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobCells")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// One cell of a job.
#[derive(Clone, Debug)]
pub struct JobCell {
    /// The request to run.
    pub request: Request,
    /// The time limit, from the begin of the cell.
    pub timeout: Option<Duration>,
    /// Whether the cell needs a fresh kernel.
    pub reset: bool,
    /// Whether the job continues if the cell fails.
    pub on_error: OnError,
}

/// What a job does after a cell that failed on a kernel that is still usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The job ends.
    #[default]
    Stop,
    /// The next cell runs. A cancelled cell still ends the job.
    Continue,
}

impl JobCell {
    /// A cell of plain code without a time limit.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            request: Request::new(code),
            timeout: None,
            reset: false,
            on_error: OnError::Stop,
        }
    }
}

/// What happens to the kernel after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterJob {
    /// It waits for the next job.
    KeepKernel,
    /// It is shut down. Its threads may use the time that the last cell has left.
    ShutDown,
}

/// Receives the results of a job. `on_done` is always the last call, and is made exactly once.
pub trait JobObserver: Send {
    /// A session accepted the job. No call precedes this one.
    fn on_accepted(&mut self, _session: SessionId) {}

    /// The following cells run on this kernel. `is_new`: no cell has run on it.
    fn on_kernel(&mut self, description: &Description, generation: u32, is_new: bool);

    /// A cell is about to run. Returns the sink for its output.
    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink;

    /// A cell has ended, or could not begin.
    fn on_cell_end(&mut self, cell: usize, end: CellEnd);

    /// A cell of this job printed text after its end.
    fn on_late_text(&mut self, cell: usize, text: &LateText);

    /// A notice for the caller.
    fn on_notice(&mut self, notice: SessionNotice);

    /// The kernel was shut down after the job.
    fn on_shutdown(&mut self, report: &ShutdownReport);

    /// The job is finished.
    fn on_done(self: Box<Self>);
}

/// How a cell ended.
#[derive(Debug)]
pub struct CellEnd {
    /// The outcome.
    pub result: Result<Outcome, KernelError>,
    /// How long the cell ran.
    pub duration: Duration,
}

/// Information for the caller of a job that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionNotice {
    /// The kernel is not the one of the previous call: variables are lost.
    Restarted {
        /// The generation of the current kernel.
        generation: u32,
        /// Why the previous kernel was lost.
        loss: KernelLoss,
    },
    /// A notice from the kernel's launcher.
    Kernel(KernelNotice),
    /// Cells of earlier calls printed text after their end.
    LateText {
        /// The stream.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The kernel's memory use is close to its limit.
    MemoryHigh {
        /// Memory in use, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The kernel exceeded its memory limit, and is replaced.
    MemoryExceeded {
        /// Memory that was in use, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The call was not served, because another job kept the session busy.
    Busy {
        /// The owner of the other job.
        owner: String,
        /// Its label.
        label: String,
        /// When it started.
        since: SystemTime,
    },
}

/// Why a kernel and its variables were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelLoss {
    /// It died.
    Died(Exit),
    /// It did not react to an interrupt and was killed.
    Killed,
    /// It violated the protocol and was killed.
    Broken,
    /// A caller reset it.
    Reset,
    /// It exceeded its memory limit.
    Memory {
        /// Memory that was in use, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// It was unused for this long.
    Idle(Duration),
    /// There were too many sessions, and this one had been idle longest.
    Evicted {
        /// The maximum number of sessions.
        limit: usize,
    },
    /// A caller ended the session for all owners.
    Stopped,
    /// The host that owned the session is gone.
    HostLost,
}

/// Reports that the first cell of a job could not begin, and finishes the job.
pub(super) fn reject_job(mut observer: Box<dyn JobObserver>, error: KernelError) {
    observer.on_cell_end(
        0,
        CellEnd {
            result: Err(error),
            duration: Duration::ZERO,
        },
    );
    observer.on_done();
}
