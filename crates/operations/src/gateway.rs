//! Starts, shows and ends the shared gateway of this user.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::{self, local};
use cellwright_engine::{local_gateway, runtime};
use cellwright_gateway::RemoteKernel;
use cellwright_local_gateway::status::{self, GatewayStatus};
use cellwright_local_gateway::{GatewayDir, stop};
use cellwright_stdext::rfc3339;
use schemars::JsonSchema;
use serde::Serialize;

/// A gateway that runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StartedGateway {
    /// Whether this command started it.
    pub started: bool,
    /// Its address, without the token.
    pub url: String,
    /// Process id of the process that watches it.
    pub pid: u32,
    /// The interpreter that runs it.
    pub python: String,
}

/// The shared gateways of this user.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GatewayReport {
    /// Whether one is running.
    pub running: bool,
    /// The directory with their files.
    pub directory: String,
    /// The gateways, newest first. The first one gets new kernels; others end with their last kernel.
    pub gateways: Vec<GatewayEntry>,
}

/// A shared gateway.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GatewayEntry {
    /// Its address, without the token.
    pub url: String,
    /// Process id of the process that watches it.
    pub pid: u32,
    /// Process id of the gateway.
    pub gateway_pid: u32,
    /// The interpreter that runs it.
    pub python: String,
    /// Version of `jupyter_kernel_gateway`.
    pub gateway_version: Option<String>,
    /// Its start.
    #[schemars(with = "Timestamp")]
    pub started_at: String,
    /// Whether it answers and accepts its token.
    pub healthy: bool,
    /// Why it is not healthy.
    pub problem: Option<String>,
    /// Its kernels.
    pub kernels: Vec<GatewayKernel>,
}

/// A kernel on a shared gateway.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GatewayKernel {
    /// Id on the gateway.
    pub id: String,
    /// The name of its kernelspec on the gateway.
    pub kernelspec: String,
    /// `idle`, `busy`, `starting`, `restarting` or `dead`.
    pub state: Option<String>,
    /// Number of connected clients.
    pub connections: Option<u64>,
    /// When it was last used.
    #[schemars(with = "Option<Timestamp>")]
    pub last_activity_at: Option<String>,
    /// Process id of its owner: the host, or a command. The kernel ends with it.
    pub owner_pid: Option<u32>,
    /// The session that has it.
    pub session: Option<String>,
    /// The working directory in which it started.
    pub cwd: Option<String>,
}

/// The gateways that were ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoppedGateways {
    /// Process ids of the processes that watched them.
    pub pids: Vec<u32>,
    /// Number of kernels that ended with them.
    pub kernels: usize,
}

/// Starts the shared gateway with the interpreter of a directory, unless it runs.
pub fn start(
    engine: &Engine,
    python: Option<&Path>,
    cwd: &Path,
) -> Result<StartedGateway, Failure> {
    let settings = engine.settings(cwd)?;
    let interpreter = kernels::resolve_interpreter(engine, &settings, python, cwd)?;
    let gateway = runtime::block_on(local::ensure_gateway(engine, &settings, &interpreter))??;
    Ok(StartedGateway {
        started: gateway.started,
        url: gateway.record.url.to_string(),
        pid: gateway.record.pid,
        python: gateway.record.python.display().to_string(),
    })
}

/// The shared gateways and their kernels.
pub fn status() -> Result<GatewayReport, Failure> {
    let path = local_gateway::dir();
    let gateways = runtime::block_on(async {
        match GatewayDir::open(&path)? {
            Some(dir) => status::status(&dir).await,
            None => Ok(Vec::new()),
        }
    })?;
    let gateways = gateways.map_err(local_gateway::into_failure)?;
    Ok(GatewayReport {
        running: !gateways.is_empty(),
        directory: path.display().to_string(),
        gateways: gateways.into_iter().map(GatewayEntry::new).collect(),
    })
}

/// Ends the shared gateways and all kernels on them.
pub fn stop() -> Result<StoppedGateways, Failure> {
    let stopped = runtime::block_on(async {
        match GatewayDir::open(&local_gateway::dir())? {
            Some(dir) => stop::stop(&dir).await,
            None => Ok(Vec::new()),
        }
    })?;
    let stopped = stopped.map_err(local_gateway::into_failure)?;
    Ok(StoppedGateways {
        pids: stopped.iter().map(|gateway| gateway.pid).collect(),
        kernels: stopped.iter().filter_map(|gateway| gateway.kernels).sum(),
    })
}

impl GatewayEntry {
    fn new(gateway: GatewayStatus) -> Self {
        let record = gateway.record;
        let (kernels, problem) = match gateway.kernels {
            Ok(kernels) => (kernels, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        Self {
            url: record.url.to_string(),
            pid: record.pid,
            gateway_pid: record.gateway_pid,
            python: record.python.display().to_string(),
            gateway_version: record.version,
            started_at: rfc3339::format_seconds(record.started),
            healthy: problem.is_none(),
            problem,
            kernels: kernels.into_iter().map(GatewayKernel::new).collect(),
        }
    }
}

impl GatewayKernel {
    fn new(kernel: RemoteKernel) -> Self {
        let owner = kernel.owner.unwrap_or_default();
        Self {
            id: kernel.id,
            kernelspec: kernel.name,
            state: kernel.execution_state,
            connections: kernel.connections,
            last_activity_at: kernel.last_activity,
            owner_pid: Some(owner.pid).filter(|&pid| pid != 0),
            session: owner.session,
            cwd: owner.cwd,
        }
    }
}
