//! A kernel that plays a script: for tests of whatever owns kernels. Time is tokio's, so a paused
//! clock makes hours pass at once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_output::{Event, Sink, Stream, Traceback};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::{Begun, KernelError};
use crate::kernel::{
    BoxFuture, Description, Ending, Farewell, Kernel, LateText, Outcome, Question, Request, State,
};
use crate::process::Exit;
use crate::stop::Stop;

/// One thing that the kernel does for a cell.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes to a stream.
    Say(Stream, String),
    /// Takes this long.
    Wait(Duration),
    /// Raises an exception, which ends the cell.
    Raise(Traceback),
    /// Dies before the code has begun.
    DieUnbegun(Exit),
    /// Dies.
    Die(Exit),
    /// Asks the interpreter to exit, which ends the cell.
    Exit(i32),
    /// Writes to a stream after the end of the cell, this long from now.
    SayLate(Duration, Stream, String),
    /// Goes on until it is interrupted.
    RunUntilStopped,
    /// Goes on and does not react to being interrupted.
    Hang,
}

/// What a scripted kernel was asked to do, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Everything so far, in order.
    pub fn entries(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(&self, entry: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    }
}

/// Kills a scripted kernel from outside, whatever it does.
#[derive(Clone, Debug)]
pub struct Killer(watch::Sender<Option<Exit>>);

impl Killer {
    /// The kernel dies now.
    pub fn kill(&self, exit: Exit) {
        self.0.send_if_modified(|dead| {
            let first = dead.is_none();
            dead.get_or_insert(exit);
            first
        });
    }
}

/// Which steps there are for which code.
type Play = Box<dyn FnMut(&str) -> Vec<Step> + Send + Sync>;

/// A kernel that plays a script: a list of steps for each cell.
pub struct Scripted {
    description: Description,
    play: Play,
    log: Log,
    count: u32,
    /// How it died, if it did.
    dead: watch::Sender<Option<Exit>>,
    /// What it says after the end of cells, and when.
    late: Vec<(Instant, LateText)>,
    /// How long it takes to answer a question; `None`: it has no answers.
    answers: Option<Duration>,
    /// How long its threads go on when it is asked to end.
    lingers: Duration,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("name", &self.description.name)
            .field("dead", &self.dead.borrow())
            .finish_non_exhaustive()
    }
}

impl Scripted {
    /// A kernel that plays these cells one after the other; further cells do nothing.
    pub fn new(cells: impl IntoIterator<Item = Vec<Step>>) -> (Self, Log) {
        let mut cells: VecDeque<Vec<Step>> = cells.into_iter().collect();
        Self::playing(move |_| cells.pop_front().unwrap_or_default())
    }

    /// A kernel that does what `play` says for the code of each cell.
    pub fn playing(play: impl FnMut(&str) -> Vec<Step> + Send + Sync + 'static) -> (Self, Log) {
        let log = Log::default();
        let kernel = Self {
            description: Description {
                backend: "scripted",
                name: "scripted".to_owned(),
                pid: None,
                interpreter: None,
                version: None,
                language: None,
                display_name: None,
                language_info: None,
            },
            play: Box::new(play),
            log: log.clone(),
            count: 0,
            dead: watch::Sender::new(None),
            late: Vec::new(),
            answers: None,
            lingers: Duration::ZERO,
        };
        (kernel, log)
    }

