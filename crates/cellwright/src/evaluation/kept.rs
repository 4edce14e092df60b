//! An evaluation on a session that the host keeps, and runs that go on there.

use std::time::Duration;

use cellwright_kernel::{Stop, Stopper};
use cellwright_output::{Limits, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::alone::{runtime, watch_signals};
use super::viewer::{self, Form, View};
use super::{Mark, Verdict, events};
use crate::failure::Failure;
use crate::feed::{Beyond, Chunk, Feed};
use crate::host::connection::Connection;
use crate::host::error::HostError;
use crate::host::frame::Frame;
use crate::host::wanted::{Attach, EvalWanted, Meanwhile, Wanted};
use crate::host::{self, ask};
use crate::live::{Extent, Trouble};
use crate::notice::Told;
use crate::screen::Screen;
use crate::settings::Settings;
use crate::startup::Startup;

/// How long a host may take to end code that was cancelled: the code has time to react.
const OBEDIENCE: Duration = Duration::from_secs(20);

/// How long it may take if nobody waits for the code.
const OBEDIENCE_AT_ONCE: Duration = Duration::from_secs(5);

/// What the host answered.
pub(crate) enum Answer {
    /// It has ended.
    Ended {
        verdict: Box<Verdict>,
        /// The answer as a document, if that was asked for.
        document: Vec<u8>,
        /// Why what was said did not arrive.
        unseen: Option<Trouble>,
    },
    /// It goes on, or this is what is known of it.
    Known(Value),
}

/// Whose end a command's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stake {
    /// Ctrl-C stops the code. A host is started if there is none, and ends when it has had nothing to
    /// do for so long.
    Owner { idle_exit: Option<Duration> },
    /// Ctrl-C only ends the looking on.
    Onlooker,
}

/// Asks the host for something that may take a while, and shows what is said meanwhile.
pub(crate) fn watch(
    wanted: &Wanted,
    screen: &Screen,
    view: impl Into<View>,
    limits: &Limits,
    stake: Stake,
) -> Result<Answer, Failure> {
    let view = view.into();
    let runtime = runtime()?;
    let (stopper, stop) = Stop::new();
    let feed = Feed::new(Beyond::Disk);
    let (end, unseen) = std::thread::scope(|scope| {
        let viewer = (view.extent != Extent::Nothing).then(|| {
            let (feed, stopper) = (feed.clone(), stopper.clone());
            viewer::spawn(scope, feed, screen, view, limits.clone(), stopper)
        });
        let end = runtime.block_on(talk(wanted, &feed, &stopper, &stop, stake));
        feed.close();
        // A viewer that came to grief has shown what it could.
        let unseen = viewer.and_then(|viewer| viewer.join().ok().flatten());
        (end, unseen)
    });
    let (mut value, document) = end?;
    match value.get_mut("verdict").map(Value::take) {
        Some(verdict) => Ok(Answer::Ended {
            verdict: Box::new(Verdict::deserialize(verdict).map_err(std::io::Error::from)?),
            document,
            unseen,
        }),
        None => Ok(Answer::Known(value)),
    }
}

async fn talk(
    wanted: &Wanted,
    feed: &Feed,
    stopper: &Stopper,
    stop: &Stop,
    stake: Stake,
) -> Result<(Value, Vec<u8>), Failure> {
    let mut signals = tokio::task::JoinSet::new();
    if stake != Stake::Onlooker {
        signals.spawn(watch_signals(stopper.clone())?);
    }
    let client = match stake {
        Stake::Owner { idle_exit } => Some(ask::host(idle_exit).await?),
        Stake::Onlooker => ask::living_host().await?,
    };
    let Some(mut client) = client else {
        return Err(Failure::no_host());
    };
    let pid = client.host.pid;
    let connection = &mut client.connection;
    connection.send(wanted).await.map_err(HostError::from)?;
    let mut asked = Asked::Nothing;
    let mut patience = Instant::now();
    loop {
        tokio::select! {
            // What is said comes last: code that never stops talking can be cancelled.
            biased;
            _ = stop.pulled(), if asked == Asked::Nothing => {
                if stake == Stake::Onlooker {
                    // Nobody reads any more, which is no failure.
                    return Err(Failure::closed_pipe());
                }
                asked = Asked::ToStop;
                patience = Instant::now() + OBEDIENCE;
                cancel(connection, false).await?;
            }
            () = stop.at_once(), if asked == Asked::ToStop => {
                asked = Asked::AtOnce;
                patience = Instant::now() + OBEDIENCE_AT_ONCE;
                cancel(connection, true).await?;
            }
            () = sleep_until(patience), if asked != Asked::Nothing => {
                return Err(Failure::deaf_host(pid));
            }
            frame = connection.next() => {
                let frame = frame.map_err(HostError::from).and_then(|frame| frame.ok_or(HostError::Gone));
                let frame = frame.map_err(|error| lost(error, stake))?;
                if let Some(end) = ask::end_of(&frame)? {
                    return Ok((end, frame.payload));
                }
                if let Some(chunk) = chunk(frame)? {
                    feed.push(chunk);
                }
            }
        }
    }
}

