//! How long the steps before the first cell took, for whoever wonders (`trace.startup`).

use std::time::{Duration, Instant};

use crate::screen::Screen;
use crate::settings::Settings;

/// Counts from when it was made.
pub(crate) struct Startup {
    since: Instant,
    steps: Vec<(&'static str, Duration)>,
}

impl Startup {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// A step is done.
    pub(crate) fn step(&mut self, name: &'static str) {
        let now = Instant::now();
        self.steps.push((name, now - self.since));
        self.since = now;
    }

    /// Says it, if the settings want that; `kernel` is how long the kernel took to be ready.
    pub(crate) fn tell(mut self, kernel: Option<Duration>, settings: &Settings, screen: &Screen) {
        if !settings.trace.startup {
            return;
        }
        self.steps.extend(kernel.map(|time| ("kernel", time)));
        let step =
            |(name, time): &(&str, Duration)| format!("{name} {:.1} ms", time.as_secs_f64() * 1e3);
        let steps: Vec<String> = self.steps.iter().map(step).collect();
        screen.remark(&format!("startup: {}", steps.join(", ")));
    }
}
