//! The built-in kernel: our own Python program (`crates/kernel/python`) as a child. It needs an
//! interpreter and nothing else.

mod cell;
mod frame;
mod route;
pub(super) mod staging;
mod trace;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use cellwright_output::{Event, Sink};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::{Begun, KernelError};
use crate::kernel::{
    Asked, BoxFuture, Description, Farewell, Kernel, LateText, Outcome, Question, Request, State,
    said,
};
use crate::process::{Command, Exit, StartError, Supervised, Supervisor};
use crate::python::Interpreter;
use crate::stop::{Stop, StopReason};
use cell::CellRun;
use frame::Frame;
use route::Route;
use trace::Trace;
use wire::Wire;

pub use staging::{folder_name, shared_name};

/// How long a cell has to end after an interrupt.
pub const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// How often a cell is interrupted within that time.
const INTERRUPTS: u32 = 5;

/// How long each step of the way out may take: asking, terminating.
const FAREWELL_STEP: Duration = Duration::from_secs(1);

/// How long the supervisor may take to end what the kernel left behind.
const CLEARING: Duration = Duration::from_secs(3);

/// The exit code by which `boot.py` says that the interpreter is too old.
const TOO_OLD: i32 = 86;

/// Questions are numbered apart from cells, so that the numbers of cells have no gaps.
const QUESTIONS: u64 = 1 << 48;

/// How to start a runner.
#[derive(Clone, Debug)]
pub struct RunnerSpec {
    /// The interpreter.
    pub interpreter: Interpreter,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Who keeps it from outliving us.
    pub supervisor: Supervisor,
    /// Folders for the runner's own files; the first that works is used.
    pub staging: Vec<PathBuf>,
    /// How long it may take to be ready.
    pub start_timeout: Duration,
    /// How long a cell has to end after an interrupt.
    pub interrupt_grace: Duration,
    /// A file to write down what is said on its channel, for whoever looks for a mistake.
    pub trace: Option<PathBuf>,
}

/// A running runner.
pub struct Runner {
    process: Supervised,
    wire: Wire,
    route: Route,
    description: Description,
    interrupt_grace: Duration,
    last_id: u64,
    last_question: u64,
}

impl Runner {
    /// Starts a runner and waits until it is ready.
    pub async fn start(spec: &RunnerSpec, stop: &Stop) -> Result<Self, KernelError> {
        check_directory(&spec.cwd)?;
        let files = staging::stage(&spec.staging)?;
        let program = &spec.interpreter.program;
        let mut env = spec.env.clone();
        // Until our own code runs, nothing may be imported from the working directory (`boot.py`
        // takes it back).
        crate::environment::set(&mut env, "PYTHONSAFEPATH", "1".into());
        let command = Command {
            arguments: vec![
                program.into(),
                "-c".into(),
                staging::BOOT.into(),
                files.into(),
                "{channel}".into(),
            ],
            env,
            cwd: spec.cwd.clone(),
        };
        let (process, ends) = Supervised::start(&spec.supervisor, &command)
            .await
            .map_err(|error| match error {
                StartError::Program(source) => KernelError::launch(program.clone(), source),
                StartError::Supervisor(source) => {
                    KernelError::launch(spec.supervisor.program.clone(), source)
                }
            })?;
        let wire = Wire::new(ends, Trace::open(spec.trace.as_deref()))
            .map_err(|source| KernelError::launch(program.clone(), source))?;
        let mut runner = Self {
            description: Description {
                backend: "runner",
                name: "python3".to_owned(),
                pid: Some(process.pid()),
                interpreter: Some(program.clone()),
                version: None,
                language: Some("python".to_owned()),
                display_name: Some("Python 3".to_owned()),
                language_info: None,
            },
            process,
            wire,
            route: Route::default(),
            interrupt_grace: spec.interrupt_grace,
            last_id: 0,
            last_question: 0,
        };
        let hello = tokio::select! {
            biased;
            reason = stop.pulled() => return Err(KernelError::StoppedEarly { reason }),
            hello = timeout(spec.start_timeout, runner.hello()) => hello,
        };
        match hello {
            Ok(result) => result.map(|()| runner),
            Err(_) => Err(KernelError::NotReady {
                after: spec.start_timeout,
                stderr: runner.route.stderr_tail(),
            }),
        }
    }

