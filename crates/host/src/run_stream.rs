//! [`RunStream`]: follows a run of the host and cancels it. The only implementation of the cancel steps: it requests
//! an interrupt, then a stop that does not wait for the code, and then reports the host as unresponsive. A host that a
//! signal has suspended is reported at once.

use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_execution::ExecutionReport;
use cellwright_execution::feed::FeedItem;
use cellwright_kernel::StopSignal;
use tokio::time::{Instant, sleep_until};

use super::channel::RequestChannel;
use super::error::HostError;
use super::kernel_host::KernelHost;
use super::protocol::{ClientMessage, ExecuteParams, HostRequest, WaitOptions};
use super::reply::{Answer, HostReply, InputPrompt, RunState, RunTail};
use super::suspend_check::SuspendCheck;

/// Time in which cancelled code must end; it can react to the interrupt.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

/// Time in which code must end that is stopped without waiting for it.
const FORCED_CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A run that a client follows. If the client owns the run, dropping the stream cancels the run.
pub struct RunStream {
    channel: RequestChannel,
    /// Id of the run, once known.
    run: Option<String>,
    ownership: Ownership,
    cancel: CancelState,
    /// When the current step of the cancel steps has failed.
    deadline: Instant,
    suspend_check: SuspendCheck,
}

/// Whether stopping the client stops the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// The client started the run.
    Owner,
    /// The client only observes the run.
    Observer,
}

/// The steps of the cancel steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CancelState {
    NotRequested,
    Requested,
    Forced,
}

/// The next step of a run.
#[derive(Debug)]
pub enum RunUpdate {
    /// What the caller should know before the output; the report repeats it.
    Notices(Vec<UserNotice>),
    Item(FeedItem),
    /// The client answers with [`RunStream::send_input`].
    InputRequested(InputPrompt),
    Finished(Box<ExecutionReport>),
    /// The run continues in the background.
    StillRunning(RunState),
    /// The end of the answer to [`RunStream::tail`].
    Tail(RunTail),
    /// The time that the caller named has come.
    Tick,
}

impl RunStream {
    /// Starts an execution. The host is started if there is none; it ends after `idle_exit` without work.
    pub async fn execute(
        host: &KernelHost,
        params: ExecuteParams,
        idle_exit: Option<Duration>,
    ) -> Result<Self, Failure> {
        let request = HostRequest::Execute(Box::new(params));
        let channel = host.open_or_start(request, idle_exit).await?;
        Ok(Self::new(channel, None, Ownership::Owner))
    }

    /// Waits for the end of a run.
    pub async fn wait(host: &KernelHost, run: &str, options: WaitOptions) -> Result<Self, Failure> {
        let request = HostRequest::WaitRun {
            run: run.to_owned(),
            options,
        };
        Self::observe(host, run, request).await
    }

    /// Returns the output of a run so far, and with `follow` all that comes after it.
    pub async fn tail(host: &KernelHost, run: &str, follow: bool) -> Result<Self, Failure> {
        let request = HostRequest::TailRun {
            run: run.to_owned(),
            follow,
        };
        Self::observe(host, run, request).await
    }

    async fn observe(host: &KernelHost, run: &str, request: HostRequest) -> Result<Self, Failure> {
        let Some(channel) = host.open(request).await? else {
            return Err(crate::host_not_running());
        };
        let run = Some(run.to_owned());
        Ok(Self::new(channel, run, Ownership::Observer))
    }

    fn new(channel: RequestChannel, run: Option<String>, ownership: Ownership) -> Self {
        Self {
            suspend_check: SuspendCheck::new(channel.host_pid()),
            channel,
            run,
            ownership,
            cancel: CancelState::NotRequested,
            deadline: Instant::now(),
        }
    }

    /// Id of the run, once known.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Answers an input request; `None`: there is no answer.
    pub async fn send_input(&mut self, text: Option<String>) -> Result<(), Failure> {
        Ok(self.channel.send(ClientMessage::Input { text }).await?)
    }

