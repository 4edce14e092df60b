//! [`StopSignal`]: ends an execution before it is done, and carries the reason. The caller that starts
//! the execution holds the [`StopHandle`]; the code that runs it watches the signal.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Why an execution was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The caller cancelled it.
    Cancelled,
    /// A time limit passed.
    TimedOut {
        /// Which one.
        limit: TimeLimit,
        /// Its length.
        after: Duration,
    },
    /// The session or the host that owns the kernel is shutting down.
    ShuttingDown,
    /// A caller reset the session: a fresh kernel replaces this one.
    Reset,
    /// The kernel exceeded its memory limit.
    MemoryLimit {
        /// Memory in use, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
}

/// The time limits of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// Of a cell, from its begin.
    Cell,
    /// Of an execution: the wait for the session, the start of a kernel, and all cells.
    Total,
    /// Of the wait for a busy session.
    Queue,
}

/// Stops an execution. Clones stop the same execution.
#[derive(Clone, Debug)]
pub struct StopHandle {
    sender: watch::Sender<StopRequest>,
}

/// What has been requested so far.
#[derive(Clone, Copy, Debug, Default)]
struct StopRequest {
    reason: Option<StopReason>,
    /// Whether to kill the kernel without waiting for the code to react.
    forced: bool,
}

impl StopHandle {
    /// Requests a stop. The first reason wins.
    pub fn stop(&self, reason: StopReason) {
        self.sender.send_if_modified(|request| {
            let first = request.reason.is_none();
            request.reason.get_or_insert(reason);
            first
        });
    }

    /// Requests a stop that does not wait for the code to react. The first reason wins.
    pub fn force_stop(&self, reason: StopReason) {
        self.sender.send_modify(|request| {
            request.reason.get_or_insert(reason);
            request.forced = true;
        });
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.sender.borrow().reason.is_some()
    }
}

/// The receiving side of a [`StopHandle`], with an optional deadline.
#[derive(Clone, Debug)]
pub struct StopSignal {
    receiver: watch::Receiver<StopRequest>,
    deadline: Option<Deadline>,
}

/// When an execution times out, and why.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    limit: TimeLimit,
    after: Duration,
}

impl Deadline {
    fn reason(self) -> StopReason {
        StopReason::TimedOut {
            limit: self.limit,
            after: self.after,
        }
    }
}

impl StopSignal {
    /// A handle and its signal.
    pub fn new() -> (StopHandle, Self) {
        let (sender, receiver) = watch::channel(StopRequest::default());
        let signal = Self {
            receiver,
            deadline: None,
        };
        (StopHandle { sender }, signal)
    }

    /// A signal without a handle: only a timeout can end it.
    pub fn never() -> Self {
        Self::new().1
    }

    /// The same signal with the time limit of a cell, from now.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.with_limit(TimeLimit::Cell, timeout)
    }

    /// The same signal, which also times out `after` from now. Of two deadlines the earlier wins.
    #[must_use]
    pub fn with_limit(&self, limit: TimeLimit, after: Duration) -> Self {
        let mut signal = self.clone();
        // A deadline beyond the clock's range is no limit.
        let at = Instant::now().checked_add(after);
        let added = at.map(|at| Deadline { at, limit, after });
        signal.deadline = match (self.deadline, added) {
            (Some(own), Some(added)) if own.at < added.at => Some(own),
            (own, added) => added.or(own),
        };
        signal
    }

    /// The reason, if a stop was requested or the deadline has passed.
    pub fn reason(&self) -> Option<StopReason> {
        if let Some(reason) = self.receiver.borrow().reason {
            return Some(reason);
        }
        let deadline = self.deadline?;
        (Instant::now() >= deadline.at).then(|| deadline.reason())
    }

    /// Time until the deadline, if there is one.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.at.saturating_duration_since(Instant::now()))
    }

    /// Waits until a stop is requested or the deadline passes. Cancel-safe.
    pub async fn requested(&self) -> StopReason {
        let mut receiver = self.receiver.clone();
        let requested = async {
            let request = receiver.wait_for(|request| request.reason.is_some()).await;
            match request.map(|request| request.reason) {
                Ok(reason) => reason.unwrap_or(StopReason::Cancelled),
                // The last handle was dropped: no request can come.
                Err(_) => std::future::pending().await,
            }
        };
        match self.deadline {
            None => requested.await,
            Some(deadline) => tokio::select! {
                biased;
                reason = requested => reason,
                () = tokio::time::sleep_until(deadline.at) => deadline.reason(),
            },
        }
    }

    /// Waits until a forced stop is requested. Cancel-safe.
    pub async fn forced(&self) {
        let mut receiver = self.receiver.clone();
        let requested = receiver.wait_for(|request| request.forced).await.is_ok();
        if !requested {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell_timeout(after: Duration) -> StopReason {
        StopReason::TimedOut {
            limit: TimeLimit::Cell,
            after,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn first_reason_wins() {
        let (handle, signal) = StopSignal::new();
        let limited = signal.with_timeout(Duration::from_secs(5));
        assert_eq!(limited.reason(), None);
        handle.stop(StopReason::Cancelled);
        handle.stop(StopReason::ShuttingDown);
        assert_eq!(limited.requested().await, StopReason::Cancelled);
        assert_eq!(signal.reason(), Some(StopReason::Cancelled));
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_works_without_a_handle() {
        let timeout = Duration::from_secs(5);
        let signal = StopSignal::never().with_timeout(timeout);
        assert_eq!(signal.requested().await, cell_timeout(timeout));
        assert_eq!(signal.reason(), Some(cell_timeout(timeout)));
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_of_two_timeouts_wins_in_either_order() {
        let (short, long) = (Duration::from_secs(2), Duration::from_secs(30));
        for (first, second) in [(short, long), (long, short)] {
            let signal = StopSignal::never().with_timeout(first).with_timeout(second);
            let started = Instant::now();
            assert_eq!(signal.requested().await, cell_timeout(short));
            assert_eq!(started.elapsed(), short);
            assert_eq!(signal.reason(), Some(cell_timeout(short)));
        }
        // The reason names the limit that passed.
        let total = StopSignal::never().with_limit(TimeLimit::Total, short);
        assert!(matches!(
            total.with_timeout(long).requested().await,
            StopReason::TimedOut {
                limit: TimeLimit::Total,
                ..
            }
        ));
        // A timeout that the clock cannot count is no limit, and removes none.
        for (first, second) in [(short, Duration::MAX), (Duration::MAX, short)] {
            let signal = StopSignal::never().with_timeout(first).with_timeout(second);
            assert_eq!(signal.requested().await, cell_timeout(short));
        }
    }
}
