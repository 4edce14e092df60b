//! Durations of the steps before the first cell (setting `trace.startup`).

use std::time::{Duration, Instant};

use crate::settings::Settings;

/// Measures the steps since it was created.
pub struct StartupTimer {
    since: Instant,
    steps: Vec<(&'static str, Duration)>,
}

impl Default for StartupTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl StartupTimer {
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// Records the time since the last step.
    pub fn step(&mut self, name: &'static str) {
        let now = Instant::now();
        self.steps.push((name, now - self.since));
        self.since = now;
    }

    /// The line for `trace.startup`, if that setting is on. `kernel` is the time until the kernel was ready.
    pub fn report(mut self, kernel: Option<Duration>, settings: &Settings) -> Option<String> {
        if !settings.trace.startup {
            return None;
        }
        self.steps.extend(kernel.map(|time| ("kernel", time)));
        let step =
            |(name, time): &(&str, Duration)| format!("{name} {:.1} ms", time.as_secs_f64() * 1e3);
        let steps: Vec<String> = self.steps.iter().map(step).collect();
        Some(format!("startup: {}", steps.join(", ")))
    }
}
