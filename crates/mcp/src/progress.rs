//! Progress notifications while code runs, for clients that ask for them: some stop waiting for a server that sends
//! nothing.

use std::time::Duration;

use cellwright_host::kernel_host::KernelHost;
use cellwright_host::reply::RunTail;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::time::Instant;

/// Time until the first notification: most calls have ended by then.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Time between two notifications.
const INTERVAL: Duration = Duration::from_secs(2);

/// Number of characters of the last line of output in a notification.
const LINE_MAX: usize = 100;

/// Sends the progress of one call to its client.
pub(super) struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    next: Instant,
    /// The last value that was sent: values must increase.
    sent: f64,
}

impl ProgressReporter {
    /// The reporter of a call; `None` if its client does not ask for progress.
    pub(super) fn from_context(context: &RequestContext<RoleServer>) -> Option<Self> {
        Some(Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token()?,
            next: Instant::now() + FIRST_DELAY,
            sent: 0.0,
        })
    }

    /// When the next notification is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Sends the progress of a run, once its id is known.
    pub(super) async fn report(&mut self, host: &KernelHost, run: Option<&str>, elapsed: Duration) {
        if let Some(run) = run {
            // A host that does not answer is reported by the call itself.
            let tail = host.tail_run(run).await.ok().flatten();
            let (done, total, message) = describe(tail.as_ref(), elapsed);
            self.sent = done.max(self.sent + 1e-3);
            let mut param = ProgressNotificationParam::new(self.token.clone(), self.sent);
            if let Some(total) = total {
                param = param.with_total(total);
            }
            // The client may be gone.
            let param = param.with_message(message);
            self.peer.notify_progress(param).await.ok();
        }
        self.next = Instant::now() + INTERVAL;
    }
}

/// The progress, the total if there is one, and a message.
#[expect(clippy::cast_precision_loss, reason = "numbers of cells")]
fn describe(tail: Option<&RunTail>, elapsed: Duration) -> (f64, Option<f64>, String) {
    let seconds = elapsed.as_secs_f64();
    let cells = tail.map_or(1, |tail| tail.total);
    let number = tail.map_or(1, |tail| tail.number);
    let running = tail.and_then(|tail| tail.elapsed_ms);
    let running = running.map(|milliseconds| milliseconds / 1e3);
    let mut message = match running {
        Some(running) if cells > 1 => {
            format!("cell {number} of {cells}, running for {running:.0} s")
        }
        Some(running) => format!("running for {running:.0} s"),
        None => format!("waiting for {seconds:.0} s"),
    };
    let text = tail.and_then(|tail| tail.text.as_deref());
    let mut lines = text.unwrap_or_default().lines().rev().map(str::trim);
    if let Some(line) = lines.find(|line| !line.is_empty()) {
        message.push_str(": ");
        message.extend(line.chars().take(LINE_MAX));
    }
    if cells > 1 {
        // The duration of a cell is unknown: its part approaches one and never reaches it.
        let running = running.unwrap_or(0.0);
        let done = (number - 1) as f64 + running / (running + 10.0);
        return (done, Some(cells as f64), message);
    }
    (seconds, None, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cellwright_execution::ExecutionStatus;

    #[test]
    fn progress_names_the_cell_and_the_last_line_of_output() {
        let mut tail = RunTail {
            run: "r1".to_owned(),
            session: None,
            status: ExecutionStatus::Running,
            number: 3,
            total: 5,
            elapsed_ms: Some(10_000.0),
            text: Some("a\n 40 % \n\n".to_owned()),
            kernel: None,
        };
        let (done, total, message) = describe(Some(&tail), Duration::from_mins(1));
        assert!((done - 2.5).abs() < 1e-9, "{done}");
        assert_eq!(total, Some(5.0));
        assert_eq!(message, "cell 3 of 5, running for 10 s: 40 %");
        (tail.number, tail.total) = (1, 1);
        tail.elapsed_ms = Some(7_400.0);
        tail.text = Some(String::new());
        let (done, total, message) = describe(Some(&tail), Duration::from_secs(8));
        assert_eq!((done, total), (8.0, None));
        assert_eq!(message, "running for 7 s");
    }
}
