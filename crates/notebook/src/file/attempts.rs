//! How often a change starts again because another program keeps changing the file.

use std::thread;
use std::time::{Duration, Instant};

/// Attempts that every change gets.
const ATTEMPT_MIN: u32 = 5;
/// Further attempts start within this time.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// A file that another program has removed is waited for this long.
const MISSING_TIMEOUT: Duration = Duration::from_millis(300);
/// The longest pause between two attempts.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(15);

/// Counts attempts, with pauses that let another program finish.
pub(super) struct Attempts {
    started: Instant,
    count: u32,
    was_found: bool,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            count: 0,
            was_found: false,
        }
    }

    /// Marks that the file exists.
    pub(super) fn found(&mut self) {
        self.was_found = true;
    }

    /// Whether a file that is missing may be there again soon: some programs remove a file and create it again.
    pub(super) fn may_return(&self) -> bool {
        self.was_found && self.started.elapsed() < MISSING_TIMEOUT
    }
}

impl Iterator for Attempts {
    type Item = ();

    fn next(&mut self) -> Option<()> {
        self.count += 1;
        if self.count > ATTEMPT_MIN && self.started.elapsed() > ATTEMPT_TIMEOUT {
            return None;
        }
        thread::sleep(ATTEMPT_INTERVAL.min(Duration::from_millis(u64::from(self.count - 1))));
        Some(())
    }
}
