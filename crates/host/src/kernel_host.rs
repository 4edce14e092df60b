//! [`KernelHost`]: the owner of sessions, either the shared host or this process, and its requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::runtime::runtime;
use cellwright_kernel::BoxFuture;
use serde_json::{Map, Value};

use super::channel::RequestChannel;
use super::connect;
use super::connection::Client;
use super::error::HostError;
use super::in_process::InProcessHost;
use super::protocol::{HostRequest, SessionQuery, SessionSelector};
use super::reply::{
    Answer, CancelResult, EndResult, HostReply, InterruptResult, JournalInfo, ResetResult, RunInfo,
    RunTail, SessionHistory, SessionInfo,
};
use super::suspend_check::SuspendCheck;

/// Time limit for sending a request.
const SEND_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit of a request that waits for no kernel.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Additional time for a request that waits for a kernel to react.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(90);

/// The owner of sessions; clones share it.
#[derive(Clone)]
pub enum KernelHost {
    /// The background process of this user.
    Shared,
    /// This process; its kernels end with it.
    InProcess(Arc<InProcessHost>),
}

/// Extracts the expected variant of an answer.
macro_rules! expect_answer {
    ($answer:expr, $variant:path) => {
        match $answer {
            None => Ok(None),
            Some($variant(value)) => Ok(Some(value)),
            Some(_) => Err(Failure::from(HostError::UnexpectedReply)),
        }
    };
}

impl KernelHost {
    /// Creates a host in this process. Must be called within a runtime.
    pub fn in_process(engine: Engine) -> Result<Self, Failure> {
        let host = InProcessHost::start(engine, None)?;
        Ok(Self::InProcess(Arc::new(host)))
    }

    /// Returns a host with separate sessions. An in-process host shares the limit on sessions with this one; the shared
    /// host is the same. Must be called within a runtime.
    pub fn separate(&self, engine: Engine) -> Result<Self, Failure> {
        match self {
            Self::Shared => Ok(Self::Shared),
            Self::InProcess(sibling) => {
                let host = InProcessHost::start(engine, Some(sibling))?;
                Ok(Self::InProcess(Arc::new(host)))
            }
        }
    }

    /// Whether kernels end with this process.
    pub fn is_in_process(&self) -> bool {
        matches!(self, Self::InProcess(_))
    }

    /// Ends the kernels of this process; the shared host stays.
    pub fn shut_down(&self) -> BoxFuture<'static, Map<String, Value>> {
        match self {
            Self::Shared => Box::pin(async { Map::new() }),
            Self::InProcess(host) => {
                let host = Arc::clone(host);
                Box::pin(async move { host.shut_down().await })
            }
        }
    }

    /// Opens a request. The shared host is started if there is none.
    pub(super) async fn open_or_start(
        &self,
        request: HostRequest,
        idle_exit: Option<Duration>,
    ) -> Result<RequestChannel, Failure> {
        match self {
            Self::Shared => {
                let mut client = connect::connect_or_start(idle_exit).await?;
                send(&mut client, &request).await?;
                Ok(RequestChannel::Socket(Box::new(client)))
            }
            Self::InProcess(host) => Ok(host.open(request)),
        }
    }

    /// Opens a request; `None` if there is no host.
    pub(super) async fn open(
        &self,
        request: HostRequest,
    ) -> Result<Option<RequestChannel>, Failure> {
        match self {
            Self::Shared => {
                let Some(mut client) = connect::connect_running().await? else {
                    return Ok(None);
                };
                send(&mut client, &request).await?;
                Ok(Some(RequestChannel::Socket(Box::new(client))))
            }
            Self::InProcess(host) => Ok(Some(host.open(request))),
        }
    }

    /// Sends a request that runs no code and returns its answer; `None` if there is no host. `extra` is the time that
    /// the answer may take in addition to the usual limit.
    async fn request(
        &self,
        request: HostRequest,
        extra: Duration,
    ) -> Result<Option<Answer>, Failure> {
        let Some(mut channel) = self.open(request).await? else {
            return Ok(None);
        };
        let pid = channel.host_pid();
        let answer = async {
            loop {
                match channel.next().await? {
                    HostReply::Answer(answer) => return Ok(Some(*answer)),
                    HostReply::Failed(failure) => return Err(*failure),
                    reply if reply.is_final() => return Err(HostError::UnexpectedReply.into()),
                    _ => {}
                }
            }
        };
        let mut suspend_check = SuspendCheck::new(pid);
        tokio::select! {
            biased;
            answer = tokio::time::timeout(REPLY_TIMEOUT + extra, answer) => match answer {
                Ok(answer) => answer,
                Err(_) => Err(HostError::Unresponsive { pid }.into()),
            },
            () = suspend_check.suspended() => Err(HostError::Unresponsive { pid }.into()),
        }
    }

    /// Waits for a request on a thread that has no runtime.
    pub fn block_on<T>(
        &self,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match self {
            Self::Shared => runtime()?.block_on(request),
            Self::InProcess(host) => host.runtime().block_on(request),
        }
    }
}

