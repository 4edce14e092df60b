//! The requests that clients send to a host. [`super::reply`] has the replies.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::kernels::SerializedSelection;
use cellwright_execution::ExecutionRequest;
use cellwright_kernel::KernelQuery;
use cellwright_output::{Artifacts, ProjectTag, Retention};
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum HostRequest {
    /// Run code.
    Execute(Box<ExecuteParams>),
    /// List the runs.
    ListRuns,
    /// Wait for the end of a run and return its report.
    WaitRun { run: String, options: WaitOptions },
    /// Return the output of the cell that runs.
    TailRun {
        run: String,
        /// Whether to send all following output.
        follow: bool,
    },
    /// Cancel a run.
    CancelRun { run: String },
    /// List the sessions.
    ListSessions,
    /// Interrupt the code that a session runs.
    Interrupt { session: SessionSelector },
    /// Give a session a fresh kernel.
    Reset { session: SessionSelector },
    /// End a session for one owner, or for all. (`stop` ends the host.)
    EndSession {
        session: SessionSelector,
        owner: Option<String>,
    },
    /// Query the kernel of a session.
    Query {
        session: SessionSelector,
        query: SessionQuery,
        timeout: Duration,
    },
    /// Return the path of a session's journal.
    Journal { session: SessionSelector },
    /// Return which cells of a notebook ran in which session.
    Histories { path: PathBuf },
}

impl HostRequest {
    /// The name of [`HostRequest::Execute`].
    pub const EXECUTE: &str = "execute";

    /// The names of all requests.
    pub const NAMES: [&str; 12] = [
        Self::EXECUTE,
        "list_runs",
        "wait_run",
        "tail_run",
        "cancel_run",
        "list_sessions",
        "interrupt",
        "reset",
        "end_session",
        "query",
        "journal",
        "histories",
    ];
}

/// Code to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExecuteParams {
    pub request: ExecutionRequest,
    /// Name of the session, or `@` and its number; `None` for a kernel that ends with the execution.
    pub session: Option<String>,
    /// The directory to which the name of the session belongs; `None`: `cwd`.
    #[serde(default)]
    pub session_dir: Option<PathBuf>,
    /// Whether a kernel with another working directory than `cwd` is reported.
    #[serde(default)]
    pub expects_cwd: bool,
    /// Whether a session of another directory is used if it is the only one with this name.
    #[serde(default)]
    pub any_cwd: bool,
    #[serde(default)]
    pub interaction: ReplyDetail,
    pub owner: String,
    /// Working directory of a new kernel.
    pub cwd: Directory,
    pub kernel: SerializedSelection,
    /// Whether to start with a fresh kernel.
    pub reset: bool,
    /// Where full outputs are stored; `None` to store none.
    #[serde(default)]
    pub artifacts: Option<ArtifactStoreParams>,
    pub wait_mode: WaitMode,
}

/// The replies that a client receives besides output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyDetail {
    #[default]
    OutputOnly,
    /// The id of the run.
    RunId,
    /// The id of the run, and input requests, which the client answers.
    RunIdAndInput,
}

/// Where full outputs are stored, for which project, and how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArtifactStoreParams {
    dir: PathBuf,
    /// The project of the client.
    #[serde(default)]
    project: Option<ProjectTag>,
    max_bytes: u64,
    max_age: Duration,
}

impl ArtifactStoreParams {
    pub fn new(artifacts: &Artifacts) -> Self {
        let dir = artifacts.dir();
        let retention = artifacts.retention();
        Self {
            // The host has another working directory.
            dir: std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()),
            project: artifacts.project(),
            max_bytes: retention.bytes,
            max_age: retention.age,
        }
    }

    pub fn artifacts(&self) -> Artifacts {
        let retention = Retention {
            bytes: self.max_bytes,
            age: self.max_age,
        };
        let artifacts = Artifacts::new(&self.dir, retention);
        match self.project {
            Some(project) => artifacts.for_project(project),
            None => artifacts,
        }
    }
}

/// What a client that waits for a run receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitOptions {
    /// Time limit of the wait.
    pub wait: Option<Duration>,
    /// Whether the report contains the outputs of its cells.
    pub outputs: bool,
    /// Whether to send the progress so far and everything that follows.
    pub follow: bool,
    /// Whether the run counts as not collected after its report was sent.
    pub keep: bool,
}

/// How a client waits for its code.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// It does not wait.
    Detached,
    /// It receives the output and the report.
    Stream {
        /// Time limit of the wait.
        wait: Option<Duration>,
        /// Whether the report contains the outputs of its cells.
        outputs: bool,
    },
    /// It receives the report.
    Report {
        /// Time limit of the wait.
        wait: Option<Duration>,
        /// Whether the report contains the outputs of its cells.
        outputs: bool,
    },
}

/// Selects a session by name or, after `@`, by id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionSelector {
    pub name: String,
    /// Directory of the session, if the user named one.
    pub cwd: Option<PathBuf>,
    /// Directory of the client; its sessions come first.
    pub here: Option<PathBuf>,
    pub owner: String,
}

/// A query for the kernel of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionQuery {
    Variables {
        limit: usize,
    },
    Inspect {
        code: String,
        /// Position in characters.
        cursor: usize,
        source: bool,
    },
    Complete {
        code: String,
        /// Position in characters.
        cursor: usize,
    },
}

impl From<SessionQuery> for KernelQuery {
    fn from(query: SessionQuery) -> Self {
        match query {
            SessionQuery::Variables { limit } => Self::Variables { limit },
            SessionQuery::Inspect {
                code,
                cursor,
                source,
            } => Self::Inspect {
                code,
                cursor,
                include_source: source,
            },
            SessionQuery::Complete { code, cursor } => Self::Complete { code, cursor },
        }
    }
}

/// What a client sends while its code runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Cancel the run.
    Cancel {
        /// Whether to stop without waiting for the code to react to the interrupt.
        forced: bool,
    },
    /// The answer to an input request; `None`: there is none.
    Input { text: Option<String> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_request() {
        let error = |name: &str| {
            let text = format!(r#"{{"do": "{name}"}}"#);
            let request = serde_json::from_str::<HostRequest>(&text);
            request.map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert!(error("nonsense").contains("unknown variant"));
        for name in HostRequest::NAMES {
            assert!(!error(name).contains("unknown variant"), "{name}");
        }
    }
}
