//! The built-in kernel: a Python program (`crates/kernel/python`) that runs as a child process. It needs
//! only an interpreter.

mod cell;
mod channel;
mod frame;
pub(super) mod staging;
mod text_router;
mod trace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use cellwright_output::{Event, Sink};
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use crate::backend::launch_error::launch_error;
use crate::env_json;
use crate::error::{Begun, KernelError};
use crate::kernel::{
    BoxFuture, Description, Kernel, KernelQuery, KernelState, LateText, Outcome, PendingInput,
    Prompt, Request, ShutdownReport, input_reply,
};
use crate::launch_context::LaunchContext;
use crate::process::{ChildCommand, Exit, Supervised};
use crate::stop::{StopReason, StopSignal};
use cell::RunningCell;
use channel::RunnerChannel;
use frame::Frame;
use text_router::TextRouter;
use trace::Trace;

pub use staging::staged_dir_name;

/// How long a cell may run after an interrupt before its kernel is killed.
pub const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// How many interrupts are sent within that time.
const INTERRUPTS_MAX: u32 = 5;

/// How long each step of a shutdown may take: request, SIGTERM.
const SHUTDOWN_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the supervisor may take to end the processes that the kernel started.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The exit code of `boot.py` for an interpreter that is too old.
const TOO_OLD_EXIT_CODE: i32 = 86;

/// Queries have ids from this number on, so that the ids of cells have no gaps.
const QUERY_ID_BASE: u64 = 1 << 48;

/// The name of this backend.
pub const NAME: &str = "runner";

/// How to start a runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunnerSpec {
    /// The interpreter.
    pub python: PathBuf,
    /// Its whole environment.
    #[serde(with = "env_json")]
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take to become ready.
    pub start_timeout: Duration,
    /// How long a cell may run after an interrupt.
    pub interrupt_grace: Duration,
    /// A file that receives a log of the frames on its channel, for debugging.
    pub trace: Option<PathBuf>,
}

/// A running runner.
pub struct Runner {
    process: Supervised,
    channel: RunnerChannel,
    router: TextRouter,
    description: Description,
    interrupt_grace: Duration,
    last_id: u64,
    last_query: u64,
}

impl Runner {
    /// Starts a runner and waits until it is ready.
    pub async fn start(
        spec: &RunnerSpec,
        context: &LaunchContext,
        stop: &StopSignal,
    ) -> Result<Self, KernelError> {
        check_directory(&context.cwd)?;
        let dirs = context.staging.clone();
        let staged = tokio::task::spawn_blocking(move || staging::stage(&dirs)).await;
        let files = staged.map_err(|source| KernelError::from_exhaustion(source.into()))??;
        let program = &spec.python;
        let mut env = spec.env.clone();
        // Until the runner runs, nothing may be imported from the working directory (`boot.py`
        // reverts this).
        crate::variables::set_variable(&mut env, "PYTHONSAFEPATH", "1".into());
        let command = ChildCommand {
            arguments: vec![
                program.into(),
                "-c".into(),
                staging::BOOT_SCRIPT.into(),
                files.into(),
                "{channel}".into(),
            ],
            env,
            cwd: context.cwd.clone(),
        };
        let (process, ends) = Supervised::start(&context.supervisor, &command)
            .await
            .map_err(|error| launch_error(error, program.clone(), context))?;
        let channel = RunnerChannel::new(ends, Trace::open(spec.trace.as_deref()))
            .map_err(|source| KernelError::from_launch(program.clone(), source))?;
        let mut runner = Self {
            description: Description {
                backend: NAME,
                name: "python3".to_owned(),
                server: None,
                kernel_id: None,
                pid: Some(process.pid()),
                interpreter: Some(program.clone()),
                version: None,
                language: Some("python".to_owned()),
                display_name: Some("Python 3".to_owned()),
                language_info: None,
            },
            process,
            channel,
            router: TextRouter::default(),
            interrupt_grace: spec.interrupt_grace,
            last_id: 0,
            last_query: 0,
        };
        let hello = tokio::select! {
            biased;
            reason = stop.requested() => return Err(KernelError::StoppedEarly { reason }),
            hello = timeout(spec.start_timeout, runner.read_hello()) => hello,
        };
        match hello {
            Ok(result) => result.map(|()| runner),
            Err(_) => Err(KernelError::NotReady {
                after: spec.start_timeout,
                stderr: runner.router.stderr_tail(),
            }),
        }
    }

