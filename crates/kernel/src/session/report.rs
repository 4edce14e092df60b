//! What a session looks like from outside.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::SessionKey;
use super::job::Loss;
use super::queue::Moment;
use crate::kernel::Description;

/// The number of a session, never used again in the same pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session as it is at this moment.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// Its number.
    pub id: SessionId,
    /// What tells it apart.
    pub key: SessionKey,
    /// Whose own it is, if it was split off from a shared one.
    pub private_to: Option<String>,
    /// Who uses it.
    pub owners: Vec<String>,
    /// What it does.
    pub activity: Activity,
    /// How many calls wait.
    pub waiting: usize,
    /// How many kernels it has had.
    pub generation: u32,
    /// How many cells ran on the kernel that there is now.
    pub executions: u64,
    /// Its kernel, if it has one.
    pub kernel: Option<Description>,
    /// The memory of its kernel and of what that started, in bytes.
    pub memory: Option<u64>,
    /// How old it is.
    pub age: Duration,
    /// How long nobody has used it.
    pub idle: Duration,
}

/// What a session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It has no kernel; the next call starts one.
    Empty,
    /// Its kernel starts.
    Starting,
    /// It waits for calls.
    Idle,
    /// It runs something.
    Busy {
        /// On whose behalf.
        owner: String,
        /// What.
        label: String,
        /// Since when.
        since: SystemTime,
    },
}

/// What the worker tells the pool, at any moment.
#[derive(Clone, Debug)]
pub(super) struct Face(Arc<Mutex<Look>>);

/// What is known of a session.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) activity: Activity,
    pub(super) generation: u32,
    pub(super) executions: u64,
    pub(super) kernel: Option<Description>,
    /// Calls that have been accepted and not been answered.
    pub(super) pending: usize,
    /// What became of variables that nobody has been told about.
    pub(super) untold: Option<Loss>,
    /// How often variables were lost because somebody wanted that.
    pub(super) resets: u32,
    pub(super) made: Moment,
    pub(super) used: Moment,
}

impl Face {
    pub(super) fn new() -> Self {
        let now = Moment::now();
        Self(Arc::new(Mutex::new(Look {
            activity: Activity::Empty,
            generation: 0,
            executions: 0,
            kernel: None,
            pending: 0,
            untold: None,
            resets: 0,
            made: now,
            used: now,
        })))
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Look) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A call was accepted.
    pub(super) fn asked(&self) {
        self.with(|look| {
            look.pending += 1;
            look.used = Moment::now();
        });
    }

    /// A call was answered.
    pub(super) fn answered(&self) {
        self.with(|look| {
            look.pending = look.pending.saturating_sub(1);
            look.used = Moment::now();
        });
    }
}