    /// Returns the next update, or [`RunUpdate::Tick`] at `tick`. Once `stop` is requested, it cancels the run.
    /// Cancel-safe.
    pub async fn next(
        &mut self,
        stop: &StopSignal,
        tick: Option<Instant>,
    ) -> Result<RunUpdate, Failure> {
        loop {
            let tick_at = tick.unwrap_or(self.deadline);
            tokio::select! {
                // Replies come last, so that code which prints without end can be cancelled.
                biased;
                _ = stop.requested(), if self.cancel == CancelState::NotRequested => {
                    if self.ownership == Ownership::Observer {
                        return Err(Failure::closed_pipe());
                    }
                    self.request_cancel(CancelState::Requested).await?;
                }
                () = stop.forced(), if self.cancel == CancelState::Requested => {
                    self.request_cancel(CancelState::Forced).await?;
                }
                () = sleep_until(self.deadline), if self.cancel == CancelState::Requested => {
                    self.request_cancel(CancelState::Forced).await?;
                }
                () = sleep_until(self.deadline), if self.cancel == CancelState::Forced => {
                    return Err(crate::cancel_timeout_failure(self.channel.host_pid()));
                }
                reply = self.channel.next() => {
                    let reply = reply.map_err(|error| self.connection_lost(error))?;
                    if let Some(update) = self.handle(reply)? {
                        return Ok(update);
                    }
                }
                () = self.suspend_check.suspended() => return Err(self.suspended_failure()),
                () = sleep_until(tick_at), if tick.is_some() => return Ok(RunUpdate::Tick),
            }
        }
    }

    async fn request_cancel(&mut self, step: CancelState) -> Result<(), Failure> {
        if self.suspend_check.is_suspended_now() {
            return Err(crate::cancel_timeout_failure(self.channel.host_pid()));
        }
        let forced = step == CancelState::Forced;
        let timeout = if forced {
            FORCED_CANCEL_TIMEOUT
        } else {
            CANCEL_TIMEOUT
        };
        let message = ClientMessage::Cancel { forced };
        self.channel.send(message).await?;
        self.deadline = Instant::now() + timeout;
        self.cancel = step;
        Ok(())
    }

    fn handle(&mut self, reply: HostReply) -> Result<Option<RunUpdate>, Failure> {
        Ok(Some(match reply {
            HostReply::Started { run, notices } => {
                self.run = Some(run);
                if notices.is_empty() {
                    return Ok(None);
                }
                RunUpdate::Notices(notices)
            }
            HostReply::Item(item) => RunUpdate::Item(item),
            HostReply::InputRequested(prompt) => RunUpdate::InputRequested(prompt),
            HostReply::Finished(report) => RunUpdate::Finished(report),
            HostReply::StillRunning(state) => RunUpdate::StillRunning(state),
            HostReply::Answer(answer) => match *answer {
                Answer::Tail(tail) => RunUpdate::Tail(tail),
                _ => return Err(HostError::UnexpectedReply.into()),
            },
            HostReply::Failed(failure) => return Err(*failure),
        }))
    }

    /// Describes a host that a signal has suspended.
    fn suspended_failure(&self) -> Failure {
        let pid = self.channel.host_pid();
        if self.cancel != CancelState::NotRequested {
            return crate::cancel_timeout_failure(pid);
        }
        let failure = Failure::from(HostError::Unresponsive { pid });
        match self.ownership {
            Ownership::Owner => {
                failure.hint("the code of this command is cancelled when the host continues")
            }
            Ownership::Observer => failure,
        }
    }

    /// Describes a lost connection. When a host ends, the code of its clients ends.
    fn connection_lost(&self, error: HostError) -> Failure {
        let disconnected = matches!(error, HostError::Disconnected);
        let failure = Failure::from(error);
        if disconnected && self.ownership == Ownership::Owner {
            return failure.hint("side effects so far remain; sessions and variables are lost");
        }
        failure
    }
}