    async fn read_hello(&mut self) -> Result<(), KernelError> {
        let (process, channel, router) = (&mut self.process, &mut self.channel, &mut self.router);
        let mut on_text = |stream, bytes: &[u8]| router.route_text(stream, bytes, None);
        let frame = tokio::select! {
            frame = channel.next_frame(&mut on_text) => frame,
            exit = process.wait() => {
                channel.drain_text(&mut on_text);
                return Err(self.start_error(exit));
            }
        };
        match frame {
            Ok(Some(frame)) if frame.frame_type == "hello" => {
                let set = channel.set_nonce(&frame.nonce);
                set.map_err(|violation| KernelError::Protocol { violation })?;
                self.description.language_info = Some(language_info(&frame.version).into());
                self.description.version = Some(frame.version);
                if !frame.executable.is_empty() {
                    self.description.interpreter = Some(frame.executable.into());
                }
                Ok(())
            }
            Ok(Some(frame)) => Err(KernelError::Protocol {
                violation: format!(
                    "the first frame is `{}`, not `hello`",
                    frame.frame_type.escape_debug()
                ),
            }),
            Ok(None) => {
                let exit = process.wait().await;
                channel.drain_text(&mut on_text);
                Err(self.start_error(exit))
            }
            Err(violation) => Err(KernelError::Protocol { violation }),
        }
    }

    fn start_error(&self, exit: Exit) -> KernelError {
        let stderr = self.router.stderr_tail();
        if exit.code == Some(TOO_OLD_EXIT_CODE) {
            let version = stderr.split("this is ").nth(1).unwrap_or_default();
            let version = version.split_whitespace().next().unwrap_or("too old");
            return KernelError::TooOld {
                interpreter: self.description.interpreter.clone().unwrap_or_default(),
                version: version.to_owned(),
            };
        }
        KernelError::FailedToStart { exit, stderr }
    }

    /// Sends a frame. Fails if the kernel dies or `stop` is requested first.
    async fn send(&mut self, bytes: &[u8], stop: &StopSignal) -> Result<(), KernelError> {
        self.channel.trace_frame(bytes);
        // Nearly every frame fits into the socket buffer: then there is nothing to wait for.
        let sent = if bytes.len() < 64 * 1024 {
            self.channel.try_send(bytes)
        } else {
            0
        };
        let bytes = &bytes[sent..];
        if bytes.is_empty() {
            return Ok(());
        }
        let (process, channel) = (&mut self.process, &mut self.channel);
        tokio::select! {
            biased;
            reason = stop.requested() => {
                // A part of the frame may have been sent: the channel is unusable.
                process.kill();
                Err(KernelError::StoppedEarly { reason })
            }
            exit = process.wait() => Err(self.died_error(exit, Begun::No)),
            sent = channel.send(bytes) => {
                if sent.is_ok() {
                    return Ok(());
                }
                let exit = process.wait().await;
                Err(self.died_error(exit, Begun::No))
            }
        }
    }

    fn died_error(&self, exit: Exit, begun: Begun) -> KernelError {
        KernelError::Died {
            exit,
            stderr: self.router.stderr_tail(),
            begun,
        }
    }

    /// Kills a kernel that violated the protocol.
    async fn end_with_protocol_error(&mut self, violation: String) -> KernelError {
        self.process.kill_and_wait().await;
        KernelError::Protocol { violation }
    }

