//! Kernels on Jupyter servers: real ones, and real ones behind a proxy that injects faults.

mod engines;
mod faults;

use std::time::Duration;

use cellwright_gateway::{PastedUrl, Secret, Server};
use cellwright_kernel::backend::jupyter::Jupyter;
use cellwright_kernel::backend::jupyter::gateway::{
    FileAccess, GatewayChannels, GatewaySpec, GatewayTarget, RemoteKernelProcess,
};
use cellwright_kernel::{KernelError, StopSignal};
use cellwright_test_support::GatewayServer;

use crate::support::launch_context;

/// A kernel on a server.
type GatewayKernel = Jupyter<GatewayChannels, RemoteKernelProcess>;

/// How to reach a server at this URL.
fn server_at(url: &str, token: &str) -> Server {
    let url = PastedUrl::parse(url).unwrap().url;
    Server::new(url).with_token(Secret::new(token))
}

/// How to reach a server of the tests.
fn server_of(server: &GatewayServer) -> Server {
    server_at(&server.url(), server.token())
}

/// A kernel to start on this server.
fn spec(server: Server) -> GatewaySpec {
    GatewaySpec {
        server: Box::new(server),
        target: GatewayTarget::Start {
            kernelspec: Some("python3".to_owned()),
            env: Vec::new(),
            prelude: true,
        },
        files: FileAccess::ThisMachine,
        local: None,
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(6),
    }
}

/// A kernel in a new directory.
async fn start(spec: &GatewaySpec) -> Result<(GatewayKernel, tempfile::TempDir), KernelError> {
    start_with(spec, &StopSignal::never()).await
}

async fn start_with(
    spec: &GatewaySpec,
    stop: &StopSignal,
) -> Result<(GatewayKernel, tempfile::TempDir), KernelError> {
    let dir = tempfile::tempdir().unwrap();
    let context = launch_context(dir.path());
    let kernel = Jupyter::start_on_gateway(spec, &context, stop).await?;
    Ok((kernel, dir))
}

/// The number of kernels on a server.
fn count_kernels(server: &GatewayServer) -> usize {
    let (status, body) = server.request("GET", "api/kernels", "");
    assert_eq!(status, 200, "{body}");
    let kernels: serde_json::Value = serde_json::from_str(&body).unwrap();
    kernels.as_array().unwrap().len()
}
