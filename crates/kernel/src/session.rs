//! Kernels that live longer than a call.
//!
//! A session is a task that owns one kernel at a time (`worker.rs`). Calls wait in its queue and can
//! leave it; what they run is a [`Job`], and what comes of it is told to the job's [`Audience`].
//! [`Sessions`] is the pool: which sessions there are, whose they are, which must go. [`run_once`] is
//! the same for a kernel that ends with its only job.
//!
//! Time is tokio's and kernels come from a [`Launch`], so that all of this can be played through with
//! scripted kernels on a paused clock (`tests/it/simulation.rs`).

mod bench;
mod desk;
mod entry;
mod job;
mod launch;
mod memory;
mod pool;
mod queue;
mod registry;
mod report;
mod spare;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub use job::{Audience, Cell, CellEnd, Failing, Job, Loss, Notice, Then};
pub use launch::Launch;
pub use pool::{Accepted, Call, Renewed, Sessions};
pub use report::{Activity, SessionId, SessionReport};
pub use spare::Spares;
pub use worker::run_once;

/// What tells sessions apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The name that people give.
    pub name: String,
    /// Where its kernel starts.
    pub cwd: PathBuf,
    /// Which kernel it has.
    pub kernel: String,
}

/// What sessions may cost, and how long they live.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How many sessions there may be.
    pub most_sessions: usize,
    /// How long a session may be idle before it is ended; `None`: for ever.
    pub idle: Option<Duration>,
    /// How often in a row a kernel that died is started again, with no cell finished in between.
    pub restarts: u32,
    /// How many calls may wait for one session.
    pub queue: usize,
    /// How many bytes of memory a kernel and what it started may use; `None`: as many as it wants.
    pub memory_limit: Option<u64>,
    /// From how many percent of that limit on callers are warned.
    pub memory_warning: u8,
    /// How long a kernel that is ended may take for what it still does by itself.
    pub farewell: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            most_sessions: 16,
            idle: None,
            restarts: 2,
            queue: 64,
            memory_limit: None,
            memory_warning: 80,
            farewell: Duration::from_secs(1),
        }
    }
}
