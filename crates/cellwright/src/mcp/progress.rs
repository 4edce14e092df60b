//! Progress notifications while code runs, for clients that asked for them: some stop waiting for a server
//! that is silent.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::time::Instant;

use crate::host::kernel_host::KernelHost;
use crate::host::protocol::HostRequest;

/// How long nothing is told at first: most calls have ended by then.
const FIRST: Duration = Duration::from_secs(1);

/// How often something is told.
const EVERY: Duration = Duration::from_secs(2);

/// Characters of what the code said last.
const LINE: usize = 100;

/// Tells one call's client how far it is.
pub(super) struct ProgressViewer {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    next: Instant,
    /// What was told last: it may only grow.
    told: f64,
}

impl ProgressViewer {
    /// For a call whose client wants to know.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        Some(Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token()?,
            next: Instant::now() + FIRST,
            told: 0.0,
        })
    }

    /// When there is something to tell.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// There is nothing to tell yet.
    pub(super) fn later(&mut self) {
        self.next = Instant::now() + EVERY;
    }

    /// Tells how far a run is.
    pub(super) async fn tell(&mut self, reach: &KernelHost, run: &str, elapsed: Duration) {
        let wanted = HostRequest::TailRun {
            run: run.to_owned(),
            follow: false,
            document: true,
        };
        // Whoever cannot be asked will say so to somebody who needs it.
        let glance = reach.request(&wanted, Duration::ZERO).await;
        let glance = glance.ok().flatten().unwrap_or_default();
        let (done, total, message) = read(&glance, elapsed);
        self.told = done.max(self.told + 1e-3);
        let mut param = ProgressNotificationParam::new(self.token.clone(), self.told);
        if let Some(total) = total {
            param = param.with_total(total);
        }
        // A client that has gone does not want to know.
        self.peer
            .notify_progress(param.with_message(message))
            .await
            .ok();
        self.later();
    }
}

/// How far it is, of how much, and in words.
fn read(glance: &Value, elapsed: Duration) -> (f64, Option<f64>, String) {
    let number = |name: &str| glance[name].as_f64();
    let seconds = elapsed.as_secs_f64();
    let cells = number("cells").unwrap_or(1.0);
    let cell = number("cell").unwrap_or(0.0);
    let mut message = match number("elapsed_s") {
        Some(running) if cells > 1.0 => {
            format!("cell {} of {cells}, running for {running:.0} s", cell + 1.0)
        }
        Some(running) => format!("running for {running:.0} s"),
        None => format!("waiting for {seconds:.0} s"),
    };
    let text = glance["text"].as_str().unwrap_or_default();
    let line = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    if let Some(line) = line {
        message.push_str(": ");
        message.extend(line.chars().take(LINE));
    }
    if cells > 1.0 {
        // Nobody knows how long a cell takes: it comes closer to its end, and never quite there.
        let running = number("elapsed_s").unwrap_or(0.0);
        return (cell + running / (running + 10.0), Some(cells), message);
    }
    (seconds, None, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_says_which_cell_and_what_it_said_last() {
        let glance = json!({"cell": 2, "cells": 5, "elapsed_s": 10.0, "text": "a\n 40 % \n\n"});
        let (done, total, message) = read(&glance, Duration::from_mins(1));
        assert!((done - 2.5).abs() < 1e-9, "{done}");
        assert_eq!(total, Some(5.0));
        assert_eq!(message, "cell 3 of 5, running for 10 s: 40 %");
        let glance = json!({"cell": 0, "cells": 1, "elapsed_s": 7.4, "text": ""});
        let (done, total, message) = read(&glance, Duration::from_secs(8));
        assert_eq!((done, total), (8.0, None));
        assert_eq!(message, "running for 7 s");
    }
}
