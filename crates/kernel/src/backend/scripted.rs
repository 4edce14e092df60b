//! A kernel that plays a script: for tests of whatever owns kernels. Time is tokio's, so a paused
//! clock makes hours pass at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_output::{Event, Sink, Stream, Traceback};
use serde_json::Value;

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

/// A kernel that plays a script: a list of steps for each cell.
#[derive(Debug)]
pub struct Scripted {
    description: Description,
    cells: VecDeque<Vec<Step>>,
    log: Log,
    count: u32,
    dead: Option<Exit>,
    grace: Duration,
}

impl Scripted {
    /// A kernel that plays these cells one after the other; further cells do nothing.
    pub fn new(cells: impl IntoIterator<Item = Vec<Step>>) -> (Self, Log) {
        let log = Log::default();
        let kernel = Self {
            description: Description {
                backend: "scripted",
                name: "scripted".to_owned(),
                pid: None,
                interpreter: None,
                version: None,
            },
            cells: cells.into_iter().collect(),
            log: log.clone(),
            count: 0,
            dead: None,
            grace: super::runner::INTERRUPT_GRACE,
        };
        (kernel, log)
    }

    async fn play(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Outcome, KernelError> {
        if let Some(exit) = self.dead {
            return Err(died(exit, Begun::No));
        }
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.log.add(format!("execute {}", request.code));
        self.count += 1;
        let count = Some(self.count);
        let ended = |ending| Ok(Outcome { ending, count });
        for step in self.cells.pop_front().unwrap_or_default() {
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
                    () = tokio::time::sleep(time) => {}
                },
                Step::Raise(traceback) => {
                    sink.push(Event::Raised(traceback.clone()));
                    return ended(Ending::Raised(traceback));
                }
                Step::DieUnbegun(exit) => {
                    self.dead = Some(exit);
                    return Err(died(exit, Begun::No));
                }
                Step::Die(exit) => {
                    self.dead = Some(exit);
                    return Err(died(exit, Begun::Maybe));
                }
                Step::RunUntilStopped => {
                    let reason = stop.pulled().await;
                    self.log.add("interrupted".to_owned());
                    let state = State::Kept;
                    return ended(Ending::Stopped { reason, state });
                }
                Step::Hang => {
                    let reason = stop.pulled().await;
                    self.log.add("interrupted".to_owned());
                    tokio::time::sleep(self.grace).await;
                    self.log.add("killed".to_owned());
                    self.dead = Some(Exit {
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
        _stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        let why = "a script has no answers".to_owned();
        Box::pin(std::future::ready(Err(KernelError::NoAnswer { why })))
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        match self.dead {
            Some(exit) => Box::pin(std::future::ready(died(exit, Begun::No))),
            None => Box::pin(std::future::pending()),
        }
    }

    fn take_late(&mut self) -> Vec<LateText> {
        Vec::new()
    }

    fn requests(&self) -> u64 {
        u64::from(self.count)
    }

    fn is_alive(&mut self) -> bool {
        self.dead.is_none()
    }

    fn shutdown(self: Box<Self>, _patience: Stop) -> BoxFuture<'static, Farewell> {
        self.log.add("shutdown".to_owned());
        Box::pin(std::future::ready(Farewell {
            exit: self.dead,
            late: Vec::new(),
            in_peace: true,
        }))
    }
}
