//! [`HostReply`]: what a host sends for a request. [`super::protocol`] has the requests.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_execution::feed::{FeedItem, ItemHead};
use cellwright_execution::{CellFreshness, ExecutionHistory, Listing};
use cellwright_execution::{ExecutionReport, ExecutionStatus, KernelReport};
use cellwright_kernel::session::{Activity, SessionReport};
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    pub run: String,
    pub session: Option<String>,
    pub status: ExecutionStatus,
}

/// A run in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunInfo {
    pub run: String,
    pub status: ExecutionStatus,
    pub session: Option<String>,
    pub owner: String,
    pub label: String,
    /// Position of the cell that runs, or ran last.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    /// Start, in seconds since 1970.
    pub started_at: u64,
    /// Time since the running cell started, in seconds.
    pub elapsed_s: Option<f64>,
    /// Whether a client has received the result.
    pub collected: bool,
}

/// The output of a run so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunTail {
    pub run: String,
    pub session: Option<String>,
    pub status: ExecutionStatus,
    /// Position of the cell that runs, or ran last.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    /// Time since the running cell started, in seconds.
    pub elapsed_s: Option<f64>,
    /// Output of the cell so far, unless it was sent as items.
    pub text: Option<String>,
    /// The kernel, once it is known.
    #[serde(default)]
    pub kernel: Option<KernelReport>,
}

/// Result of cancelling a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CancelResult {
    pub run: String,
    pub session: Option<String>,
    pub status: ExecutionStatus,
    /// Whether it was still running.
    pub cancelled: bool,
}

/// Result of interrupting a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterruptResult {
    pub session: String,
    /// Whether code was running.
    pub interrupted: bool,
}

/// Result of resetting a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResetResult {
    pub session: String,
    pub generation: u32,
    /// Whether the owner now has a kernel apart from the one that other owners share.
    pub private: bool,
}

/// Result of ending a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndResult {
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionInfo {
    pub id: u64,
    pub session: String,
    pub name: Option<String>,
    pub backend: Option<String>,
    pub interpreter: Option<String>,
    pub language: Option<String>,
    pub version: Option<String>,
    pub pid: Option<u32>,
    /// The directory of the session.
    pub cwd: String,
    pub state: SessionState,
    pub busy: Option<BusyInfo>,
    /// Number of queued calls.
    pub waiting: usize,
    pub owners: Vec<String>,
    pub private_to: Option<String>,
    pub generation: u32,
    pub executions: u64,
    pub memory_bytes: Option<u64>,
    pub age_s: u64,
    pub idle_s: u64,
}

/// What the kernel of a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    Empty,
    Starting,
    Idle,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BusyInfo {
    pub owner: String,
    pub label: String,
    /// Start, in seconds since 1970.
    pub since: u64,
    /// Time since the start, in seconds.
    pub seconds: u64,
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
                    since: unix_seconds(*since),
                    seconds: seconds_since(*since),
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
            age_s: report.age.as_secs(),
            idle_s: report.idle.as_secs(),
        }
    }
}

/// Seconds since 1970.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Seconds since a time in the past.
pub(super) fn seconds_since(time: SystemTime) -> u64 {
    let elapsed = SystemTime::now().duration_since(time);
    elapsed.unwrap_or_default().as_secs()
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
