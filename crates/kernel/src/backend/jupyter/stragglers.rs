//! Output that arrives after the `idle` of its cell. Some kernels, such as Deno, forward printed text on a
//! separate path, which takes longer than `idle`.

use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_output::Sink;
use tokio::time::{Instant, sleep_until};

use super::{ChannelEvent, Channels, EventResult, Jupyter, Lifecycle};
use crate::execution::Execution;
use crate::stop::StopSignal;

/// How long a kernel must be silent before no more output is expected.
const QUIET_TIMEOUT: Duration = Duration::from_millis(25);

/// The same for a kernel that has sent output after `idle` before.
const LATE_OUTPUT_QUIET_TIMEOUT: Duration = Duration::from_millis(150);

/// How long to wait for stragglers in total. Output that arrives later is late output.
const STRAGGLERS_TIMEOUT: Duration = Duration::from_secs(5);

impl<C: Channels, L: Lifecycle> Jupyter<C, L> {
    /// Waits for output of a cell that is already idle.
    pub(super) async fn await_stragglers(
        &mut self,
        cell: &mut Execution,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) {
        let last = Instant::now() + STRAGGLERS_TIMEOUT;
        let quiet_deadline = |idle_before_output| {
            let timeout = if idle_before_output {
                LATE_OUTPUT_QUIET_TIMEOUT
            } else {
                QUIET_TIMEOUT
            };
            Instant::now() + timeout
        };
        let mut deadline = quiet_deadline(self.idle_before_output);
        loop {
            let event = tokio::select! {
                biased;
                _ = stop.requested() => return,
                // Before the messages: a kernel that never stops sending unrelated ones must not block the return.
                () = sleep_until(deadline.min(last)) => return,
                event = self.channels.next() => event,
            };
            if let ChannelEvent::Message(Channel::Iopub, message) = &event
                && message.parent_id() == cell.id
            {
                self.idle_before_output = true;
                deadline = quiet_deadline(true);
            }
            if let EventResult::Closed(_) = self.handle(event, Some((cell, &mut *sink))) {
                return;
            }
        }
    }
}
