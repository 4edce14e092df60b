//! [`RemoteKernelProcess`]: the process of a kernel that a server has started.

use std::time::Duration;

use cellwright_gateway::{ServerClient, ServerError};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::kernel_end::{KernelEnd, KernelEndCell};
use super::lease::KernelLease;
use crate::backend::jupyter::{InterruptPath, Lifecycle};
use crate::error::{Begun, KernelError};
use crate::process::Exit;

/// How often the server is asked whether the kernel still exists.
const CHECK_INTERVAL: Duration = Duration::from_millis(1500);

/// How long the server may take to end a kernel. It gives the kernel five seconds.
const DELETE_TIMEOUT: Duration = Duration::from_secs(8);

/// The process of a kernel that a server has started.
#[derive(Debug)]
pub struct RemoteKernelProcess {
    client: ServerClient,
    id: String,
    /// `None`: another program started the kernel.
    lease: Option<KernelLease>,
    is_attached: bool,
    end: KernelEndCell,
    /// Asks the server whether the kernel still exists.
    check: JoinHandle<()>,
}

impl RemoteKernelProcess {
    pub(super) fn new(
        client: ServerClient,
        id: String,
        lease: Option<KernelLease>,
        end: KernelEndCell,
    ) -> Self {
        let check = tokio::spawn(check_existence(client.clone(), id.clone(), end.clone()));
        Self {
            client,
            id,
            is_attached: lease.is_none(),
            lease,
            end,
            check,
        }
    }

    /// The error of the server, if it has lost the kernel.
    pub(super) fn server_error(&self) -> Option<ServerError> {
        let is_local = self.client.server().name.as_deref() == Some(super::LOCAL);
        match self.end.get()? {
            // The kernels of the shared gateway end with it.
            KernelEnd::Server(ServerError::Unreachable { server, .. }) if is_local => {
                Some(ServerError::ServerRestarted {
                    server,
                    kernel: self.id.clone(),
                })
            }
            KernelEnd::Server(error) => Some(error),
            KernelEnd::Died | KernelEnd::Ended => None,
        }
    }

    /// Ends the kernel on the server, unless another program started it. Returns whether the server confirms it.
    async fn delete(&mut self) -> bool {
        self.check.abort();
        let Some(lease) = self.lease.take() else {
            return true;
        };
        let deleted = timeout(DELETE_TIMEOUT, self.client.delete(&self.id)).await;
        match deleted {
            Ok(Ok(())) => {
                lease.release().await;
                true
            }
            // The lease, which is dropped here, asks the server again.
            Ok(Err(error)) => {
                debug!(kernel = self.id, %error, "the kernel was not ended");
                false
            }
            Err(_) => false,
        }
    }
}

impl Drop for RemoteKernelProcess {
    fn drop(&mut self) {
        self.check.abort();
    }
}

/// Asks the server at intervals whether the kernel still exists: servers do not close its connections when another client
/// ends it.
async fn check_existence(client: ServerClient, id: String, end: KernelEndCell) {
    loop {
        sleep(CHECK_INTERVAL).await;
        match client.kernel(&id).await {
            Err(error @ ServerError::KernelGone { .. }) => {
                return end.set(KernelEnd::Server(error));
            }
            Ok(kernel) if kernel.execution_state.as_deref() == Some("dead") => {
                return end.set(KernelEnd::Died);
            }
            // The kernels of the shared gateway end with it: there is nothing to wait for.
            Err(error @ ServerError::Unreachable { .. })
                if client.server().name.as_deref() == Some(super::LOCAL) =>
            {
                return end.set(KernelEnd::Server(error));
            }
            // The channels report a server that cannot be reached.
            Ok(_) | Err(_) => {}
        }
    }
}

impl Lifecycle for RemoteKernelProcess {
    fn is_attached(&self) -> bool {
        self.is_attached
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn interrupt(&self) -> InterruptPath {
        let (client, id) = (self.client.clone(), self.id.clone());
        tokio::spawn(async move {
            if let Err(error) = client.interrupt(&id).await {
                debug!(kernel = id, %error, "the kernel was not interrupted");
            }
        });
        InterruptPath::Signal
    }

    fn exit(&self) -> Option<Exit> {
        self.end.get().map(|_| Exit::UNKNOWN)
    }

    async fn exited(&mut self) -> Exit {
        self.end.wait().await;
        Exit::UNKNOWN
    }

    fn record_disconnect(&mut self) {
        // The channels have recorded why they are closed.
    }

    fn accepts_shutdown_request(&self) -> bool {
        // The server would take the exit for a crash, and start the kernel again.
        false
    }

    fn loss(&self, begun: Begun) -> Option<KernelError> {
        let error = self.server_error()?;
        Some(KernelError::Server { error, begun })
    }

    fn terminate(&self) {}

    async fn kill(&mut self) -> Exit {
        self.delete().await;
        self.end.set(KernelEnd::Ended);
        Exit::UNKNOWN
    }

    async fn end(mut self) -> Option<Exit> {
        self.delete().await;
        None
    }

    fn output_tail(&self) -> String {
        String::new()
    }

    async fn final_output(&mut self) -> String {
        String::new()
    }
}
