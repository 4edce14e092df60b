//! Runs an execution on a session of the host, and follows background runs.

use std::time::Duration;

use cellwright_kernel::{StopHandle, StopSignal};
use cellwright_output::{Limits, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::console::Console;
use crate::execution::feed::{FeedItem, OutputFeed, Overflow};
use crate::execution::{CellEvent, ExecutionSummary};
use crate::failure::Failure;
use crate::host::connection::Connection;
use crate::host::error::HostError;
use crate::host::frame::Frame;
use crate::host::protocol::{ClientMessage, ExecuteParams, HostRequest, WaitMode};
use crate::host::{self, client};
use crate::local_execution::watch_signals;
use crate::notice::{NoticeKind, UserNotice};
use crate::runtime::runtime;
use crate::settings::Settings;
use crate::startup::StartupTimer;
use crate::viewer::live::{OutputExtent, StdoutError};
use crate::viewer::{self, ViewMode, ViewOptions, events, show_summary};

/// How long a host may take to end code that was cancelled: the code has time to react.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may take if nobody waits for the code.
const FORCED_CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// What the host answered.
pub(crate) enum HostedResult {
    /// It has ended.
    Finished {
        verdict: Box<ExecutionSummary>,
        /// The answer as a document, if that was asked for.
        document: Vec<u8>,
        /// Why what was said did not arrive.
        unseen: Option<StdoutError>,
    },
    /// It goes on, or this is what is known of it.
    StillRunning(Value),
}

/// Whose end a command's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// Ctrl-C stops the code. A host is started if there is none, and ends when it has had nothing to
    /// do for so long.
    Owner { idle_exit: Option<Duration> },
    /// Ctrl-C only ends the looking on.
    Observer,
}

/// Asks the host for something that may take a while, and shows what is said meanwhile.
pub(crate) fn watch(
    wanted: &HostRequest,
    screen: &Console,
    view: impl Into<ViewOptions>,
    limits: &Limits,
    stake: Attachment,
) -> Result<HostedResult, Failure> {
    let view = view.into();
    let runtime = runtime()?;
    let (stopper, stop) = StopSignal::new();
    let feed = OutputFeed::new(Overflow::Spill);
    let (end, unseen) = std::thread::scope(|scope| {
        let viewer = (view.extent != OutputExtent::Nothing).then(|| {
            let (feed, stopper) = (feed.clone(), stopper.clone());
            viewer::spawn_viewer(scope, feed, screen, view, limits.clone(), stopper)
        });
        let end = runtime.block_on(stream_run(wanted, &feed, &stopper, &stop, stake));
        feed.close();
        // A viewer that came to grief has shown what it could.
        let unseen = viewer.and_then(|viewer| viewer.join().ok().flatten());
        (end, unseen)
    });
    let (mut value, document) = end?;
    match value.get_mut("verdict").map(Value::take) {
        Some(verdict) => Ok(HostedResult::Finished {
            verdict: Box::new(
                ExecutionSummary::deserialize(verdict).map_err(std::io::Error::from)?,
            ),
            document,
            unseen,
        }),
        None => Ok(HostedResult::StillRunning(value)),
    }
}

async fn stream_run(
    wanted: &HostRequest,
    feed: &OutputFeed,
    stopper: &StopHandle,
    stop: &StopSignal,
    stake: Attachment,
) -> Result<(Value, Vec<u8>), Failure> {
    let mut signals = tokio::task::JoinSet::new();
    if stake != Attachment::Observer {
        signals.spawn(watch_signals(stopper.clone())?);
    }
    let client = match stake {
        Attachment::Owner { idle_exit } => Some(client::connect_or_start(idle_exit).await?),
        Attachment::Observer => client::connect_running().await?,
    };
    let Some(mut client) = client else {
        return Err(Failure::host_not_running());
    };
    let pid = client.host.pid;
    let connection = &mut client.connection;
    connection.send(wanted).await.map_err(HostError::from)?;
    let mut asked = CancelState::NotRequested;
    let mut patience = Instant::now();
    loop {
        tokio::select! {
            // What is said comes last: code that never stops talking can be cancelled.
            biased;
            _ = stop.requested(), if asked == CancelState::NotRequested => {
                if stake == Attachment::Observer {
                    // Nobody reads any more, which is no failure.
                    return Err(Failure::closed_pipe());
                }
                asked = CancelState::Requested;
                patience = Instant::now() + CANCEL_TIMEOUT;
                cancel(connection, false).await?;
            }
            () = stop.forced(), if asked == CancelState::Requested => {
                asked = CancelState::Forced;
                patience = Instant::now() + FORCED_CANCEL_TIMEOUT;
                cancel(connection, true).await?;
            }
            () = sleep_until(patience), if asked != CancelState::NotRequested => {
                return Err(Failure::cancel_unanswered(pid));
            }
            frame = connection.next() => {
                let frame = frame.map_err(HostError::from).and_then(|frame| frame.ok_or(HostError::Disconnected));
                let frame = frame.map_err(|error| connection_lost(error, stake))?;
                if let Some(end) = client::final_reply(&frame)? {
                    return Ok((end, frame.payload));
                }
                if let Some(chunk) = feed_item(frame)? {
                    feed.push(chunk);
                }
            }
        }
    }
}

/// A host that went while it ran somebody's code took that with it.
fn connection_lost(error: HostError, stake: Attachment) -> Failure {
    let gone = matches!(error, HostError::Disconnected);
    let failure = Failure::from(error);
    if gone && stake != Attachment::Observer {
        return failure
            .hint("what the code did until then is done; sessions and variables are lost");
    }
    failure
}

