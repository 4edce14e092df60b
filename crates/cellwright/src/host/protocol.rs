//! The requests that clients send to a host, as JSON on the socket.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::KernelQuery;
use cellwright_output::{Artifacts, Retention};
use serde::{Deserialize, Serialize};

use crate::execution::ExecutionRequest;
use crate::kernels::KernelTarget;

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum HostRequest {
    /// Run code.
    Execute(Box<ExecuteParams>),
    /// Which runs are there?
    ListRuns,
    /// What came of a run? Its end is waited for.
    WaitRun {
        run: String,
        /// How long.
        wait: Option<Duration>,
        /// Whether the answer is wanted as a document.
        document: bool,
    },
    /// What has a run said so far?
    TailRun {
        run: String,
        /// Whether what it says from now on is wanted, too.
        follow: bool,
        /// Whether all of it is wanted in the answer.
        #[serde(default)]
        document: bool,
    },
    /// End a run.
    CancelRun { run: String },
    /// Which sessions are there?
    ListSessions,
    /// Stop what a session runs.
    Interrupt { session: SessionSelector },
    /// A fresh kernel for a session.
    Reset { session: SessionSelector },
    /// End a session; for one owner, or for everybody. Not `stop`: that ends the host.
    EndSession {
        session: SessionSelector,
        owner: Option<String>,
    },
    /// Ask a session's kernel something.
    Query {
        session: SessionSelector,
        question: SessionQuery,
        patience: Duration,
    },
    /// Where is written what ran on a session?
    Journal { session: SessionSelector },
    /// Which cells of a notebook ran on which session?
    Freshness { path: PathBuf },
}

impl HostRequest {
    /// The name of [`HostRequest::Execute`].
    pub(crate) const EXECUTE: &str = "execute";

    /// What can be wanted.
    pub(crate) const NAMES: [&str; 12] = [
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
        "freshness",
    ];
}

/// Code to run on a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecuteParams {
    pub(crate) request: ExecutionRequest,
    /// `None`: a kernel of its own.
    pub(crate) session: Option<String>,
    /// Whether one of that name will do that lives in another folder, if there is just one.
    #[serde(default)]
    pub(crate) any_cwd: bool,
    /// Whether the command is told the name of the run at once, and can answer `input()`.
    #[serde(default)]
    pub(crate) interaction: Interaction,
    pub(crate) owner: String,
    pub(crate) cwd: PathBuf,
    pub(crate) kernel: KernelTarget,
    /// Whether it begins with a fresh kernel.
    pub(crate) reset: bool,
    /// Where full outputs are kept; nowhere if the command knows no place.
    #[serde(default)]
    pub(crate) artifacts: Option<ArtifactStoreParams>,
    pub(crate) wait_mode: WaitMode,
}

/// What is said to the command while its code runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Interaction {
    /// Only what the code says.
    #[default]
    OutputOnly,
    /// The name of the run, too.
    RunId,
    /// The name of the run, and what `input()` asks: the command answers.
    RunIdAndInput,
}

/// Where full outputs are kept, and how long: where the command will look for them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ArtifactStoreParams {
    folder: PathBuf,
    most_bytes: u64,
    age: Duration,
}

impl ArtifactStoreParams {
    pub(crate) fn new(artifacts: &Artifacts, retention: &Retention) -> Self {
        let folder = artifacts.dir();
        Self {
            // The host is somewhere else.
            folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
            most_bytes: retention.bytes,
            age: retention.age,
        }
    }

    pub(crate) fn artifacts(&self) -> Artifacts {
        let retention = Retention {
            bytes: self.most_bytes,
            age: self.age,
        };
        Artifacts::new(&self.folder, retention)
    }
}

/// What the command does while its code runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitMode {
    /// It goes at once.
    Detached,
    /// It waits for the end, or as long as this, and shows what is said meanwhile.
    Stream {
        wait: Option<Duration>,
        /// Whether the end is wanted as a document, too.
        document: bool,
    },
    /// It waits for the end, or as long as this, for the answer as a document.
    Report { wait: Option<Duration> },
}

/// Which session, as people say it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionSelector {
    pub(crate) name: String,
    /// Where its kernel started, if that was said.
    pub(crate) cwd: Option<PathBuf>,
    /// Where the command runs: sessions of this folder come first.
    pub(crate) here: Option<PathBuf>,
    /// On whose behalf.
    pub(crate) owner: String,
}

/// What can be asked of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionQuery {
    Variables {
        limit: usize,
    },
    Inspect {
        code: String,
        cursor: usize,
        source: bool,
    },
    Complete {
        code: String,
        cursor: usize,
    },
}

impl From<SessionQuery> for KernelQuery {
    fn from(asked: SessionQuery) -> Self {
        match asked {
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

/// What a command may say while its code runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum ClientMessage {
    /// Stop it.
    Cancel {
        /// Without waiting for the code to react.
        at_once: bool,
    },
    /// What somebody typed; `None`: nobody will.
    Input { text: Option<String> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_that_is_understood() {
        let error = |name: &str| {
            let text = format!(r#"{{"do": "{name}"}}"#);
            let wanted = serde_json::from_str::<HostRequest>(&text);
            wanted.map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert!(error("nonsense").contains("unknown variant"));
        for name in HostRequest::NAMES {
            assert!(!error(name).contains("unknown variant"), "{name}");
        }
    }
}
