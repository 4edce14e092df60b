//! Kernels on Jupyter servers: their messages come over a WebSocket, their processes belong to the server.

mod channels;
mod delivery;
mod kernel_end;
mod lease;
mod lifecycle;
mod spec;
mod start;

use super::Jupyter;
use super::profile::KernelProfile;
use crate::error::KernelError;
use crate::kernel::{HistoryMode, Request};
use crate::launch_context::LaunchContext;
use crate::stop::StopSignal;
pub use channels::GatewayChannels;
pub use lease::run_lease;
pub use lifecycle::RemoteKernelProcess;
pub use spec::{FileAccess, GatewaySpec, GatewayTarget, LocalGateway};

/// How messages name the shared gateway of this user.
pub const LOCAL: &str = "local";

/// The name of this backend.
pub const NAME: &str = "gateway";

impl Jupyter<GatewayChannels, RemoteKernelProcess> {
    /// Starts a kernel on a server or attaches to one, and waits until it is ready.
    pub async fn start_on_gateway(
        spec: &GatewaySpec,
        context: &LaunchContext,
        stop: &StopSignal,
    ) -> Result<Self, KernelError> {
        let (ready, kernel) = start::start(spec, context, stop).await?;
        let mut kernel = Self::new(ready, KernelProfile::of_gateway(spec, kernel, context));
        if spec.files == FileAccess::ThisMachine && !spec.is_attached() {
            // Some servers ignore the directory in the request that starts a kernel.
            let request = Request {
                cwd: Some(context.cwd.clone()),
                history: HistoryMode::Silent,
                ..Request::default()
            };
            kernel.apply_context(&request, stop).await?;
        }
        Ok(kernel)
    }
}