    async fn hello(&mut self) -> Result<(), KernelError> {
        let (process, wire, route) = (&mut self.process, &mut self.wire, &mut self.route);
        let mut hear = |stream, bytes: &[u8]| route.text(stream, bytes, None);
        let frame = tokio::select! {
            frame = wire.next(&mut hear) => frame,
            exit = process.exited() => {
                wire.rest(&mut hear);
                return Err(self.failed_to_start(exit));
            }
        };
        match frame {
            Ok(Some(frame)) if frame.t == "hello" => {
                let set = wire.set_nonce(&frame.nonce);
                set.map_err(|what| KernelError::Protocol { what })?;
                self.description.language_info = Some(language_info(&frame.version).into());
                self.description.version = Some(frame.version);
                if !frame.executable.is_empty() {
                    self.description.interpreter = Some(frame.executable.into());
                }
                Ok(())
            }
            Ok(Some(frame)) => Err(KernelError::Protocol {
                what: format!("it began with {:?}", frame.t),
            }),
            Ok(None) => {
                let exit = process.exited().await;
                wire.rest(&mut hear);
                Err(self.failed_to_start(exit))
            }
            Err(what) => Err(KernelError::Protocol { what }),
        }
    }

    fn failed_to_start(&self, exit: Exit) -> KernelError {
        let stderr = self.route.stderr_tail();
        if exit.code == Some(TOO_OLD) {
            let told = stderr.split("this is ").nth(1).unwrap_or_default();
            let version = told.split_whitespace().next().unwrap_or("too old");
            return KernelError::TooOld {
                interpreter: self.description.interpreter.clone().unwrap_or_default(),
                version: version.to_owned(),
            };
        }
        KernelError::FailedToStart { exit, stderr }
    }

    /// Sends a frame, or says what came between.
    async fn send(&mut self, bytes: &[u8], stop: &Stop) -> Result<(), KernelError> {
        // Nearly every frame fits, and then nothing else needs to be watched.
        let sent = if bytes.len() < 64 * 1024 {
            self.wire.try_send(bytes)
        } else {
            0
        };
        let bytes = &bytes[sent..];
        if bytes.is_empty() {
            return Ok(());
        }
        let (process, wire) = (&mut self.process, &mut self.wire);
        tokio::select! {
            biased;
            reason = stop.pulled() => {
                // Half a frame may have gone: nothing can be said to this kernel any more.
                process.kill();
                Err(KernelError::StoppedEarly { reason })
            }
            exit = process.exited() => Err(self.died(exit, Begun::No)),
            sent = wire.send(bytes) => {
                if sent.is_ok() {
                    return Ok(());
                }
                let exit = process.exited().await;
                Err(self.died(exit, Begun::No))
            }
        }
    }

    fn died(&self, exit: Exit, begun: Begun) -> KernelError {
        KernelError::Died {
            exit,
            stderr: self.route.stderr_tail(),
            begun,
        }
    }

    /// Ends a kernel that makes no sense any more.
    async fn broken(&mut self, what: String) -> KernelError {
        self.process.end().await;
        KernelError::Protocol { what }
    }

