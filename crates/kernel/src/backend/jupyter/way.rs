//! What stands between two cells: what has come meanwhile, and a cell that nobody waits for any more.

use cellwright_output::Sink;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{FAREWELL_STEP, INTERRUPTS, Jupyter, LAST_MESSAGES, Took};
use crate::error::{Begun, KernelError};
use crate::exchange::Exchange;
use crate::stop::Stop;

/// So much of what a kernel says between two cells is heard before the next one goes out.
const ENOUGH: usize = 10_000;

impl Jupyter {
    /// Makes sure that the kernel is there and free, before something is sent to it: what is known only
    /// afterwards could have happened to a cell that had begun.
    pub(super) async fn make_way(&mut self, stop: &Stop) -> Result<(), KernelError> {
        // What its supervisor said may not have been noticed yet.
        tokio::task::yield_now().await;
        if let Some(exit) = self.life.look() {
            return Err(self.died(exit, Begun::No).await);
        }
        for _ in 0..ENOUGH {
            let Some(heard) = self.link.already() else {
                break;
            };
            self.take(heard, None);
        }
        if let Some(what) = self.closed.clone() {
            return Err(self.hung_up(what).await);
        }
        self.end_last(stop).await
    }

    /// Ends a cell whose run was let go half way. The next one would wait for it, and be interrupted in its
    /// stead.
    async fn end_last(&mut self, stop: &Stop) -> Result<(), KernelError> {
        let until = Instant::now() + self.interrupt_grace;
        let mut again = super::often(self.interrupt_grace / INTERRUPTS);
        while self.running.is_some() {
            let heard = tokio::select! {
                biased;
                reason = stop.pulled() => return Err(KernelError::StoppedEarly { reason }),
                () = sleep_until(until) => {
                    let exit = self.life.end().await;
                    return Err(self.died(exit, Begun::No).await);
                }
                _ = again.tick() => {
                    self.interrupt();
                    continue;
                }
                heard = self.link.next() => heard,
                exit = self.life.exited() => return Err(self.died(exit, Begun::No).await),
            };
            if let Took::Closed(what) = self.take(heard, None) {
                return Err(self.hung_up(what).await);
            }
        }
        Ok(())
    }

    /// What became of a kernel that has closed a channel while no cell ran.
    pub(super) async fn hung_up(&mut self, what: String) -> KernelError {
        match timeout(FAREWELL_STEP, self.life.exited()).await {
            Ok(exit) => self.died(exit, Begun::No).await,
            Err(_) => self.broken(what).await,
        }
    }

    /// Hears what a kernel said before it ended. One that is not ours may go on for ever.
    pub(super) async fn hear_the_rest(&mut self, cell: &mut Exchange, sink: &mut dyn Sink) {
        let until = Instant::now() + LAST_MESSAGES;
        // The last reply and the last output come on ways of their own.
        while !(self.iopub_closed && self.shell_closed) && Instant::now() < until {
            match timeout_at(until, self.link.next()).await {
                Ok(heard) => {
                    self.take(heard, Some((cell, &mut *sink)));
                }
                Err(_) => break,
            }
        }
        if self.life.is_theirs() && !self.iopub_closed {
            return;
        }
        while let Some(heard) = self.link.already() {
            self.take(heard, Some((cell, &mut *sink)));
        }
    }
}
