//! Code that runs for a call: what is said to whoever runs it, and what comes back.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::progress::ProgressViewer;
use crate::execution::ExecutionSummary;
use crate::failure::{Failure, Kind};
use crate::host::client;
use crate::host::connection::Connection;
use crate::host::error::HostError;
use crate::host::frame::Frame;
use crate::host::kernel_host::KernelHost;
use crate::host::protocol::{ClientMessage, ExecuteParams, HostRequest};

/// How long code that was cancelled has to end: a cell is given time to react.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may take if nobody waits for the code.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Code that runs for a call. Dropped, it is cancelled.
pub(super) struct Conversation {
    connection: Connection,
    reach: KernelHost,
    /// The name of the run, once it is known.
    run: Option<String>,
    begun: Instant,
}

/// What came of it.
pub(super) enum Said {
    /// It has ended.
    Ended {
        verdict: Box<ExecutionSummary>,
        document: Value,
    },
    /// It goes on, as this run.
    GoesOn(Value),
    /// It waits for somebody to type something.
    Asks(Question),
}

/// What code asks for with `input()`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Question {
    pub(super) prompt: String,
    /// Whether the answer is nobody's business.
    pub(super) secret: bool,
}

impl Conversation {
    /// Has code run.
    pub(super) async fn begin(
        reach: &KernelHost,
        wanted: ExecuteParams,
        idle_exit: Option<Duration>,
    ) -> Result<Self, Failure> {
        let wanted = HostRequest::Execute(Box::new(wanted));
        let mut connection = reach.connect(idle_exit).await?;
        connection.send(&wanted).await.map_err(HostError::from)?;
        Ok(Self {
            connection,
            reach: reach.clone(),
            run: None,
            begun: Instant::now(),
        })
    }

    /// Waits for the end of a run.
    pub(super) async fn attend(
        reach: &KernelHost,
        run: &str,
        wait: Option<Duration>,
    ) -> Result<Self, Failure> {
        let wanted = HostRequest::WaitRun {
            run: run.to_owned(),
            wait,
            document: true,
        };
        let Some(mut connection) = reach.connect_existing().await? else {
            return Err(Failure::host_not_running());
        };
        connection.send(&wanted).await.map_err(HostError::from)?;
        Ok(Self {
            connection,
            reach: reach.clone(),
            run: Some(run.to_owned()),
            begun: Instant::now(),
        })
    }

    /// Listens until something is to be told. Cancelled, the code is stopped, and what became of it is told.
    pub(super) async fn listen(
        &mut self,
        cancelled: &CancellationToken,
        progress: &mut Option<ProgressViewer>,
    ) -> Result<Said, Failure> {
        let mut asked = Asked::Nothing;
        let mut patience = Instant::now();
        loop {
            let tick = progress.as_ref().map(ProgressViewer::next);
            tokio::select! {
                biased;
                () = cancelled.cancelled(), if asked == Asked::Nothing => {
                    asked = Asked::Requested;
                    patience = Instant::now() + CANCEL_TIMEOUT;
                    self.say(&ClientMessage::Cancel { at_once: false }).await?;
                }
                () = sleep_until(patience), if asked == Asked::Requested => {
                    asked = Asked::Forced;
                    patience = Instant::now() + AT_ONCE;
                    self.say(&ClientMessage::Cancel { at_once: true }).await?;
                }
                () = sleep_until(patience), if asked == Asked::Forced => {
                    let message = "The code could not be stopped in time";
                    return Err(Failure::new(Kind::Kernel, message));
                }
                frame = self.connection.next() => {
                    let frame = frame.map_err(HostError::from)?.ok_or(HostError::Disconnected)?;
                    if let Some(said) = self.heard(&frame)? {
                        return Ok(said);
                    }
                }
                () = sleep_until(tick.unwrap_or(patience)), if tick.is_some() => {
                    if let (Some(progress), Some(run)) = (progress.as_mut(), &self.run) {
                        progress.tell(&self.reach, run, self.begun.elapsed()).await;
                    } else if let Some(progress) = progress.as_mut() {
                        progress.later();
                    }
                }
            }
        }
    }

    /// Says what somebody typed; `None`: nobody will.
    pub(super) async fn answer(&mut self, text: Option<String>) -> Result<(), Failure> {
        self.say(&ClientMessage::Input { text }).await
    }

    async fn say(&mut self, meanwhile: &ClientMessage) -> Result<(), Failure> {
        let said = self.connection.send(meanwhile).await;
        Ok(said.map_err(HostError::from)?)
    }

    fn heard(&mut self, frame: &Frame) -> Result<Option<Said>, Failure> {
        #[derive(Deserialize)]
        struct Head {
            run: Option<String>,
            input: Option<Question>,
        }
        let Some(mut end) = client::final_reply(frame)? else {
            let head: Head = frame.parse().map_err(HostError::from)?;
            self.run = head.run.or(self.run.take());
            return Ok(head.input.map(Said::Asks));
        };
        let Some(verdict) = end.get_mut("verdict").map(Value::take) else {
            return Ok(Some(Said::GoesOn(end)));
        };
        let verdict = ExecutionSummary::deserialize(verdict).map_err(std::io::Error::from)?;
        let document = serde_json::from_slice(&frame.payload).map_err(std::io::Error::from)?;
        Ok(Some(Said::Ended {
            verdict: Box::new(verdict),
            document,
        }))
    }
}

/// What was said about the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Requested,
    Forced,
}
