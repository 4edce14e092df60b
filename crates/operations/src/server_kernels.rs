//! The kernels of a Jupyter server: lists, interrupts, restarts and ends them.

use std::path::Path;
use std::sync::Arc;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::gateway::{find_running, list_running};
use cellwright_engine::runtime;
use cellwright_engine::servers::{self, ServerChoice};
use cellwright_gateway::{RemoteKernel, RemoteSession, Server, ServerClient};
use cellwright_host::reply::SessionInfo;
use schemars::JsonSchema;
use serde::Serialize;

/// The kernels of a Jupyter server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerKernelList {
    /// Name of the server in the settings, or its URL.
    pub server: String,
    /// URL of the server.
    pub url: String,
    /// The kernels.
    pub kernels: Vec<ServerKernel>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A kernel of a Jupyter server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerKernel {
    /// Id of the kernel on the server, for `--existing`.
    pub id: String,
    /// Name of the kernelspec.
    pub name: String,
    /// What the kernel does: `idle`, `busy`, `starting`, `restarting` or `dead`.
    pub state: Option<String>,
    /// Time of the last activity.
    #[schemars(with = "Option<Timestamp>")]
    pub last_activity_at: Option<String>,
    /// Number of connected clients.
    pub connections: Option<u64>,
    /// Path of the notebook or console on the server that has the kernel.
    pub notebook: Option<String>,
    /// Name of the session of Cellwright on this machine that has the kernel.
    pub session: Option<String>,
}

/// What was done with a kernel of a Jupyter server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerKernelResult {
    /// Name of the server in the settings, or its URL.
    pub server: String,
    /// Id of the kernel.
    pub kernel_id: String,
    /// What was done.
    pub action: ServerKernelAction,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// What to do with a kernel of a Jupyter server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerKernelAction {
    /// Its cell was interrupted.
    Interrupted,
    /// It was restarted.
    Restarted,
    /// It was ended.
    Ended,
}

impl ServerKernelAction {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Restarted => "restarted",
            Self::Ended => "ended",
        }
    }
}

/// Lists the kernels of a server; `sessions` are those of the host.
pub fn list(
    choice: &ServerChoice,
    sessions: &[SessionInfo],
    cwd: &Path,
    engine: &Engine,
) -> Result<ServerKernelList, Failure> {
    let (client, notices) = open(choice, cwd, engine)?;
    let (kernels, remote_sessions) = list_running(&client)?;
    let kernels = kernels.into_iter();
    let describe = |kernel| describe(kernel, &remote_sessions, sessions, client.server());
    Ok(ServerKernelList {
        server: client.server().short_label(),
        url: client.server().url.to_string(),
        kernels: kernels.map(describe).collect(),
        notices,
    })
}

fn describe(
    kernel: RemoteKernel,
    notebooks: &[RemoteSession],
    sessions: &[SessionInfo],
    server: &Server,
) -> ServerKernel {
    let has_kernel = |notebook: &&RemoteSession| {
        let other = notebook.kernel.as_ref();
        other.is_some_and(|other| other.id == kernel.id)
    };
    let notebook = notebooks.iter().find(has_kernel);
    let label = server.short_label();
    let is_ours = |session: &&SessionInfo| {
        session.kernel_id.as_ref() == Some(&kernel.id) && session.server.as_ref() == Some(&label)
    };
    let session = sessions.iter().find(is_ours);
    ServerKernel {
        notebook: notebook.and_then(|notebook| {
            let path = notebook.path.clone().filter(|path| !path.is_empty());
            path.or_else(|| notebook.name.clone())
        }),
        session: session.map(|session| session.session.clone()),
        id: kernel.id,
        name: kernel.name,
        state: kernel.execution_state,
        last_activity_at: kernel.last_activity,
        connections: kernel.connections,
    }
}

/// Interrupts, restarts or ends a kernel of a server, by its id or by the path of its notebook.
pub fn act(
    action: ServerKernelAction,
    choice: &ServerChoice,
    kernel: &str,
    cwd: &Path,
    engine: &Engine,
) -> Result<ServerKernelResult, Failure> {
    let (client, notices) = open(choice, cwd, engine)?;
    let id = find_running(&client, kernel)?;
    runtime::block_on(async {
        // Ending a kernel that does not exist would count as success.
        client.kernel(&id).await?;
        match action {
            ServerKernelAction::Interrupted => client.interrupt(&id).await,
            ServerKernelAction::Restarted => client.restart(&id).await,
            ServerKernelAction::Ended => client.delete(&id).await,
        }
    })??;
    Ok(ServerKernelResult {
        server: client.server().short_label(),
        kernel_id: id,
        action,
        notices,
    })
}

fn open(
    choice: &ServerChoice,
    cwd: &Path,
    engine: &Engine,
) -> Result<(ServerClient, Vec<UserNotice>), Failure> {
    let settings = engine.settings(cwd)?;
    let mut notices = settings.notices();
    let resolved = servers::resolve(&settings, choice)?;
    notices.extend(resolved.notices);
    let client = ServerClient::new(Arc::new(resolved.server))?;
    Ok((client, notices))
}