/// What the host was told about the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CancelState {
    NotRequested,
    Requested,
    Forced,
}

async fn cancel(connection: &mut Connection, at_once: bool) -> Result<(), Failure> {
    let cancel = ClientMessage::Cancel { at_once };
    connection.send(&cancel).await.map_err(HostError::from)?;
    Ok(())
}

/// What is to be shown of a frame.
fn feed_item(frame: Frame) -> Result<Option<FeedItem>, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        cell: bool,
        text: Option<StreamName>,
        piece: Option<StreamName>,
        lost: Option<u64>,
        mark: Option<Box<CellEvent>>,
    }
    #[derive(Clone, Copy, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum StreamName {
        Stdout,
        Stderr,
    }
    let stream = |name| match name {
        StreamName::Stdout => Stream::Stdout,
        StreamName::Stderr => Stream::Stderr,
    };
    let head: Head = frame.parse().map_err(HostError::from)?;
    Ok(match head {
        Head { cell: true, .. } => Some(FeedItem::CellStart),
        Head {
            text: Some(name), ..
        } => Some(FeedItem::Text(stream(name), frame.payload)),
        Head {
            piece: Some(name), ..
        } => {
            let text = String::from_utf8_lossy(&frame.payload).into_owned();
            Some(FeedItem::Display(stream(name), text))
        }
        Head {
            lost: Some(bytes), ..
        } => Some(FeedItem::Dropped(bytes)),
        Head {
            mark: Some(mark), ..
        } => Some(FeedItem::CellEvent(mark)),
        // A newer host may say more.
        _ => None,
    })
}

/// Has the host run code, and shows what comes of it; says the exit code. `notices` were said
/// already, except in a document.
pub(crate) fn execute(
    wanted: ExecuteParams,
    settings: &Settings,
    screen: &Console,
    view: ViewOptions,
    notices: Vec<UserNotice>,
    startup: StartupTimer,
) -> Result<u8, Failure> {
    let extent = view.extent;
    let events = matches!(view.mode, ViewMode::Events);
    let stake = Attachment::Owner {
        idle_exit: host::idle_exit(settings),
    };
    let limits = &settings.output_limits();
    let background = matches!(wanted.wait_mode, WaitMode::Detached);
    let wanted = HostRequest::Execute(Box::new(wanted));
    let known = match watch(&wanted, screen, view, limits, stake)? {
        HostedResult::StillRunning(known) => known,
        ended @ HostedResult::Finished { .. } => {
            if let HostedResult::Finished { verdict, .. } = &ended
                && let Some(line) = startup.report(verdict.kernel_ready, settings)
            {
                screen.note(&line);
            }
            return if events {
                print_done_event(ended, screen, notices)
            } else {
                show_result(ended, screen, extent, notices)
            };
        }
    };
    let run = known["run"].as_str().unwrap_or_default();
    if screen.json {
        let mut document = without_end(known);
        document["notices"] = json!(notices);
        screen.print_json(&document)?;
    } else if background {
        screen.print(&format!("{run}\n"))?;
    } else {
        screen.print_notices(&[UserNotice::new(
            NoticeKind::StillRunning,
            format!("run {run} goes on; `cellwright runs wait {run}` gives its end"),
        )]);
    }
    Ok(0)
}

/// Tells how a run ended as the last of its events; says the exit code.
fn print_done_event(
    answer: HostedResult,
    screen: &Console,
    notices: Vec<UserNotice>,
) -> Result<u8, Failure> {
    let HostedResult::Finished {
        verdict, document, ..
    } = answer
    else {
        return Ok(0);
    };
    if let Some(refusal) = verdict.start_failure() {
        return Err(refusal);
    }
    let mut answer: Value = serde_json::from_slice(&document).map_err(std::io::Error::from)?;
    prepend_notices(&mut answer, notices);
    match events::print_done(screen, answer) {
        Err(failure) if !failure.is_silent() => Err(failure),
        _ => Ok(verdict.exit_code()),
    }
}

/// Puts notices before those of an answer.
fn prepend_notices(answer: &mut Value, notices: Vec<UserNotice>) {
    if let Some(Value::Array(told)) = answer.get_mut("notices") {
        told.splice(0..0, notices.into_iter().map(|notice| json!(notice)));
    }
}

/// Shows how a run ended; says the exit code.
pub(crate) fn show_result(
    answer: HostedResult,
    screen: &Console,
    extent: OutputExtent,
    notices: Vec<UserNotice>,
) -> Result<u8, Failure> {
    let HostedResult::Finished {
        verdict,
        document,
        unseen,
    } = answer
    else {
        return Ok(0);
    };
    if !screen.json {
        return show_summary(&verdict, screen, extent, unseen.as_ref());
    }
    let mut document: Value = serde_json::from_slice(&document).map_err(std::io::Error::from)?;
    prepend_notices(&mut document, notices);
    // There was no kernel for it: nothing else in the document says why.
    if let Some(refusal) = verdict.start_failure() {
        screen.print_error(&refusal);
        document["error"] = refusal.to_json()["error"].take();
    }
    match screen.print_json(&document) {
        Err(failure) if !failure.is_silent() => Err(failure),
        _ => Ok(verdict.exit_code()),
    }
}

/// The mark of the protocol is nobody's business.
pub(crate) fn without_end(mut answer: Value) -> Value {
    if let Some(object) = answer.as_object_mut() {
        object.remove("end");
    }
    answer
}