    async fn run(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
    ) -> Result<Outcome, KernelError> {
        if let Some(exit) = self.process.exit() {
            return Err(self.died(exit, Begun::No));
        }
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.last_id += 1;
        let mut cell = CellRun::new(self.last_id, request);
        let bytes =
            frame::execute(cell.id, request).map_err(|what| KernelError::Protocol { what })?;
        self.route.begin(cell.id);
        self.send(&bytes, stop).await?;
        self.wire.expect_soon();
        let mut pulled = pin!(stop.pulled());
        let mut stopped: Option<(StopReason, Instant)> = None;
        // An interrupt can fall on deaf ears for a moment: C's `system` ignores it, a handler of the
        // code swallows it. So it is repeated within the grace.
        let mut again = tokio::time::interval(self.interrupt_grace / INTERRUPTS);
        // What the code waits for somebody to say.
        let mut question: Option<Asked> = None;
        loop {
            let (process, wire, route) = (&mut self.process, &mut self.wire, &mut self.route);
            let mut hear = |stream, bytes: &[u8]| route.text(stream, bytes, Some(&mut *sink));
            let (frame, given) = tokio::select! {
                biased;
                reason = &mut pulled, if stopped.is_none() => {
                    process.interrupt();
                    again.reset();
                    stopped = Some((reason, Instant::now() + self.interrupt_grace));
                    continue;
                }
                _ = again.tick(), if stopped.is_some() => {
                    process.interrupt();
                    continue;
                }
                () = patience(stopped, stop), if stopped.is_some() => {
                    process.end().await;
                    wire.rest(&mut hear);
                    return Ok(cell.outcome(stopped.map(|(reason, _)| (reason, State::Lost))));
                }
                frame = wire.next(&mut hear) => (frame, None),
                exit = process.exited() => return self.ended_in(cell, exit, stopped, sink),
                given = said(&mut question), if question.is_some() => (Ok(None), Some(given)),
            };
            if let Some(given) = given {
                let asked = question.take().map(|(prompt, _)| prompt);
                if let (Some(prompt), None) = (asked, &given) {
                    let prompt = prompt.text;
                    sink.push(Event::InputRefused { prompt });
                }
                let bytes = frame::answer(cell.id, given.as_deref());
                match self.send(&bytes, stop).await {
                    Err(KernelError::StoppedEarly { reason }) => {
                        return Ok(cell.outcome(Some((reason, State::Lost))));
                    }
                    sent => sent?,
                }
                continue;
            }
            match frame {
                Ok(Some(mut frame)) => {
                    if let Some(prompt) = cell.take(&mut frame, &mut self.route, sink) {
                        let given = match cell.next_answer() {
                            None => cell.ask(&prompt),
                            given => Some(at_hand(given)),
                        };
                        question = Some((prompt, given.unwrap_or_else(|| at_hand(None))));
                    }
                    if cell.done.is_some() {
                        return Ok(cell.outcome(stopped.map(|(reason, _)| (reason, State::Kept))));
                    }
                }
                Ok(None) => {
                    // The channel is closed: it has died, or the code closed it, which is as bad.
                    return match timeout(FAREWELL_STEP, self.process.exited()).await {
                        Ok(exit) => self.ended_in(cell, exit, stopped, sink),
                        Err(_) => Err(self.broken("it closed its channel".to_owned()).await),
                    };
                }
                Err(what) => return Err(self.broken(what).await),
            }
        }
    }