    /// The same under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.description.name = name.into();
        self
    }

    /// The same with answers to questions, each after this long: how many cells it was given.
    #[must_use]
    pub fn answering(mut self, after: Duration) -> Self {
        self.answers = Some(after);
        self
    }

    /// The same with threads that go on for this long after it was asked to end.
    #[must_use]
    pub fn lingering(mut self, time: Duration) -> Self {
        self.lingers = time;
        self
    }

    /// Says something by itself, before its next cell.
    #[must_use]
    pub fn saying(mut self, stream: Stream, text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        let text = LateText {
            request: 0,
            stream,
            bytes,
        };
        self.late.push((Instant::now(), text));
        self
    }

    /// What kills it.
    pub fn killer(&self) -> Killer {
        Killer(self.dead.clone())
    }

    fn died(&self) -> Option<Exit> {
        *self.dead.borrow()
    }

    /// Waits until it is killed.
    async fn killed(&self) -> Exit {
        let mut dead = self.dead.subscribe();
        match dead.wait_for(Option::is_some).await.map(|exit| *exit) {
            Ok(Some(exit)) => exit,
            _ => std::future::pending().await,
        }
    }

    async fn play(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Outcome, KernelError> {
        if let Some(exit) = self.died() {
            return Err(died(exit, Begun::No));
        }
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.log.add(format!("execute {}", request.code));
        self.count += 1;
        let count = Some(self.count);
        let ended = |ending| Ok(Outcome { ending, count });
        for step in (self.play)(&request.code) {
            match step {
                Step::Say(stream, text) => sink.push(Event::Text {
                    stream,
                    bytes: text.as_bytes(),
                }),
                Step::Wait(time) => tokio::select! {
                    biased;
                    reason = stop.pulled() => {
                        self.log.add("interrupted".to_owned());
                        let state = State::Kept;
                        return ended(Ending::Stopped { reason, state });
                    }
                    exit = self.killed() => return Err(died(exit, Begun::Maybe)),
                    () = tokio::time::sleep(time) => {}
                },
                Step::Raise(traceback) => {
                    sink.push(Event::Raised(traceback.clone()));
                    return ended(Ending::Raised(traceback));
                }
                Step::DieUnbegun(exit) => {
                    self.killer().kill(exit);
                    return Err(died(exit, Begun::No));
                }
                Step::Die(exit) => {
                    self.killer().kill(exit);
                    return Err(died(exit, Begun::Maybe));
                }
                Step::Exit(code) => return ended(Ending::Exited { code }),
                Step::SayLate(after, stream, text) => {
                    let text = LateText {
                        request: u64::from(self.count),
                        stream,
                        bytes: text.into_bytes(),
                    };
                    self.late.push((Instant::now() + after, text));
                }
                Step::RunUntilStopped => {
                    let reason = tokio::select! {
                        biased;
                        exit = self.killed() => return Err(died(exit, Begun::Maybe)),
                        reason = stop.pulled() => reason,
                    };
                    self.log.add("interrupted".to_owned());
                    let state = State::Kept;
                    return ended(Ending::Stopped { reason, state });
                }
                Step::Hang => {
                    let reason = tokio::select! {
                        biased;
                        exit = self.killed() => return Err(died(exit, Begun::Maybe)),
                        reason = stop.pulled() => reason,
                    };
                    self.log.add("interrupted".to_owned());
                    tokio::select! {
                        biased;
                        () = stop.at_once() => {}
                        () = tokio::time::sleep(super::runner::INTERRUPT_GRACE) => {}
                    }
                    self.log.add("killed".to_owned());
                    self.killer().kill(Exit {
                        code: None,
                        signal: Some(9),
                    });
                    let state = State::Lost;
                    return ended(Ending::Stopped { reason, state });
                }
            }
        }
        ended(Ending::Completed)
    }
}

fn died(exit: Exit, begun: Begun) -> KernelError {
    KernelError::Died {
        exit,
        stderr: String::new(),
        begun,
    }
}

impl Kernel for Scripted {
    fn description(&self) -> &Description {
        &self.description
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.play(request, sink, stop))
    }

    fn ask<'a>(
        &'a mut self,
        _question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(async move {
            let Some(time) = self.answers else {
                let why = "a script has no answers".to_owned();
                return Err(KernelError::NoAnswer { why });
            };
            tokio::select! {
                biased;
                exit = self.killed() => Err(died(exit, Begun::No)),
                reason = stop.pulled() => Err(KernelError::StoppedEarly { reason }),
                () = tokio::time::sleep(time) => Ok(Value::from(self.count)),
            }
        })
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(async { died(self.killed().await, Begun::No) })
    }

    fn take_late(&mut self) -> Vec<LateText> {
        let now = Instant::now();
        let said = self.late.extract_if(.., |(at, _)| *at <= now);
        said.map(|(_, text)| text).collect()
    }

    fn requests(&self) -> u64 {
        u64::from(self.count)
    }

    fn is_alive(&mut self) -> bool {
        self.died().is_none()
    }

    fn shutdown(self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell> {
        self.log.add("shutdown".to_owned());
        Box::pin(async move {
            let in_peace = self.died().is_some()
                || tokio::select! {
                    biased;
                    () = tokio::time::sleep(self.lingers) => true,
                    _ = patience.pulled() => false,
                };
            Farewell {
                exit: self.died(),
                late: self.late.into_iter().map(|(_, text)| text).collect(),
                in_peace,
            }
        })
    }
}
