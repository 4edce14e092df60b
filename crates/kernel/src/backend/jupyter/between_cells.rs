//! Between two cells: messages that arrived meanwhile, and a previous cell whose caller is gone.

use cellwright_output::Sink;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{
    Channels, EventResult, INTERRUPTS_MAX, Jupyter, LAST_MESSAGES_TIMEOUT, Lifecycle,
    SHUTDOWN_STEP_TIMEOUT,
};
use crate::error::{Begun, KernelError};
use crate::execution::Execution;
use crate::stop::StopSignal;

/// Events that are handled between two cells before the next one is sent.
const EVENTS_MAX: usize = 10_000;

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    /// Checks that the kernel is alive and idle before a request is sent: an exit that is noticed only
    /// afterwards could have happened after the cell had begun.
    pub(super) async fn ensure_idle(&mut self, stop: &StopSignal) -> Result<(), KernelError> {
        // Lets the runtime deliver a pending message of the supervisor.
        tokio::task::yield_now().await;
        if let Some(exit) = self.lifecycle.poll_exit() {
            return Err(self.died_error(exit, Begun::No).await);
        }
        for _ in 0..EVENTS_MAX {
            let Some(event) = self.channels.try_next() else {
                break;
            };
            self.handle(event, None);
        }
        if let Some(reason) = self.close_reason.clone() {
            return Err(self.on_disconnect(reason).await);
        }
        self.stop_abandoned_cell(stop).await
    }

    /// Interrupts a cell whose caller is gone. Otherwise the next cell would wait for it, and would be interrupted in
    /// its place.
    async fn stop_abandoned_cell(&mut self, stop: &StopSignal) -> Result<(), KernelError> {
        let deadline = Instant::now() + self.interrupt_grace;
        let mut repeat = super::ticker(self.interrupt_grace / INTERRUPTS_MAX);
        while self.running_cell.is_some() {
            let event = tokio::select! {
                biased;
                reason = stop.requested() => return Err(KernelError::StoppedEarly { reason }),
                () = sleep_until(deadline) => {
                    let exit = self.lifecycle.kill().await;
                    return Err(self.died_error(exit, Begun::No).await);
                }
                _ = repeat.tick() => {
                    self.interrupt();
                    continue;
                }
                event = self.channels.next() => event,
                exit = self.lifecycle.exited() => return Err(self.died_error(exit, Begun::No).await),
            };
            if let EventResult::Closed(reason) = self.handle(event, None) {
                return Err(self.on_disconnect(reason).await);
            }
        }
        Ok(())
    }

    /// Returns the error for a kernel that closed a channel while no cell ran.
    pub(super) async fn on_disconnect(&mut self, reason: String) -> KernelError {
        match timeout(SHUTDOWN_STEP_TIMEOUT, self.lifecycle.exited()).await {
            Ok(exit) => self.died_error(exit, Begun::No).await,
            Err(_) => self.end_with_protocol_error(reason).await,
        }
    }

    /// Handles the messages that a kernel sent before it exited. An attached kernel may never stop sending.
    pub(super) async fn drain_remaining(&mut self, cell: &mut Execution, sink: &mut dyn Sink) {
        let deadline = Instant::now() + LAST_MESSAGES_TIMEOUT;
        // The last reply and the last output arrive on different channels.
        while !(self.iopub_closed && self.shell_closed) && Instant::now() < deadline {
            match timeout_at(deadline, self.channels.next()).await {
                Ok(event) => {
                    self.handle(event, Some((cell, &mut *sink)));
                }
                Err(_) => break,
            }
        }
        if self.lifecycle.is_attached() && !self.iopub_closed {
            return;
        }
        while let Some(event) = self.channels.try_next() {
            self.handle(event, Some((cell, &mut *sink)));
        }
    }
}
