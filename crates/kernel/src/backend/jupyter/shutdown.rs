//! Shutting down a kernel, or detaching from one.

use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::python::PythonSupport;
use super::{Channels, Jupyter, LAST_MESSAGES_TIMEOUT, Lifecycle, SHUTDOWN_STEP_TIMEOUT};
use crate::kernel::ShutdownReport;
use crate::process::Exit;
use crate::stop::StopSignal;

/// How long a kernel may take to exit after a shutdown request. Some hang then, as ipykernel does when its
/// threads end in an unlucky order, so this limit applies even if the caller sets none.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    pub(super) async fn shut_down(mut self, deadline: StopSignal) -> ShutdownReport {
        if self.lifecycle.is_attached() {
            if let Some(code) = self.hooks.as_ref().map(PythonSupport::uninstall) {
                self.send_silent(code);
            }
            self.channels.close().await;
            return ShutdownReport {
                exit: None,
                late_text: self.late.take(),
                graceful: true,
            };
        }
        if self.lifecycle.exit().is_none() && self.lifecycle.accepts_shutdown_request() {
            let deadline = deadline.with_timeout(SHUTDOWN_TIMEOUT);
            tokio::select! {
                () = self.request_shutdown() => {}
                _ = deadline.requested() => {}
            }
        }
        let accepts_request = self.lifecycle.accepts_shutdown_request();
        let graceful = self.lifecycle.exit().is_some() || !accepts_request;
        if !graceful {
            self.lifecycle.terminate();
            timeout(SHUTDOWN_STEP_TIMEOUT, self.wait_exit()).await.ok();
        }
        // A kernel that does not exit may keep sending.
        let drain_until = Instant::now() + LAST_MESSAGES_TIMEOUT;
        while Instant::now() < drain_until
            && let Some(event) = self.channels.try_next()
        {
            self.handle(event, None);
        }
        ShutdownReport {
            exit: self.lifecycle.end().await,
            late_text: self.late.take(),
            graceful,
        }
    }

    /// Requests a shutdown, and waits for the exit.
    async fn request_shutdown(&mut self) {
        let content = json!({"restart": false});
        if self.description.is_python() && self.running_cell.is_none() {
            // The main thread then does everything. A request to the control thread may end the threads in an unlucky
            // order.
            self.send(Channel::Shell, "shutdown_request", &content);
            if timeout(SHUTDOWN_STEP_TIMEOUT, self.wait_exit())
                .await
                .is_ok()
            {
                return;
            }
        }
        self.send(Channel::Control, "shutdown_request", &content);
        self.wait_exit().await;
    }

    /// Handles messages until the process has exited.
    async fn wait_exit(&mut self) -> Exit {
        loop {
            tokio::select! {
                biased;
                event = self.channels.next() => {
                    self.handle(event, None);
                }
                exit = self.lifecycle.exited() => return exit,
            }
        }
    }
}