    async fn run_cell(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Outcome, KernelError> {
        if let Some(exit) = self.process.exit() {
            return Err(self.died_error(exit, Begun::No));
        }
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.last_id += 1;
        let cell = RunningCell::new(self.last_id, request);
        let bytes = frame::encode_execute(cell.id, request)
            .map_err(|violation| KernelError::Protocol { violation })?;
        self.router.begin_cell(cell.id);
        self.send(&bytes, stop).await?;
        self.channel.spin_for_reply();
        self.follow_cell(cell, sink, stop).await
    }

    /// Handles frames and text until the cell ends, and interrupts it when `stop` is requested.
    async fn follow_cell(
        &mut self,
        mut cell: RunningCell,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Outcome, KernelError> {
        let mut stop_requested = pin!(stop.requested());
        // Why the cell was stopped, and when its grace is over.
        let mut stopped: Option<(StopReason, Instant)> = None;
        // An interrupt can be lost: C's `system` ignores it, and a handler of the code can ignore it. So it is
        // repeated within the grace.
        let mut repeat = tokio::time::interval(self.interrupt_grace / INTERRUPTS_MAX);
        let mut pending_input: Option<PendingInput> = None;
        loop {
            let (process, channel, router) =
                (&mut self.process, &mut self.channel, &mut self.router);
            let mut on_text =
                |stream, bytes: &[u8]| router.route_text(stream, bytes, Some(&mut *sink));
            let frame = tokio::select! {
                biased;
                reason = &mut stop_requested, if stopped.is_none() => {
                    process.interrupt();
                    repeat.reset();
                    stopped = Some((reason, Instant::now() + self.interrupt_grace));
                    continue;
                }
                _ = repeat.tick(), if stopped.is_some() => {
                    process.interrupt();
                    continue;
                }
                () = grace_elapsed(stopped, stop), if stopped.is_some() => {
                    process.kill_and_wait().await;
                    channel.drain_text(&mut on_text);
                    return Ok(cell.outcome(stopped.map(|(reason, _)| (reason, KernelState::Lost))));
                }
                frame = channel.next_frame(&mut on_text) => frame,
                exit = process.wait() => return self.finish_after_exit(cell, exit, stopped, sink),
                answer = input_reply(&mut pending_input), if pending_input.is_some() => {
                    let prompt = pending_input.take().map(|(prompt, _)| prompt);
                    match self.send_answer(cell.id, prompt, answer, sink, stop).await {
                        // The kernel was killed.
                        Err(KernelError::StoppedEarly { reason }) => {
                            return Ok(cell.outcome(Some((reason, KernelState::Lost))));
                        }
                        sent => sent?,
                    }
                    continue;
                }
            };
            match frame {
                Ok(Some(mut frame)) => {
                    if let Some(prompt) = cell.handle_frame(&mut frame, &mut self.router, sink) {
                        let answer = cell.answer_input(&prompt);
                        pending_input = Some((prompt, answer));
                    }
                    if cell.done.is_some() {
                        return Ok(cell
                            .outcome(stopped.map(|(reason, _)| (reason, KernelState::Preserved))));
                    }
                }
                Ok(None) => {
                    // The process has died, or the code closed the channel, which makes the kernel unusable.
                    if let Ok(exit) = timeout(SHUTDOWN_STEP_TIMEOUT, self.process.wait()).await {
                        return self.finish_after_exit(cell, exit, stopped, sink);
                    }
                    let violation = "it closed its channel".to_owned();
                    return Err(self.end_with_protocol_error(violation).await);
                }
                Err(violation) => return Err(self.end_with_protocol_error(violation).await),
            }
        }
    }

    /// Sends the answer to an input request; `None` refuses it.
    async fn send_answer(
        &mut self,
        cell: u64,
        prompt: Option<Prompt>,
        answer: Option<String>,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<(), KernelError> {
        if let (Some(prompt), None) = (prompt, &answer) {
            let prompt = prompt.text;
            sink.push(Event::InputRefused { prompt });
        }
        let bytes = frame::encode_answer(cell, answer.as_deref());
        self.send(&bytes, stop).await
    }

    /// Reads the rest of the output of a process that exited while a cell ran.
    fn finish_after_exit(
        &mut self,
        mut cell: RunningCell,
        exit: Exit,
        stopped: Option<(StopReason, Instant)>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, KernelError> {
        let (channel, router) = (&mut self.channel, &mut self.router);
        while let Some(mut frame) = channel.try_next_frame(&mut |stream, bytes: &[u8]| {
            router.route_text(stream, bytes, Some(&mut *sink));
        }) {
            cell.handle_frame(&mut frame, router, sink);
        }
        channel.drain_text(&mut |stream, bytes: &[u8]| {
            router.route_text(stream, bytes, Some(&mut *sink));
        });
        if cell.done.is_some() || stopped.is_some() {
            return Ok(cell.outcome(stopped.map(|(reason, _)| (reason, KernelState::Lost))));
        }
        let begun = if cell.started {
            Begun::Maybe
        } else {
            Begun::No
        };
        Err(self.died_error(exit, begun))
    }

    async fn send_query(
        &mut self,
        query: &KernelQuery,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        self.last_query += 1;
        let id = QUERY_ID_BASE + self.last_query;
        self.send(&frame::encode_query(id, query), stop).await?;
        let mut stop_requested = pin!(stop.requested());
        loop {
            let (process, channel, router) =
                (&mut self.process, &mut self.channel, &mut self.router);
            let mut on_text = |stream, bytes: &[u8]| router.route_text(stream, bytes, None);
            let frame = tokio::select! {
                biased;
                reason = &mut stop_requested => return Err(KernelError::StoppedEarly { reason }),
                frame = channel.next_frame(&mut on_text) => frame,
                exit = process.wait() => return Err(self.died_error(exit, Begun::No)),
            };
            match frame {
                Ok(Some(frame)) if frame.frame_type == "reply" && frame.id == Some(id) => {
                    return parse_reply(&frame);
                }
                Ok(Some(mut frame)) => self.router.handle_unrelated(&mut frame),
                Ok(None) => {
                    let exit = self.process.wait().await;
                    return Err(self.died_error(exit, Begun::No));
                }
                Err(violation) => return Err(self.end_with_protocol_error(violation).await),
            }
        }
    }

    async fn drain(&mut self) -> KernelError {
        // The task that waits for the end of the cell must run first.
        self.channel.stop_spinning();
        loop {
            let (process, channel, router) =
                (&mut self.process, &mut self.channel, &mut self.router);
            let mut on_text = |stream, bytes: &[u8]| router.route_text(stream, bytes, None);
            let frame = tokio::select! {
                frame = channel.next_frame(&mut on_text) => frame,
                exit = process.wait() => {
                    Self::drain_remaining(channel, router);
                    return self.died_error(exit, Begun::No);
                }
            };
            match frame {
                Ok(Some(mut frame)) => self.router.handle_unrelated(&mut frame),
                Ok(None) => {
                    let exit = self.process.wait().await;
                    return self.died_error(exit, Begun::No);
                }
                Err(violation) => return self.end_with_protocol_error(violation).await,
            }
        }
    }

    /// Reads the remaining data of a process that has exited. Frames come first: they name the cell that the text
    /// belongs to.
    fn drain_remaining(channel: &mut RunnerChannel, router: &mut TextRouter) {
        while let Some(mut frame) = channel
            .try_next_frame(&mut |stream, bytes: &[u8]| router.route_text(stream, bytes, None))
        {
            router.handle_unrelated(&mut frame);
        }
        channel.drain_text(&mut |stream, bytes: &[u8]| router.route_text(stream, bytes, None));
    }

    async fn shut_down(mut self, deadline: StopSignal) -> ShutdownReport {
        self.channel.trace_frame(frame::EXIT_FRAME);
        if self.process.exit().is_none()
            && self.channel.try_send(frame::EXIT_FRAME) == frame::EXIT_FRAME.len()
        {
            tokio::select! {
                _ = self.drain() => {}
                _ = deadline.requested() => {}
            }
        }
        let graceful = self.process.exit().is_some();
        if !graceful {
            self.process.terminate();
            let _ended = timeout(SHUTDOWN_STEP_TIMEOUT, self.drain()).await;
        }
        let exit = self.process.wait_all_gone(CLEANUP_TIMEOUT).await;
        // The output of its children until they were ended.
        Self::drain_remaining(&mut self.channel, &mut self.router);
        ShutdownReport {
            exit: Some(exit),
            late_text: self.router.take_late_text(),
            graceful,
        }
    }
}

/// The `language_info` for notebooks, which decides how editors show them.
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
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.run_cell(request, sink, stop))
    }

    fn query<'a>(
        &'a mut self,
        query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(self.send_query(query, stop))
    }

    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(self.drain())
    }

    fn take_late_text(&mut self) -> Vec<LateText> {
        self.router.take_late_text()
    }

    fn request_count(&self) -> u64 {
        self.last_id
    }

    fn is_alive(&mut self) -> bool {
        self.process.exit().is_none()
    }

    fn shutdown(self: Box<Self>, deadline: StopSignal) -> BoxFuture<'static, ShutdownReport> {
        Box::pin(self.shut_down(deadline))
    }
}

fn parse_reply(frame: &Frame) -> Result<Value, KernelError> {
    if !frame.ok {
        return Err(KernelError::QueryFailed {
            message: frame.error.clone(),
        });
    }
    let text = frame.value.as_ref().map_or("null", |value| value.get());
    serde_json::from_str(text).map_err(|error| KernelError::QueryFailed {
        message: error.to_string(),
    })
}

/// Waits until the grace after an interrupt is over, or the caller skips it.
async fn grace_elapsed(stopped: Option<(StopReason, Instant)>, stop: &StopSignal) {
    let Some((_, until)) = stopped else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = sleep_until(until) => {}
        () = stop.forced() => {}
    }
}

/// Checks that a kernel can be started in this directory.
pub fn check_directory(cwd: &Directory) -> Result<(), KernelError> {
    use rustix::fs::{Access, access};

    let path = cwd.open_path();
    let problem = match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist",
        Err(_) => "is not accessible",
        Ok(found) if !found.is_dir() => "is not a directory",
        Ok(_) if access(&path, Access::EXEC_OK).is_err() => "cannot be entered (no permission)",
        Ok(_) => return Ok(()),
    };
    Err(KernelError::BadDirectory {
        path: cwd.path().to_owned(),
        problem,
    })
}
