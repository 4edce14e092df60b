//! Kernels that outlive a call.
//!
//! A session is a task that owns one kernel at a time (`worker.rs`). Calls wait in its queue and can
//! leave it. A call runs a [`Job`], whose [`JobObserver`] receives the results. [`Sessions`] is the
//! pool: it creates sessions, records their owners, and evicts them. [`run_once`] runs a single job on
//! a kernel that ends with the job.
//!
//! All timing uses tokio's clock and all kernels come from a [`KernelLauncher`], so that tests run
//! everything with scripted kernels on a paused clock (`tests/it/simulation.rs`).

mod cell_request_ids;
mod group;
mod job;
mod kernel_slot;
mod launcher;
mod mailbox;
mod memory_watch;
mod pool;
mod queue;
mod registry;
mod spare;
mod status;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use crate::spec::KernelId;

pub use job::{
    AfterJob, CellEnd, Job, JobCell, JobCells, JobObserver, KernelLoss, OnError, SessionNotice,
};
pub use launcher::{KernelLauncher, SpecLauncher};
pub use pool::{ResetOutcome, SessionCall, Sessions, SubmitOutcome};
pub use spare::SpareKernels;
pub use status::{Activity, SessionId, SessionReport};
pub use worker::run_once;

/// Identifies a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The name that the user chose.
    pub name: String,
    /// The directory in which its kernel starts.
    pub cwd: PathBuf,
    /// The id of its kernel.
    pub kernel: KernelId,
}

/// Limits of sessions and their kernels.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The maximum number of sessions.
    pub max_sessions: usize,
    /// How long a session may be idle before it is ended; `None`: without limit.
    pub idle_timeout: Option<Duration>,
    /// How often in a row a kernel that died is restarted without a finished cell in between.
    pub max_restarts: u32,
    /// How many calls may wait for one session.
    pub queue_limit: usize,
    /// How many bytes of memory a kernel and its descendants may use; `None`: without limit.
    pub memory_limit: Option<u64>,
    /// The percentage of `memory_limit` from which callers are warned.
    pub memory_warning_percent: u8,
    /// How long a kernel may take to shut down by itself before it is terminated.
    pub shutdown_grace: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_sessions: 16,
            idle_timeout: None,
            max_restarts: 2,
            queue_limit: 64,
            memory_limit: None,
            memory_warning_percent: 80,
            shutdown_grace: Duration::from_secs(1),
        }
    }
}
