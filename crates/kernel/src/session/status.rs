//! The status of a session, as the pool and its callers see it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cellwright_stdext::LockExt;
use tokio::time::Instant;

use super::SessionKey;
use super::job::KernelLoss;
use crate::kernel::Description;

/// The number of a session, unique within its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session at one moment.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// Its number.
    pub id: SessionId,
    /// Its key.
    pub key: SessionKey,
    /// The only owner, if the session was split off from a shared one.
    pub private_to: Option<String>,
    /// Its owners.
    pub owners: Vec<String>,
    /// What it is doing.
    pub activity: Activity,
    /// The number of waiting calls.
    pub waiting: usize,
    /// The number of kernels it has had, the current one included.
    pub generation: u32,
    /// The number of cells that ran on the current kernel.
    pub executions: u64,
    /// Its kernel, if it has one.
    pub kernel: Option<Description>,
    /// The memory of its kernel and the kernel's descendants, in bytes.
    pub memory: Option<u64>,
    /// The time since its creation.
    pub age: Duration,
    /// The time since its last use.
    pub idle: Duration,
}

/// What a session is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It has no kernel; the next call starts one.
    Empty,
    /// Its kernel is starting.
    Starting,
    /// It waits for calls.
    Idle,
    /// It runs a job.
    Busy {
        /// The owner of the job.
        owner: String,
        /// The label of the job.
        label: String,
        /// When the job started.
        since: SystemTime,
    },
}

/// The status of a session, written by its worker and read by the pool.
#[derive(Clone, Debug)]
pub(super) struct StatusCell(Arc<Mutex<SessionStatus>>);

/// The content of a [`StatusCell`].
#[derive(Debug)]
pub(super) struct SessionStatus {
    pub(super) activity: Activity,
    pub(super) generation: u32,
    pub(super) executions: u64,
    pub(super) kernel: Option<Description>,
    /// The number of calls that were accepted and are not finished.
    pub(super) pending: usize,
    /// Why the last kernel was lost, until a caller has been notified.
    pub(super) unreported_loss: Option<KernelLoss>,
    /// How often a reset discarded variables.
    pub(super) resets: u32,
    pub(super) created: Instant,
    pub(super) last_used: Instant,
}

impl StatusCell {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(SessionStatus {
            activity: Activity::Empty,
            generation: 0,
            executions: 0,
            kernel: None,
            pending: 0,
            unreported_loss: None,
            resets: 0,
            created: now,
            last_used: now,
        })))
    }

    /// Calls `access` with the locked status.
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut SessionStatus) -> T) -> T {
        access(&mut self.0.lock_ignoring_poison())
    }

    pub(super) fn call_accepted(&self) {
        self.with(|status| {
            status.pending += 1;
            status.last_used = Instant::now();
        });
    }

    pub(super) fn call_finished(&self) {
        self.with(|status| {
            status.pending = status.pending.saturating_sub(1);
            status.last_used = Instant::now();
        });
    }
}