    /// The process ended while a cell ran. What it said last is still on the way.
    fn ended_in(
        &mut self,
        mut cell: CellRun,
        exit: Exit,
        stopped: Option<(StopReason, Instant)>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, KernelError> {
        let (wire, route) = (&mut self.wire, &mut self.route);
        while let Some(mut frame) =
            wire.already(&mut |stream, bytes: &[u8]| route.text(stream, bytes, Some(&mut *sink)))
        {
            cell.take(&mut frame, route, sink);
        }
        wire.rest(&mut |stream, bytes: &[u8]| route.text(stream, bytes, Some(&mut *sink)));
        if cell.done.is_some() || stopped.is_some() {
            return Ok(cell.outcome(stopped.map(|(reason, _)| (reason, State::Lost))));
        }
        let begun = if cell.started {
            Begun::Maybe
        } else {
            Begun::No
        };
        Err(self.died(exit, begun))
    }

    async fn question(&mut self, question: &Question, stop: &Stop) -> Result<Value, KernelError> {
        self.last_question += 1;
        let id = QUESTIONS + self.last_question;
        self.send(&frame::question(id, question), stop).await?;
        let mut pulled = pin!(stop.pulled());
        loop {
            let (process, wire, route) = (&mut self.process, &mut self.wire, &mut self.route);
            let mut hear = |stream, bytes: &[u8]| route.text(stream, bytes, None);
            let frame = tokio::select! {
                biased;
                reason = &mut pulled => return Err(KernelError::StoppedEarly { reason }),
                frame = wire.next(&mut hear) => frame,
                exit = process.exited() => return Err(self.died(exit, Begun::No)),
            };
            match frame {
                Ok(Some(frame)) if frame.t == "reply" && frame.id == Some(id) => {
                    return answer_of(&frame);
                }
                Ok(Some(mut frame)) => self.route.stray(&mut frame),
                Ok(None) => {
                    let exit = self.process.exited().await;
                    return Err(self.died(exit, Begun::No));
                }
                Err(what) => return Err(self.broken(what).await),
            }
        }
    }

    async fn drain(&mut self) -> KernelError {
        // Whoever waits for the cell's end is to hear of it first.
        self.wire.expect_nothing();
        loop {
            let (process, wire, route) = (&mut self.process, &mut self.wire, &mut self.route);
            let mut hear = |stream, bytes: &[u8]| route.text(stream, bytes, None);
            let frame = tokio::select! {
                frame = wire.next(&mut hear) => frame,
                exit = process.exited() => {
                    Self::hear_the_rest(wire, route);
                    return self.died(exit, Begun::No);
                }
            };
            match frame {
                Ok(Some(mut frame)) => self.route.stray(&mut frame),
                Ok(None) => {
                    let exit = self.process.exited().await;
                    return self.died(exit, Begun::No);
                }
                Err(what) => return self.broken(what).await,
            }
        }
    }

    /// Takes what is still on the way from a process that has ended. The frames come first: they say
    /// whose the text is.
    fn hear_the_rest(wire: &mut Wire, route: &mut Route) {
        while let Some(mut frame) =
            wire.already(&mut |stream, bytes: &[u8]| route.text(stream, bytes, None))
        {
            route.stray(&mut frame);
        }
        wire.rest(&mut |stream, bytes: &[u8]| route.text(stream, bytes, None));
    }

    async fn end(mut self, patience: Stop) -> Farewell {
        if self.process.exit().is_none() && self.wire.try_send(frame::EXIT) == frame::EXIT.len() {
            tokio::select! {
                _ = self.drain() => {}
                _ = patience.pulled() => {}
            }
        }
        let in_peace = self.process.exit().is_some();
        if !in_peace {
            self.process.terminate();
            let _ended = timeout(FAREWELL_STEP, self.drain()).await;
        }
        let exit = self.process.gone(CLEARING).await;
        // What its children said until they were ended.
        Self::hear_the_rest(&mut self.wire, &mut self.route);
        Farewell {
            exit: Some(exit),
            late: self.route.take_late(),
            in_peace,
        }
    }
}

/// What notebooks say about Python, which decides how they are shown.
fn language_info(version: &str) -> Value {
    json!({
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": version,
    })
}

impl Kernel for Runner {
    fn description(&self) -> &Description {
        &self.description
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.run(request, sink, stop))
    }

    fn ask<'a>(
        &'a mut self,
        question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(self.question(question, stop))
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(self.drain())
    }

    fn take_late(&mut self) -> Vec<LateText> {
        self.route.take_late()
    }

    fn requests(&self) -> u64 {
        self.last_id
    }

    fn is_alive(&mut self) -> bool {
        self.process.exit().is_none()
    }

    fn shutdown(self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell> {
        Box::pin(self.end(patience))
    }
}

fn answer_of(frame: &Frame) -> Result<Value, KernelError> {
    if !frame.ok {
        return Err(KernelError::NoAnswer {
            why: frame.error.clone(),
        });
    }
    let text = frame.value.as_ref().map_or("null", |value| value.get());
    serde_json::from_str(text).map_err(|error| KernelError::NoAnswer {
        why: error.to_string(),
    })
}

/// Waits until the time to react is over, or nobody wants to wait for it.
async fn patience(stopped: Option<(StopReason, Instant)>, stop: &Stop) {
    let Some((_, until)) = stopped else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = sleep_until(until) => {}
        () = stop.at_once() => {}
    }
}

/// Whether a kernel can be started in this directory.
pub fn check_directory(cwd: &std::path::Path) -> Result<(), KernelError> {
    use rustix::fs::{Access, access};

    let why = match cwd.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist",
        Err(_) => "cannot be looked at",
        Ok(found) if !found.is_dir() => "is not a directory",
        Ok(_) if access(cwd, Access::EXEC_OK).is_err() => "may not be entered",
        Ok(_) => return Ok(()),
    };
    Err(KernelError::BadDirectory {
        path: cwd.to_owned(),
        why,
    })
}

/// An answer that is there already.
fn at_hand(answer: Option<String>) -> BoxFuture<'static, Option<String>> {
    Box::pin(std::future::ready(answer))
}
