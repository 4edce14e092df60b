//! [`HostReply`]: what a host sends for a request. [`super::protocol`] has the requests.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_execution::feed::{FeedItem, ItemHead};
use cellwright_execution::{CellFreshness, ExecutionHistory, Listing};
use cellwright_execution::{ExecutionReport, ExecutionStatus, KernelReport};
use cellwright_kernel::session::{Activity, SessionReport};
use cellwright_stdext::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::FrameError;

/// A reply. [`HostReply::is_final`] replies end the answer to a request.
#[derive(Debug)]
pub enum HostReply {
    /// The execution was accepted as this run.
    Started {
        run: String,
        /// What the client should know before the output.
        notices: Vec<UserNotice>,
    },
    /// Output of the run.
    Item(FeedItem),
    /// The code requests input; the client answers with [`super::protocol::ClientMessage::Input`].
    InputRequested(InputPrompt),
    /// The run has ended.
    Finished(Box<ExecutionReport>),
    /// The run continues in the background.
    StillRunning(RunState),
    /// The result of a request that runs no code.
    Answer(Box<Answer>),
    /// The request failed.
    Failed(Box<Failure>),
}

impl HostReply {
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Started { .. } | Self::Item(_) | Self::InputRequested(_)
        )
    }
}

/// The results of the requests that run no code.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Runs(Vec<RunInfo>),
    Tail(RunTail),
    Cancelled(CancelResult),
    Sessions(Vec<SessionInfo>),
    Interrupted(InterruptResult),
    Reset(ResetResult),
    Ended(EndResult),
    Query(Value),
    Journal(Box<JournalInfo>),
    Histories(Vec<SessionHistory>),
}

/// `input()` in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputPrompt {
    pub prompt: String,
    /// Whether the answer must not be shown.
    pub secret: bool,
}

/// A run that continues.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunState {
    /// Id of the run.
    pub run: String,
    /// Name of the session; `null` for a kernel that ends with the run.
    pub session: Option<String>,
    /// How far the run is, or how it ended.
    pub status: ExecutionStatus,
}

/// A run in a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Id of the run.
    pub run: String,
    /// How far the run is, or how it ended.
    pub status: ExecutionStatus,
    /// Name of the session; `null` for a kernel that ends with the run.
    pub session: Option<String>,
    /// The directory of the session, or of the kernel that ends with the run.
    pub cwd: String,
    /// Owner of the call that started it.
    pub owner: String,
    /// The notebook, or the start of the code.
    pub label: String,
    /// Position of the cell that runs, or ran last, from 1.
    pub number: usize,
    /// Number of cells of the run.
    pub total: usize,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    pub started_at: String,
    /// Time since the running cell started, in milliseconds.
    pub elapsed_ms: Option<f64>,
    /// Whether a client has received the result.
    pub collected: bool,
}

/// The output of a run so far.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunTail {
    /// Id of the run.
    pub run: String,
    /// Name of the session; `null` for a kernel that ends with the run.
    pub session: Option<String>,
    /// How far the run is, or how it ended.
    pub status: ExecutionStatus,
    /// Position of the cell that runs, or ran last, from 1.
    pub number: usize,
    /// Number of cells of the run.
    pub total: usize,
    /// Time since the running cell started, in milliseconds.
    pub elapsed_ms: Option<f64>,
    /// Output of the cell so far, unless it was sent as items.
    pub text: Option<String>,
    /// The kernel, once it is known.
    #[serde(default)]
    pub kernel: Option<Box<KernelReport>>,
}

/// Result of cancelling a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelResult {
    /// Id of the run.
    pub run: String,
    /// Name of the session; `null` for a kernel that ends with the run.
    pub session: Option<String>,
    /// How far the run is, or how it ended.
    pub status: ExecutionStatus,
    /// Whether it was still running.
    pub cancelled: bool,
}

/// Result of interrupting a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InterruptResult {
    /// Name of the session.
    pub session: String,
    /// Whether code was running.
    pub interrupted: bool,
}

/// Result of resetting a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResetResult {
    /// Name of the session.
    pub session: String,
    /// Number of kernels that the session has had.
    pub generation: u32,
    /// Whether the owner now has a kernel apart from the one that other owners share.
    pub private: bool,
}

/// Result of ending a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndResult {
    /// Name of the session.
    pub session: String,
    /// `false` if other owners still use the session.
    pub ended: bool,
}

/// Where the journal of a session is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalInfo {
    pub journal: PathBuf,
    /// Number of runs that could not be written.
    pub lost: u64,
    pub kernel: SessionInfo,
}

/// A session in a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Number of the session; `@ID` names it in commands.
    pub id: u64,
    /// Name of the session.
    pub session: String,
    /// Name of the kernelspec, or of the runner; `null` without a kernel.
    pub name: Option<String>,
    /// Name of the backend.
    pub backend: Option<String>,
    /// Name or URL of the Jupyter server that the kernel is on; `null` for a kernel on this machine without a server.
    pub server: Option<String>,
    /// Id of the kernel on its server.
    pub kernel_id: Option<String>,
    /// Path of the interpreter.
    pub interpreter: Option<String>,
    /// Programming language.
    pub language: Option<String>,
    /// Version of the language.
    pub version: Option<String>,
    /// Process id of the kernel.
    pub pid: Option<u32>,
    /// The directory of the session.
    pub cwd: String,
    /// What the kernel does.
    pub state: SessionState,
    /// What the session runs; `null` if it runs nothing.
    pub busy: Option<BusyInfo>,
    /// Number of queued calls.
    pub waiting: usize,
    /// Owners that use the session.
    pub owners: Vec<String>,
    /// The owner that has this kernel for itself.
    pub private_to: Option<String>,
    /// Number of kernels that the session has had.
    pub generation: u32,
    /// Number of executions.
    pub executions: u64,
    /// Memory of the kernel and its children, in bytes.
    pub memory_bytes: Option<u64>,
    /// Time since the session started, in milliseconds.
    pub age_ms: u64,
    /// Time since the last execution ended, in milliseconds.
    pub idle_ms: u64,
}

