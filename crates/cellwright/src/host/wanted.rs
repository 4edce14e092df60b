//! What commands want of the host that keeps their kernels, as it goes over the socket.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::Question;
use cellwright_output::{Artifacts, Retention};
use serde::{Deserialize, Serialize};

use crate::evaluation::Wish;
use crate::kernels::KernelChoice;

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// Run code.
    Eval(Box<EvalWanted>),
    /// Which runs are there?
    Runs,
    /// What came of a run? Its end is waited for.
    RunWait {
        run: String,
        /// How long.
        wait: Option<Duration>,
        /// Whether the answer is wanted as a document.
        document: bool,
    },
    /// What has a run said so far?
    RunTail {
        run: String,
        /// Whether what it says from now on is wanted, too.
        follow: bool,
        /// Whether all of it is wanted in the answer.
        #[serde(default)]
        document: bool,
    },
    /// End a run.
    RunCancel { run: String },
    /// Which sessions are there?
    Kernels,
    /// Stop what a session runs.
    Interrupt { session: Who },
    /// A fresh kernel for a session.
    Reset { session: Who },
    /// End a session; for one owner, or for everybody. Not `stop`: that ends the host.
    EndSession { session: Who, owner: Option<String> },
    /// Ask a session's kernel something.
    Ask {
        session: Who,
        question: Asked,
        patience: Duration,
    },
    /// Where is written what ran on a session?
    Journal { session: Who },
    /// Which cells of a notebook ran on which session?
    Freshness { path: PathBuf },
}

impl Wanted {
    /// The name of [`Wanted::Eval`].
    pub(crate) const EVAL: &str = "eval";

    /// What can be wanted.
    pub(crate) const NAMES: [&str; 12] = [
        Self::EVAL,
        "runs",
        "run_wait",
        "run_tail",
        "run_cancel",
        "kernels",
        "interrupt",
        "reset",
        "end_session",
        "ask",
        "journal",
        "freshness",
    ];
}

/// Code to run on a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EvalWanted {
    pub(crate) wish: Wish,
    /// `None`: a kernel of its own.
    pub(crate) session: Option<String>,
    /// Whether one of that name will do that lives in another folder, if there is just one.
    #[serde(default)]
    pub(crate) anywhere: bool,
    /// Whether the command is told the name of the run at once, and can answer `input()`.
    #[serde(default)]
    pub(crate) talk: Talk,
    pub(crate) owner: String,
    pub(crate) cwd: PathBuf,
    pub(crate) kernel: KernelChoice,
    /// Whether it begins with a fresh kernel.
    pub(crate) reset: bool,
    /// Where full outputs are kept; nowhere if the command knows no place.
    #[serde(default)]
    pub(crate) artifacts: Option<ArtifactsPlace>,
    pub(crate) attach: Attach,
}

/// What is said to the command while its code runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Talk {
    /// Only what the code says.
    #[default]
    Little,
    /// The name of the run, too.
    Name,
    /// The name of the run, and what `input()` asks: the command answers.
    Questions,
}

/// Where full outputs are kept, and how long: where the command will look for them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ArtifactsPlace {
    folder: PathBuf,
    most_bytes: u64,
    age: Duration,
}

impl ArtifactsPlace {
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
pub(crate) enum Attach {
    /// It goes at once.
    Not,
    /// It waits for the end, or as long as this, and shows what is said meanwhile.
    Watching {
        wait: Option<Duration>,
        /// Whether the end is wanted as a document, too.
        document: bool,
    },
    /// It waits for the end, or as long as this, for the answer as a document.
    Document { wait: Option<Duration> },
}

/// Which session, as people say it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Who {
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
pub(crate) enum Asked {
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

impl From<Asked> for Question {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Variables { limit } => Self::Variables { limit },
            Asked::Inspect {
                code,
                cursor,
                source,
            } => Self::Inspect {
                code,
                cursor,
                source,
            },
            Asked::Complete { code, cursor } => Self::Complete { code, cursor },
        }
    }
}

/// What a command may say while its code runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Meanwhile {
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
            let wanted = serde_json::from_str::<Wanted>(&text);
            wanted.map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert!(error("nonsense").contains("unknown variant"));
        for name in Wanted::NAMES {
            assert!(!error(name).contains("unknown variant"), "{name}");
        }
    }
}
