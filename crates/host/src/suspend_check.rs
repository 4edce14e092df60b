//! [`SuspendCheck`]: finds that a signal such as SIGSTOP has suspended the process of a host. Its connections stay open, so
//! that a client would wait for replies as long as the host is suspended.

use std::time::Duration;

use cellwright_kernel::process::daemon;
use tokio::time::{Instant, sleep_until};

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of checks in a row that must find the host suspended: a debugger suspends a process for a moment.
const FOUND_MIN: u32 = 2;

/// Checks at intervals whether a host is suspended.
#[derive(Debug)]
pub(super) struct SuspendCheck {
    /// `None` for the host of this process.
    pid: Option<u32>,
    next: Instant,
    /// Number of checks in a row that found the host suspended.
    found: u32,
}

impl SuspendCheck {
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid: (pid != std::process::id()).then_some(pid),
            next: Instant::now() + CHECK_INTERVAL,
            found: 0,
        }
    }

    /// Waits until the host is found suspended; never returns while it runs. Cancel-safe.
    pub(super) async fn suspended(&mut self) {
        while self.found < FOUND_MIN {
            if self.pid.is_none() {
                std::future::pending::<()>().await;
            }
            sleep_until(self.next).await;
            self.next = Instant::now() + CHECK_INTERVAL;
            self.found = if self.is_suspended_now() {
                self.found + 1
            } else {
                0
            };
        }
    }

    /// Whether the host is suspended at this moment.
    pub(super) fn is_suspended_now(&self) -> bool {
        self.pid.is_some_and(daemon::is_suspended)
    }
}
