//! [`Stop`]: when a run must end before it is done, and why. Whoever starts a run holds the
//! [`Stopper`]; whoever runs it watches the `Stop`.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody asked for it.
    Cancelled,
    /// It took longer than this.
    TimedOut(Duration),
    /// Whoever keeps the kernel is ending it.
    ShuttingDown,
    /// Somebody wants a fresh kernel in its place.
    Reset,
    /// The kernel used more memory than it may.
    MemoryLimit {
        /// What it used, in bytes.
        used: u64,
        /// What it may use, in bytes.
        limit: u64,
    },
}

/// Ends a run; clones end the same run.
#[derive(Clone, Debug)]
pub struct Stopper {
    sender: watch::Sender<Pull>,
}

/// What has been asked so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pull {
    reason: Option<StopReason>,
    /// Whether nobody waits for the code to end by itself.
    at_once: bool,
}

impl Stopper {
    /// Asks the run to end. The first reason stands.
    pub fn stop(&self, reason: StopReason) {
        self.sender.send_if_modified(|pull| {
            let first = pull.reason.is_none();
            pull.reason.get_or_insert(reason);
            first
        });
    }

    /// Ends the run without waiting for the code to react. The first reason stands.
    pub fn stop_at_once(&self, reason: StopReason) {
        self.sender.send_modify(|pull| {
            pull.reason.get_or_insert(reason);
            pull.at_once = true;
        });
    }

    /// Whether the run was asked to end.
    pub fn is_pulled(&self) -> bool {
        self.sender.borrow().reason.is_some()
    }
}

/// Tells a run that it must end.
#[derive(Clone, Debug)]
pub struct Stop {
    receiver: watch::Receiver<Pull>,
    deadline: Option<(Instant, Duration)>,
}

impl Stop {
    /// A stop and the handle that pulls it.
    pub fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(Pull::default());
        let stop = Self {
            receiver,
            deadline: None,
        };
        (Stopper { sender }, stop)
    }

    /// One that nobody can pull.
    pub fn never() -> Self {
        Self::new().1
    }

    /// The same, and ending by itself after `timeout` from now, if it does not do so earlier.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        let mut stop = self.clone();
        // A time too far to count is no limit.
        let added = Instant::now().checked_add(timeout).map(|at| (at, timeout));
        stop.deadline = match (self.deadline, added) {
            (Some(own), Some(added)) if own.0 < added.0 => Some(own),
            (own, added) => added.or(own),
        };
        stop
    }

    /// Why the run must end, if it must.
    pub fn reason(&self) -> Option<StopReason> {
        if let Some(reason) = self.receiver.borrow().reason {
            return Some(reason);
        }
        let (at, timeout) = self.deadline?;
        (Instant::now() >= at).then_some(StopReason::TimedOut(timeout))
    }

    /// Waits until the run must end. Cancel-safe.
    pub async fn pulled(&self) -> StopReason {
        let mut receiver = self.receiver.clone();
        let asked = async {
            let asked = receiver.wait_for(|pull| pull.reason.is_some()).await;
            match asked.map(|pull| pull.reason) {
                Ok(reason) => reason.unwrap_or(StopReason::Cancelled),
                // Nobody is left who could ask.
                Err(_) => std::future::pending().await,
            }
        };
        match self.deadline {
            None => asked.await,
            Some((at, timeout)) => tokio::select! {
                biased;
                reason = asked => reason,
                () = tokio::time::sleep_until(at) => StopReason::TimedOut(timeout),
            },
        }
    }
}

impl Stop {
    /// Waits until nobody waits any more for the code to end by itself. Cancel-safe.
    pub async fn at_once(&self) {
        let mut receiver = self.receiver.clone();
        let asked = receiver.wait_for(|pull| pull.at_once).await.is_ok();
        if !asked {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_reason_stands() {
        let (stopper, stop) = Stop::new();
        let limited = stop.with_timeout(Duration::from_secs(5));
        assert_eq!(limited.reason(), None);
        stopper.stop(StopReason::Cancelled);
        stopper.stop(StopReason::ShuttingDown);
        assert_eq!(limited.pulled().await, StopReason::Cancelled);
        assert_eq!(stop.reason(), Some(StopReason::Cancelled));
    }

    #[tokio::test(start_paused = true)]
    async fn time_runs_out_also_when_nobody_is_left_to_ask() {
        let timeout = Duration::from_secs(5);
        let stop = Stop::never().with_timeout(timeout);
        assert_eq!(stop.pulled().await, StopReason::TimedOut(timeout));
        assert_eq!(stop.reason(), Some(StopReason::TimedOut(timeout)));
    }
}