/// The requests that run no code. Each returns `None` if there is no host.
impl KernelHost {
    pub async fn list_runs(&self) -> Result<Option<Vec<RunInfo>>, Failure> {
        let answer = self.request(HostRequest::ListRuns, Duration::ZERO).await?;
        expect_answer!(answer, Answer::Runs)
    }

    /// The output of a run so far.
    pub async fn tail_run(&self, run: &str) -> Result<Option<RunTail>, Failure> {
        let request = HostRequest::TailRun {
            run: run.to_owned(),
            follow: false,
        };
        let answer = self.request(request, Duration::ZERO).await?;
        expect_answer!(answer, Answer::Tail)
    }

    pub async fn cancel_run(&self, run: &str) -> Result<Option<CancelResult>, Failure> {
        let request = HostRequest::CancelRun {
            run: run.to_owned(),
        };
        let answer = self.request(request, Duration::ZERO).await?;
        expect_answer!(answer, Answer::Cancelled)
    }

    pub async fn list_sessions(&self) -> Result<Option<Vec<SessionInfo>>, Failure> {
        let answer = self
            .request(HostRequest::ListSessions, Duration::ZERO)
            .await?;
        expect_answer!(answer, Answer::Sessions)
    }

    /// Interrupts the code that a session runs.
    pub async fn interrupt(
        &self,
        session: SessionSelector,
    ) -> Result<Option<InterruptResult>, Failure> {
        let request = HostRequest::Interrupt { session };
        let answer = self.request(request, KERNEL_TIMEOUT).await?;
        expect_answer!(answer, Answer::Interrupted)
    }

    /// Gives a session a fresh kernel.
    pub async fn reset(&self, session: SessionSelector) -> Result<Option<ResetResult>, Failure> {
        let request = HostRequest::Reset { session };
        let answer = self.request(request, KERNEL_TIMEOUT).await?;
        expect_answer!(answer, Answer::Reset)
    }

    /// Ends a session for one owner, or for all.
    pub async fn end_session(
        &self,
        session: SessionSelector,
        owner: Option<String>,
    ) -> Result<Option<EndResult>, Failure> {
        let request = HostRequest::EndSession { session, owner };
        let answer = self.request(request, KERNEL_TIMEOUT).await?;
        expect_answer!(answer, Answer::Ended)
    }

    /// Queries the kernel of a session, which may be busy for at most `timeout`.
    pub async fn query(
        &self,
        session: SessionSelector,
        query: SessionQuery,
        timeout: Duration,
    ) -> Result<Option<Value>, Failure> {
        let request = HostRequest::Query {
            session,
            query,
            timeout,
        };
        let answer = self.request(request, timeout).await?;
        expect_answer!(answer, Answer::Query)
    }

    /// Where the journal of a session is.
    pub async fn journal(
        &self,
        session: SessionSelector,
    ) -> Result<Option<Box<JournalInfo>>, Failure> {
        let request = HostRequest::Journal { session };
        let answer = self.request(request, Duration::ZERO).await?;
        expect_answer!(answer, Answer::Journal)
    }

    /// Which cells of a notebook ran in which session, the latest session first.
    pub async fn histories(&self, path: PathBuf) -> Result<Option<Vec<SessionHistory>>, Failure> {
        let request = HostRequest::Histories { path };
        let answer = self.request(request, Duration::ZERO).await?;
        expect_answer!(answer, Answer::Histories)
    }
}

/// Sends a request. A host that does not read it is reported: a large request exceeds the buffer of the socket.
async fn send(client: &mut Client, request: &HostRequest) -> Result<(), Failure> {
    let pid = client.host.pid;
    let mut suspend_check = SuspendCheck::new(pid);
    let sent = tokio::select! {
        biased;
        sent = tokio::time::timeout(SEND_TIMEOUT, client.connection.send(request)) => sent.ok(),
        () = suspend_check.suspended() => None,
    };
    let sent = sent.ok_or(HostError::Unresponsive { pid })?;
    Ok(sent.map_err(HostError::from)?)
}

impl std::fmt::Debug for KernelHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_in_process() {
            "InProcess"
        } else {
            "Shared"
        })
    }
}
