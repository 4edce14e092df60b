//! [`Job`]: cells to run one after the other with nobody between, and [`Audience`]: who is told.

use std::time::{Duration, SystemTime};

use cellwright_output::{Sink, Stream};

use super::report::SessionId;
use crate::error::KernelError;
use crate::kernel::{Description, Farewell, LateText, Outcome, Remark, Request};
use crate::process::Exit;
use crate::stop::{Stop, Stopper};

/// Cells to run one after the other. The first that does not end well is the last, unless it may fail.
pub struct Job {
    /// The cells.
    pub cells: Vec<Cell>,
    /// On whose behalf.
    pub owner: String,
    /// What it is, in a few words, for those who wait behind it.
    pub label: String,
    /// Ends it early; sessions pull it, too.
    pub stopper: Stopper,
    /// What `stopper` pulls.
    pub stop: Stop,
    /// What becomes of the kernel afterwards.
    pub then: Then,
    /// Who is told what comes of it.
    pub audience: Box<dyn Audience>,
}

/// One cell of a job.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What to run.
    pub request: Request,
    /// How long it may take. For the first cell that includes the wait for the session and the start
    /// of a kernel.
    pub timeout: Option<Duration>,
    /// Whether it wants a fresh kernel.
    pub reset: bool,
    /// Whether the next may follow if it fails.
    pub failing: Failing,
}

/// What follows a cell that does not end well, on a kernel that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failing {
    /// Nothing.
    #[default]
    Ends,
    /// The next cell. A cell that was cancelled still ends everything.
    GoesOn,
}

impl Cell {
    /// A cell of plain code without a limit.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            request: Request::new(code),
            timeout: None,
            reset: false,
            failing: Failing::Ends,
        }
    }
}

/// What becomes of a kernel after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It waits for the next.
    Keep,
    /// It is ended. As long as the last cell has time left, its threads are waited for.
    End,
}

/// Is told what comes of a job. Whatever happens, `done` is the last call, and is made once.
pub trait Audience: Send {
    /// A session took the job; nothing else was said before.
    fn accepted(&mut self, _session: SessionId) {}

    /// The cells that follow run on this kernel.
    fn kernel(&mut self, description: &Description, generation: u32);

    /// A cell is about to run; what it says goes into this sink.
    fn begin(&mut self, cell: usize) -> &mut dyn Sink;

    /// A cell has ended, or could not begin.
    fn end(&mut self, cell: usize, end: CellEnd);

    /// A cell of this job said something after its end.
    fn late(&mut self, cell: usize, text: &LateText);

    /// Something that the caller should know.
    fn tell(&mut self, notice: Notice);

    /// The kernel was ended with the job.
    fn farewell(&mut self, farewell: &Farewell);

    /// Nothing more will come.
    fn done(self: Box<Self>);
}

/// How a cell ended.
#[derive(Debug)]
pub struct CellEnd {
    /// The end.
    pub result: Result<Outcome, KernelError>,
    /// How long it ran.
    pub time: Duration,
}

/// What a caller should know although nothing failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The kernel is another one than at the call before: variables are lost.
    Restarted {
        /// The number of the kernel that there is now.
        generation: u32,
        /// What became of the one before.
        loss: Loss,
    },
    /// Whoever started the kernel has something to say.
    Remark(Remark),
    /// Cells of earlier calls said something after their end.
    Late {
        /// Where.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// The kernel uses much of the memory that it may use.
    MemoryHigh {
        /// What it uses, in bytes.
        used: u64,
        /// What it may use, in bytes.
        limit: u64,
    },
    /// The kernel used more memory than it may, and is replaced.
    MemoryExceeded {
        /// What it used, in bytes.
        used: u64,
        /// What it may use, in bytes.
        limit: u64,
    },
    /// Somebody else's cell ran all the while.
    Busy {
        /// On whose behalf.
        owner: String,
        /// What it is.
        label: String,
        /// Since when.
        since: SystemTime,
    },
}

/// What became of a kernel whose variables are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// It died.
    Died(Exit),
    /// It did not react to being interrupted and was killed.
    Killed,
    /// It made no sense any more and was killed.
    Broken,
    /// Somebody reset it.
    Reset,
    /// It used more memory than it may.
    Memory {
        /// What it used, in bytes.
        used: u64,
        /// What it may use, in bytes.
        limit: u64,
    },
    /// Nobody had used it for this long.
    Idle(Duration),
    /// There were too many sessions, and it had been idle longest.
    Crowded {
        /// How many there may be.
        limit: usize,
    },
    /// Somebody ended it for everybody.
    Ended,
    /// Whoever kept it is gone.
    Abandoned,
}

/// Tells that not even the first cell could be tried.
pub(super) fn refused(mut audience: Box<dyn Audience>, error: KernelError) {
    audience.end(
        0,
        CellEnd {
            result: Err(error),
            time: Duration::ZERO,
        },
    );
    audience.done();
}
