//! [`KernelEnd`]: how a kernel on a server was lost. Channels and lifecycle share it.

use cellwright_gateway::ServerError;
use tokio::sync::watch;

/// How a kernel on a server was lost.
#[derive(Clone, Debug)]
pub(super) enum KernelEnd {
    /// Its process died. The server may have started another one in its place.
    Died,
    /// It was ended on request of this client.
    Ended,
    /// The server does not have it any more, or cannot be reached.
    Server(ServerError),
}

/// The end of a kernel, once it is known. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct KernelEndCell(watch::Sender<Option<KernelEnd>>);

impl KernelEndCell {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Sets the end, unless it is known already.
    pub(super) fn set(&self, end: KernelEnd) {
        self.0.send_if_modified(|known| {
            let is_new = known.is_none();
            known.get_or_insert(end);
            is_new
        });
    }

    pub(super) fn get(&self) -> Option<KernelEnd> {
        self.0.borrow().clone()
    }

    /// Waits until the end is known. Cancel-safe.
    pub(super) async fn wait(&self) {
        let mut receiver = self.0.subscribe();
        // The sender is part of `self`: it is not dropped.
        receiver.wait_for(Option::is_some).await.ok();
    }
}
