//! How a kernel is ended, or left.

use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::life::Life;
use super::python::Guest;
use super::{FAREWELL_STEP, Jupyter, LAST_MESSAGES};
use crate::kernel::Farewell;
use crate::process::Exit;
use crate::stop::Stop;

/// How long a kernel may take that was asked to end. Some stand still then for ever, as ipykernel can when its
/// threads end in an unlucky order, so this holds even for those who have all the time in the world.
const LEAVING: Duration = Duration::from_secs(5);

/// How long the supervisor may take to end what the kernel left behind.
const CLEARING: Duration = Duration::from_secs(3);

impl Jupyter {
    pub(super) async fn end(mut self, patience: Stop) -> Farewell {
        if let Life::Theirs { .. } = self.life {
            if let Some(code) = self.guest.as_ref().map(Guest::leave) {
                self.silently(code);
            }
            self.link.close().await;
            return Farewell {
                exit: None,
                late: self.late.take(),
                in_peace: true,
            };
        }
        if self.life.ended().is_none() {
            let patience = patience.with_timeout(LEAVING);
            tokio::select! {
                () = self.leaves() => {}
                _ = patience.pulled() => {}
            }
        }
        let in_peace = self.life.ended().is_some();
        if !in_peace {
            if let Life::Ours(child) = &self.life {
                child.process.terminate();
            }
            timeout(FAREWELL_STEP, self.gone()).await.ok();
        }
        // One that does not want to end may talk on.
        let until = Instant::now() + LAST_MESSAGES;
        while Instant::now() < until
            && let Some(heard) = self.link.already()
        {
            self.take(heard, None);
        }
        let exit = match self.life {
            Life::Ours(child) => Some(child.process.gone(CLEARING).await),
            Life::Theirs { .. } => None,
        };
        Farewell {
            exit,
            late: self.late.take(),
            in_peace,
        }
    }

    /// Asks it to end, and waits until it has.
    async fn leaves(&mut self) {
        let ask = json!({"restart": false});
        if self.description.is_python() && self.running.is_none() {
            // Its main thread then does it all. If another one is asked, they may end in an unlucky order.
            self.send(Channel::Shell, "shutdown_request", &ask);
            if timeout(FAREWELL_STEP, self.gone()).await.is_ok() {
                return;
            }
        }
        self.send(Channel::Control, "shutdown_request", &ask);
        self.gone().await;
    }

    /// Waits until its process is gone, and hears it out.
    async fn gone(&mut self) -> Exit {
        loop {
            tokio::select! {
                biased;
                heard = self.link.next() => {
                    self.take(heard, None);
                }
                exit = self.life.exited() => return exit,
            }
        }
    }
}