/// What the kernel of a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// There is no kernel.
    Empty,
    /// The kernel starts.
    Starting,
    /// The kernel runs nothing.
    Idle,
    /// The kernel runs code.
    Busy,
}

impl SessionState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
        }
    }
}

/// What a session runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BusyInfo {
    /// Owner of the call.
    pub owner: String,
    /// The notebook, or the start of the code.
    pub label: String,
    /// Start of the execution.
    #[schemars(with = "Timestamp")]
    pub started_at: String,
    /// Time since the start, in milliseconds.
    pub elapsed_ms: u64,
}

/// Which cells of a notebook ran in a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionHistory {
    pub id: u64,
    pub session: String,
    /// The directory of the session.
    pub cwd: PathBuf,
    /// Generation of the live kernel.
    pub generation: Option<u32>,
    pub history: ExecutionHistory,
}

impl SessionHistory {
    /// The freshness of each cell.
    pub fn states(&self, listing: &Listing) -> Vec<Option<CellFreshness>> {
        self.history.freshness(listing, self.generation)
    }
}

impl From<&SessionReport> for SessionInfo {
    fn from(report: &SessionReport) -> Self {
        let (state, busy) = match &report.activity {
            Activity::Empty => (SessionState::Empty, None),
            Activity::Starting => (SessionState::Starting, None),
            Activity::Idle => (SessionState::Idle, None),
            Activity::Busy {
                owner,
                label,
                since,
            } => {
                let busy = BusyInfo {
                    owner: owner.clone(),
                    label: label.clone(),
                    started_at: rfc3339::format_seconds(*since),
                    elapsed_ms: whole_ms(
                        SystemTime::now().duration_since(*since).unwrap_or_default(),
                    ),
                };
                (SessionState::Busy, Some(busy))
            }
        };
        let kernel = report.kernel.as_ref();
        let path = |path: &Path| path.display().to_string();
        Self {
            id: report.id.0,
            session: report.key.name.clone(),
            name: kernel.map(|kernel| kernel.name.clone()),
            backend: kernel.map(|kernel| kernel.backend.to_owned()),
            server: kernel.and_then(|kernel| kernel.server.clone()),
            kernel_id: kernel.and_then(|kernel| kernel.kernel_id.clone()),
            interpreter: kernel
                .and_then(|kernel| kernel.interpreter.as_deref())
                .map(path),
            language: kernel.and_then(|kernel| kernel.language.clone()),
            version: kernel.and_then(|kernel| kernel.version.clone()),
            pid: kernel.and_then(|kernel| kernel.pid),
            cwd: path(&report.key.cwd),
            state,
            busy,
            waiting: report.waiting,
            owners: report.owners.clone(),
            private_to: report.private_to.clone(),
            generation: report.generation,
            executions: report.executions,
            memory_bytes: report.memory,
            age_ms: whole_ms(report.age),
            idle_ms: whole_ms(report.idle),
        }
    }
}

/// A duration in whole milliseconds.
fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A reply in the line of a frame. The report and the data of an item follow as the payload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReplyHead {
    Started {
        run: String,
        #[serde(default)]
        notices: Vec<UserNotice>,
    },
    Item(ItemHead),
    InputRequested(InputPrompt),
    Finished,
    StillRunning(RunState),
    Answer(Box<Answer>),
    Failed(Box<Failure>),
}

impl HostReply {
    /// Encodes a reply for a socket.
    pub(super) fn encode(&self) -> Result<(ReplyHead, Cow<'_, [u8]>), FrameError> {
        let mut payload = Cow::Borrowed(&[][..]);
        let reply = match self {
            Self::Started { run, notices } => ReplyHead::Started {
                run: run.clone(),
                notices: notices.clone(),
            },
            Self::Item(item) => {
                let (head, data) = item.encode()?;
                payload = data;
                ReplyHead::Item(head)
            }
            Self::InputRequested(prompt) => ReplyHead::InputRequested(prompt.clone()),
            Self::Finished(report) => {
                let report = serde_json::to_vec(report).map_err(FrameError::InvalidJson)?;
                payload = Cow::Owned(report);
                ReplyHead::Finished
            }
            Self::StillRunning(state) => ReplyHead::StillRunning(state.clone()),
            Self::Answer(answer) => ReplyHead::Answer(answer.clone()),
            Self::Failed(failure) => ReplyHead::Failed(failure.clone()),
        };
        Ok((reply, payload))
    }

    /// Decodes a reply from a socket.
    pub(super) fn decode(head: ReplyHead, payload: Vec<u8>) -> Result<Self, FrameError> {
        Ok(match head {
            ReplyHead::Started { run, notices } => Self::Started { run, notices },
            ReplyHead::Item(head) => Self::Item(FeedItem::decode(head, payload)?),
            ReplyHead::InputRequested(prompt) => Self::InputRequested(prompt),
            ReplyHead::Finished => {
                let report = serde_json::from_slice(&payload);
                Self::Finished(Box::new(report.map_err(FrameError::InvalidJson)?))
            }
            ReplyHead::StillRunning(state) => Self::StillRunning(state),
            ReplyHead::Answer(answer) => Self::Answer(answer),
            ReplyHead::Failed(failure) => Self::Failed(failure),
        })
    }
}
