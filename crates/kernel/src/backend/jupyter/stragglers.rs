//! Output that comes after its cell was said to be over. Some kernels hand on what is printed in a way of
//! its own, which takes longer than their word that this was all: Deno's does.

use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::link::Heard;
use cellwright_output::Sink;
use tokio::time::{Instant, sleep_until};

use super::{Jupyter, Took};
use crate::exchange::Exchange;
use crate::stop::Stop;

/// How long a kernel must be silent until nothing more is expected.
const QUIET: Duration = Duration::from_millis(25);

/// How long one must be that was seen to be hasty.
const HASTY_QUIET: Duration = Duration::from_millis(150);

/// How long stragglers are waited for in all. What comes later is late text.
const LONGEST: Duration = Duration::from_secs(5);

impl Jupyter {
    /// Waits for what is still on its way from a cell that is over.
    pub(super) async fn await_stragglers(
        &mut self,
        cell: &mut Exchange,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) {
        let longest = Instant::now() + LONGEST;
        let quiet = |hasty| Instant::now() + if hasty { HASTY_QUIET } else { QUIET };
        let mut until = quiet(self.hasty);
        loop {
            let heard = tokio::select! {
                biased;
                _ = stop.pulled() => return,
                // First, or a kernel that never stops talking of something else would be heard for ever.
                () = sleep_until(until.min(longest)) => return,
                heard = self.link.next() => heard,
            };
            if let Heard::Message(Channel::Iopub, message) = &heard
                && message.parent_id() == cell.id
            {
                self.hasty = true;
                until = quiet(true);
            }
            if let Took::Closed(_) = self.take(heard, Some((cell, &mut *sink))) {
                return;
            }
        }
    }
}
