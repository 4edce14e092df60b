//! Starts kernels on the shared gateway.

use cellwright_gateway::{KernelOwner, ServerError};
use cellwright_kernel::backend::jupyter::gateway::{GatewaySpec, GatewayTarget, LocalGateway};
use cellwright_kernel::process::daemon::ProcessIdentity;
use cellwright_kernel::{Begun, Kernel, KernelError, KernelSpec, LaunchContext, StopSignal};
use cellwright_local_gateway::{
    GatewayDir, LocalGatewayError, RunningGateway, StagedKernelspec, StartOptions,
    check_kernel_package, ensure_running, shows_exhaustion,
};
use tracing::debug;

use super::failure::into_kernel_error;
use super::server;
use crate::program::current_program;

/// The variable that tells the gateway which process owns a kernel. The kernel does not receive it.
const OWNER_VARIABLE: &str = "KERNEL_CELLWRIGHT_OWNER";

/// Starts a kernel on the shared gateway, and the gateway if it does not run. If the gateway is gone or has run out of
/// descriptors, the kernel starts on another gateway; the kernels of other owners keep running.
pub async fn start_kernel(
    spec: &GatewaySpec,
    local: &LocalGateway,
    context: &LaunchContext,
    session: &str,
    stop: &StopSignal,
) -> Result<Box<dyn Kernel>, KernelError> {
    let dir = GatewayDir::create(&local.dir).map_err(into_kernel_error)?;
    stage_kernelspec(spec, local, &dir)
        .await
        .map_err(into_kernel_error)?;
    let mut exhausted = None;
    let mut is_retry = false;
    loop {
        let gateway = find_gateway(local, &dir, exhausted, stop).await?;
        let spec = on_gateway(spec, local, &gateway, context, session);
        let error = match KernelSpec::Gateway(spec).start(context, stop).await {
            Ok(kernel) => return Ok(kernel),
            Err(error) => error,
        };
        let is_exhausted = shows_exhaustion(&error.to_string()) || gateway.is_exhausted();
        match &error {
            KernelError::Server {
                error: server_error,
                begun: Begun::No,
            } if !is_retry && may_succeed_later(server_error) => {
                debug!(%server_error, is_exhausted, "the kernel is started once more");
                exhausted = is_exhausted.then_some(gateway.generation.number);
                is_retry = true;
            }
            KernelError::FailedToStart { .. } if local.needs_ipykernel => {
                // It may have been uninstalled.
                let checked = check_kernel_package(&local.program, &local.env).await;
                return Err(checked.err().map_or(error, into_kernel_error));
            }
            _ => return Err(error),
        }
    }
}

/// Whether the kernel may start on a gateway that is asked for again.
fn may_succeed_later(error: &ServerError) -> bool {
    // Another process with another token has the port now.
    error.is_transient() || matches!(error, ServerError::Unauthorized { .. })
}

/// Adds the kernelspec for the gateway. The interpreter is asked for ipykernel once.
async fn stage_kernelspec(
    spec: &GatewaySpec,
    local: &LocalGateway,
    dir: &GatewayDir,
) -> Result<(), LocalGatewayError> {
    let GatewayTarget::Start {
        kernelspec: Some(name),
        ..
    } = &spec.target
    else {
        return Ok(());
    };
    let staged = StagedKernelspec {
        name: name.clone(),
        content: local.kernelspec.clone(),
    };
    if staged.exists(dir) {
        return Ok(());
    }
    if local.needs_ipykernel && local.program != local.python {
        check_kernel_package(&local.program, &local.env).await?;
    }
    staged.write(dir)
}

async fn find_gateway(
    local: &LocalGateway,
    dir: &GatewayDir,
    exhausted: Option<u32>,
    stop: &StopSignal,
) -> Result<RunningGateway, KernelError> {
    let options = StartOptions {
        program: current_program(),
        python: local.python.clone(),
        env: local.env.clone(),
        start_timeout: local.start_timeout,
        idle_timeout: local.idle_timeout,
    };
    tokio::select! {
        found = ensure_running(dir, &options, exhausted) => found.map_err(into_kernel_error),
        // A gateway that is starting stays for the next call.
        reason = stop.requested() => Err(KernelError::StoppedEarly { reason }),
    }
}

/// The specification of a kernel on a gateway, with its environment and its owner.
fn on_gateway(
    spec: &GatewaySpec,
    local: &LocalGateway,
    gateway: &RunningGateway,
    context: &LaunchContext,
    session: &str,
) -> GatewaySpec {
    let mut spec = spec.clone();
    spec.server = Box::new(server(gateway));
    if let GatewayTarget::Start { env, .. } = &mut spec.target {
        for (name, value) in &local.env {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
                env.push((name.to_owned(), value.to_owned()));
            } else {
                // JSON has no form for it.
                debug!(?name, "the variable is not UTF-8");
            }
        }
        let process = ProcessIdentity::current();
        let owner = KernelOwner {
            pid: process.pid,
            start_ticks: process.start_ticks,
            session: Some(session.to_owned()).filter(|session| !session.is_empty()),
            cwd: context.cwd.path().to_str().map(str::to_owned),
        };
        if let Ok(owner) = serde_json::to_string(&owner) {
            env.push((OWNER_VARIABLE.to_owned(), owner));
        }
    }
    spec
}
