//! Where a notebook is open: Jupyter servers, rooms, pages and kernels.

use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_engine::open_notebooks::{OpenNotebook, describe_unanswered};
use cellwright_notebook::NotebookError;
use schemars::JsonSchema;
use serde::Serialize;

use super::file_path::FilePath;
use super::table::Table;

/// Where a notebook is open.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LocationReport {
    /// Path of the notebook.
    path: String,
    /// The servers that have the notebook open.
    pub servers: Vec<ServerLocation>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A server that has the notebook open.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerLocation {
    /// Address of the server, without its token.
    url: String,
    /// Process id of the server.
    pid: i32,
    /// Path of the notebook below the server's directory.
    path: String,
    /// Whether a collaboration room has the notebook: then writes are refused.
    room: bool,
    /// The kernel of the notebook; `null` if it has none.
    kernel: Option<KernelLocation>,
}

/// The kernel of the notebook's session.
#[derive(Debug, Serialize, JsonSchema)]
struct KernelLocation {
    /// Id of the kernel.
    id: String,
    /// Name of the kernelspec.
    name: String,
    /// What the kernel does, as the server reports it.
    state: Option<String>,
    /// Number of connected pages.
    connections: u64,
    /// Path of the connection file, for `eval --existing`; `null` if the file does not exist.
    connection_file: Option<PathBuf>,
}

/// Asks the Jupyter servers of this user about a notebook.
pub fn locate(path: &FilePath, engine: &Engine) -> Result<LocationReport, Failure> {
    if !path.open_path().exists() {
        let missing = path.display_path().to_owned();
        return Err(path.failure(NotebookError::NotFound { path: missing }));
    }
    if engine.open_notebooks.runtime_dir().is_none() {
        let message = "The runtime directory of Jupyter is unknown";
        return Err(
            Failure::new(Kind::BadFile, message).hint("set `HOME` or `JUPYTER_RUNTIME_DIR`")
        );
    }
    let located = engine.open_notebooks.locate(path.open_path());
    let notice = |server| UserNotice::new(NoticeKind::ServerNotAsked, describe_unanswered(server));
    Ok(LocationReport {
        path: path.to_text(),
        notices: located.unanswered.iter().map(notice).collect(),
        servers: located
            .open
            .into_iter()
            .map(|open| ServerLocation::new(open, engine))
            .collect(),
    })
}

impl ServerLocation {
    fn new(open: OpenNotebook, engine: &Engine) -> Self {
        let connection_file = |id: &str| {
            let dir = engine.open_notebooks.runtime_dir()?;
            Some(dir.join(format!("kernel-{id}.json"))).filter(|file| file.exists())
        };
        Self {
            url: open.url,
            pid: open.pid,
            path: open.path,
            room: open.room,
            kernel: open.kernel.map(|kernel| KernelLocation {
                connection_file: connection_file(&kernel.id),
                id: kernel.id,
                name: kernel.name,
                state: kernel.state,
                connections: kernel.connections,
            }),
        }
    }
}

impl LocationReport {
    /// The servers as a table; `None` if no server has the notebook open.
    pub fn table(&self) -> Option<Table> {
        let mut table = Table::new(["SERVER", "PID", "ROOM", "PAGES", "KERNEL", "STATE"])
            .clip("SERVER")
            .hide_first(&["PID", "STATE"]);
        for server in &self.servers {
            let kernel = server.kernel.as_ref();
            let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            table.push([
                server.url.clone(),
                server.pid.to_string(),
                if server.room { "live" } else { "-" }.to_owned(),
                text(kernel.map(|kernel| kernel.connections.to_string())),
                text(kernel.map(|kernel| kernel.name.clone())),
                text(kernel.and_then(|kernel| kernel.state.clone())),
            ]);
        }
        (!table.is_empty()).then_some(table)
    }

    /// One sentence for people: no server has the notebook open.
    pub fn describe_closed(&self) -> String {
        format!("{} is not open in a Jupyter server.\n", self.path)
    }

    /// The connection files of the kernels.
    pub fn connection_files(&self) -> impl Iterator<Item = &PathBuf> {
        let kernels = self
            .servers
            .iter()
            .filter_map(|server| server.kernel.as_ref());
        kernels.filter_map(|kernel| kernel.connection_file.as_ref())
    }
}