/// A host that went while it ran somebody's code took that with it.
fn lost(error: HostError, stake: Stake) -> Failure {
    let gone = matches!(error, HostError::Gone);
    let failure = Failure::from(error);
    if gone && stake != Stake::Onlooker {
        return failure
            .hint("what the code did until then is done; sessions and variables are lost");
    }
    failure
}

/// What the host was told about the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    ToStop,
    AtOnce,
}

async fn cancel(connection: &mut Connection, at_once: bool) -> Result<(), Failure> {
    let cancel = Meanwhile::Cancel { at_once };
    connection.send(&cancel).await.map_err(HostError::from)?;
    Ok(())
}

/// What is to be shown of a frame.
fn chunk(frame: Frame) -> Result<Option<Chunk>, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        cell: bool,
        text: Option<Name>,
        piece: Option<Name>,
        lost: Option<u64>,
        mark: Option<Box<Mark>>,
    }
    #[derive(Clone, Copy, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Name {
        Stdout,
        Stderr,
    }
    let stream = |name| match name {
        Name::Stdout => Stream::Stdout,
        Name::Stderr => Stream::Stderr,
    };
    let head: Head = frame.parse().map_err(HostError::from)?;
    Ok(match head {
        Head { cell: true, .. } => Some(Chunk::Cell),
        Head {
            text: Some(name), ..
        } => Some(Chunk::Text(stream(name), frame.payload)),
        Head {
            piece: Some(name), ..
        } => {
            let text = String::from_utf8_lossy(&frame.payload).into_owned();
            Some(Chunk::Piece(stream(name), text))
        }
        Head {
            lost: Some(bytes), ..
        } => Some(Chunk::Lost(bytes)),
        Head {
            mark: Some(mark), ..
        } => Some(Chunk::Mark(mark)),
        // A newer host may say more.
        _ => None,
    })
}

/// Has the host run code, and shows what comes of it; says the exit code. `notices` were said
/// already, except in a document.
pub(crate) fn eval(
    wanted: EvalWanted,
    settings: &Settings,
    screen: &Screen,
    view: View,
    notices: Vec<Told>,
    startup: Startup,
) -> Result<u8, Failure> {
    let extent = view.extent;
    let events = matches!(view.form, Form::Events);
    let stake = Stake::Owner {
        idle_exit: host::idle_exit(settings),
    };
    let limits = &settings.limits();
    let background = matches!(wanted.attach, Attach::Not);
    let wanted = Wanted::Eval(Box::new(wanted));
    let known = match watch(&wanted, screen, view, limits, stake)? {
        Answer::Known(known) => known,
        ended @ Answer::Ended { .. } => {
            if let Answer::Ended { verdict, .. } = &ended {
                startup.tell(verdict.ready, settings, screen);
            }
            return if events {
                done(ended, screen, notices)
            } else {
                show_end(ended, screen, extent, notices)
            };
        }
    };
    let run = known["run"].as_str().unwrap_or_default();
    if screen.json {
        let mut document = without_end(known);
        document["notices"] = json!(notices);
        screen.document(&document)?;
    } else if background {
        screen.data(&format!("{run}\n"))?;
    } else {
        screen.notices(&[Told::new(
            "run_goes_on",
            format!("run {run} goes on; `cellwright runs wait {run}` gives its end"),
        )]);
    }
    Ok(0)
}

/// Tells how a run ended as the last of its events; says the exit code.
fn done(answer: Answer, screen: &Screen, notices: Vec<Told>) -> Result<u8, Failure> {
    let Answer::Ended {
        verdict, document, ..
    } = answer
    else {
        return Ok(0);
    };
    if let Some(refusal) = verdict.refusal() {
        return Err(refusal);
    }
    let mut answer: Value = serde_json::from_slice(&document).map_err(std::io::Error::from)?;
    lead(&mut answer, notices);
    match events::done(screen, answer) {
        Err(failure) if !failure.is_silent() => Err(failure),
        _ => Ok(verdict.exit_code()),
    }
}

/// Puts notices before those of an answer.
fn lead(answer: &mut Value, notices: Vec<Told>) {
    if let Some(Value::Array(told)) = answer.get_mut("notices") {
        told.splice(0..0, notices.into_iter().map(|notice| json!(notice)));
    }
}

/// Shows how a run ended; says the exit code.
pub(crate) fn show_end(
    answer: Answer,
    screen: &Screen,
    extent: Extent,
    notices: Vec<Told>,
) -> Result<u8, Failure> {
    let Answer::Ended {
        verdict,
        document,
        unseen,
    } = answer
    else {
        return Ok(0);
    };
    if !screen.json {
        return verdict.show(screen, extent, unseen.as_ref());
    }
    let mut document: Value = serde_json::from_slice(&document).map_err(std::io::Error::from)?;
    lead(&mut document, notices);
    // There was no kernel for it: nothing else in the document says why.
    if let Some(refusal) = verdict.refusal() {
        screen.complain(&refusal);
        document["error"] = refusal.document()["error"].take();
    }
    match screen.document(&document) {
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
