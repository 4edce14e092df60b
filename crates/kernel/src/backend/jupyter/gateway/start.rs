//! Starting a kernel on a server, or attaching to one.

use std::sync::Arc;
use std::time::Duration;

use cellwright_gateway::{KernelSocket, RemoteKernel, ServerClient, ServerError, StartRequest};
use tokio::time::{Instant, sleep_until, timeout};

use super::channels::GatewayChannels;
use super::kernel_end::KernelEndCell;
use super::lease::KernelLease;
use super::lifecycle::RemoteKernelProcess;
use super::spec::{FileAccess, GatewaySpec, GatewayTarget};
use crate::backend::jupyter::Lifecycle;
use crate::backend::jupyter::ready::{StartDeadline, StartFailure, wait_until_ready};
use crate::backend::jupyter::start::ReadyKernel;
use crate::backend::runner::check_directory;
use crate::error::{Begun, KernelError};
use crate::launch_context::LaunchContext;
use crate::stop::StopSignal;

/// How long a kernel that the caller does not want any more may take to be ended.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The variable that tells Enterprise Gateway how long a kernel may take to start, in seconds.
const LAUNCH_TIMEOUT_VARIABLE: &str = "KERNEL_LAUNCH_TIMEOUT";

/// A kernel on a server that is ready, and what the server calls it.
type ReadyRemoteKernel = (
    ReadyKernel<GatewayChannels, RemoteKernelProcess>,
    RemoteKernel,
);

/// Starts a kernel on a server or attaches to one.
pub(super) async fn start(
    spec: &GatewaySpec,
    context: &LaunchContext,
    stop: &StopSignal,
) -> Result<ReadyRemoteKernel, KernelError> {
    if spec.files == FileAccess::ThisMachine {
        check_directory(&context.cwd)?;
    }
    let deadline = StartDeadline {
        stop,
        at: Instant::now() + spec.start_timeout,
        timeout: spec.start_timeout,
    };
    let mut server = spec.server.clone();
    server.request_timeout = server.request_timeout.min(spec.start_timeout);
    let client = ServerClient::new(Arc::from(server)).map_err(server_error)?;
    let (kernel, lease) = match &spec.target {
        GatewayTarget::Existing { id } => (
            within(&deadline, client.kernel(id))
                .await?
                .map_err(server_error)?,
            None,
        ),
        GatewayTarget::Start { .. } => {
            let request = start_request(spec, context);
            let lease = KernelLease::start(&context.supervisor, client.server(), request);
            let mut lease = lease.await?;
            let started = within(&deadline, lease.wait_started()).await?;
            let started = started.map_err(|source| {
                KernelError::from_launch(context.supervisor.program().to_owned(), source)
            })?;
            (started.map_err(server_error)?, Some(lease))
        }
    };
    let end = KernelEndCell::new();
    let socket = KernelSocket::open(&client, &kernel.id).map_err(KernelError::from_exhaustion)?;
    let mut channels = GatewayChannels::new(socket, end.clone());
    let mut lifecycle = RemoteKernelProcess::new(client, kernel.id.clone(), lease, end);
    let failure = match wait_until_ready(&mut channels, &mut lifecycle, &deadline).await {
        Ok(info) => {
            if !spec.is_attached() && info["implementation"] == "ipython" {
                channels.install_delivery_log();
            }
            let ready = ReadyKernel {
                channels,
                lifecycle,
                info,
            };
            return Ok((ready, kernel));
        }
        Err(failure) => failure,
    };
    let loss = lifecycle.server_error();
    timeout(CLEANUP_TIMEOUT, lifecycle.kill()).await.ok();
    Err(match (failure, loss) {
        (_, Some(error)) => server_error(error),
        (StartFailure::Kernel(error), None) => error,
        (StartFailure::Exited(exit), None) => KernelError::FailedToStart {
            exit,
            stderr: String::new(),
        },
        (StartFailure::TimedOut, None) => KernelError::NotReady {
            after: spec.start_timeout,
            stderr: String::new(),
        },
    })
}

/// The request that starts the kernel.
fn start_request(spec: &GatewaySpec, context: &LaunchContext) -> StartRequest {
    let GatewayTarget::Start {
        kernelspec, env, ..
    } = &spec.target
    else {
        return StartRequest::default();
    };
    let mut env = env.clone();
    if !env.iter().any(|(name, _)| name == LAUNCH_TIMEOUT_VARIABLE) {
        let seconds = spec.start_timeout.as_secs().clamp(1, 86_400);
        env.push((LAUNCH_TIMEOUT_VARIABLE.to_owned(), seconds.to_string()));
    }
    let cwd = context.cwd.path().to_str();
    let is_local = spec.files == FileAccess::ThisMachine;
    StartRequest {
        name: kernelspec.clone(),
        env,
        path: cwd.filter(|_| is_local).map(str::to_owned),
    }
}

/// Waits until the deadline, or until a stop is requested.
async fn within<T>(
    deadline: &StartDeadline<'_>,
    wait: impl Future<Output = T>,
) -> Result<T, KernelError> {
    tokio::select! {
        biased;
        result = wait => Ok(result),
        reason = deadline.stop.requested() => Err(KernelError::StoppedEarly { reason }),
        () = sleep_until(deadline.at) => Err(KernelError::NotReady {
            after: deadline.timeout,
            stderr: String::new(),
        }),
    }
}

/// The error of a server before any code was sent.
fn server_error(error: ServerError) -> KernelError {
    KernelError::Server {
        error,
        begun: Begun::No,
    }
}
