//! [`ScriptedKernel`]: a kernel that follows a script, for tests of code that owns kernels. It uses tokio's clock, so
//! hours pass at once if the clock is paused.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_output::{Event, Sink, Stream, Traceback};
use cellwright_stdext::LockExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::{Begun, KernelError};
use crate::kernel::{
    BoxFuture, Description, Ending, Kernel, KernelQuery, KernelState, LateText, Outcome, Request,
    ShutdownReport,
};
use crate::process::Exit;
use crate::stop::StopSignal;

/// One step of a cell.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    /// Writes to a stream.
    Print(Stream, String),
    /// Waits.
    Sleep(Duration),
    /// Raises an exception, which ends the cell.
    Raise(Traceback),
    /// The kernel dies before the code has begun.
    DieBeforeStart(Exit),
    /// The kernel dies.
    Die(Exit),
    /// Writes to a stream after the end of the cell, this long from now.
    PrintLate(Duration, Stream, String),
    /// Runs until it is interrupted.
    RunUntilStopped,
    /// Runs and ignores interrupts.
    IgnoreInterrupts,
}

/// The calls that a scripted kernel received; clones share them.
#[derive(Clone, Debug, Default)]
pub struct CallLog(Arc<Mutex<Vec<String>>>);

impl CallLog {
    /// All calls so far, in order.
    pub fn entries(&self) -> Vec<String> {
        self.0.lock_ignoring_poison().clone()
    }

    fn add(&self, entry: String) {
        self.0.lock_ignoring_poison().push(entry);
    }
}

/// Kills a scripted kernel at any time.
#[derive(Clone, Debug)]
pub struct KillHandle(watch::Sender<Option<Exit>>);

impl KillHandle {
    /// Kills the kernel. Only the first call has an effect.
    pub fn kill(&self, exit: Exit) {
        self.0.send_if_modified(|status| {
            let first = status.is_none();
            status.get_or_insert(exit);
            first
        });
    }
}

/// Returns the steps for the code of a cell.
type Script = Box<dyn FnMut(&str) -> Vec<ScriptStep> + Send + Sync>;

/// A kernel that follows a script: a list of steps for each cell.
pub struct ScriptedKernel {
    description: Description,
    script: Script,
    log: CallLog,
    count: u32,
    /// How it died, if it has.
    exit: watch::Sender<Option<Exit>>,
    /// Late output, and when it is printed.
    late: Vec<(Instant, LateText)>,
    /// How long it takes to answer a query; `None` if it supports no queries.
    query_delay: Option<Duration>,
    /// How long it takes to shut down.
    shutdown_delay: Duration,
}

impl fmt::Debug for ScriptedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("name", &self.description.name)
            .field("exit", &self.exit.borrow())
            .finish_non_exhaustive()
    }
}

impl ScriptedKernel {
    /// A kernel that runs these steps for its cells, one list per cell; further cells do nothing.
    pub fn new(cells: impl IntoIterator<Item = Vec<ScriptStep>>) -> (Self, CallLog) {
        let mut cells: VecDeque<Vec<ScriptStep>> = cells.into_iter().collect();
        Self::with_script(move |_| cells.pop_front().unwrap_or_default())
    }

    /// A kernel that runs the steps that `script` returns for the code of each cell.
    pub fn with_script(
        script: impl FnMut(&str) -> Vec<ScriptStep> + Send + Sync + 'static,
    ) -> (Self, CallLog) {
        let log = CallLog::default();
        let kernel = Self {
            description: Description {
                backend: "scripted",
                name: "scripted".to_owned(),
                server: None,
                kernel_id: None,
                pid: None,
                interpreter: None,
                version: None,
                language: None,
                display_name: None,
                language_info: None,
            },
            script: Box::new(script),
            log: log.clone(),
            count: 0,
            exit: watch::Sender::new(None),
            late: Vec::new(),
            query_delay: None,
            shutdown_delay: Duration::ZERO,
        };
        (kernel, log)
    }

    /// Sets the name of the kernel.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.description.name = name.into();
        self
    }

    /// Answers queries after this delay with the number of cells that ran.
    #[must_use]
    pub fn with_query_delay(mut self, delay: Duration) -> Self {
        self.query_delay = Some(delay);
        self
    }

    /// Delays a shutdown, like threads that are still running.
    #[must_use]
    pub fn with_shutdown_delay(mut self, delay: Duration) -> Self {
        self.shutdown_delay = delay;
        self
    }

    /// Prints text before the first cell.
    #[must_use]
    pub fn with_startup_output(mut self, stream: Stream, text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        let text = LateText {
            request: 0,
            stream,
            bytes,
        };
        self.late.push((Instant::now(), text));
        self
    }

    /// A handle that kills the kernel.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle(self.exit.clone())
    }

    fn exit_status(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits until it is killed.
    async fn wait_killed(&self) -> Exit {
        let mut status = self.exit.subscribe();
        match status.wait_for(Option::is_some).await.map(|exit| *exit) {
            Ok(Some(exit)) => exit,
            _ => std::future::pending().await,
        }
    }

    async fn run_script(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &StopSignal,
    ) -> Result<Outcome, KernelError> {
        if let Some(exit) = self.exit_status() {
            return Err(died_error(exit, Begun::No));
        }
        if let Some(reason) = stop.reason() {
            return Err(KernelError::StoppedEarly { reason });
        }
        self.log.add(format!("execute {}", request.code));
        self.count += 1;
        let count = Some(self.count);
        let ended = |ending| {
            Ok(Outcome {
                ending,
                execution_count: count,
            })
        };
        for step in (self.script)(&request.code) {
            match step {
                ScriptStep::Print(stream, text) => sink.push(Event::Text {
                    stream,
                    bytes: text.as_bytes(),
                }),
                ScriptStep::Sleep(time) => tokio::select! {
                    biased;
                    reason = stop.requested() => {
                        self.log.add("interrupted".to_owned());
                        let state = KernelState::Preserved;
                        return ended(Ending::Stopped { reason, state });
                    }
                    exit = self.wait_killed() => return Err(died_error(exit, Begun::Maybe)),
                    () = tokio::time::sleep(time) => {}
                },
                ScriptStep::Raise(traceback) => {
                    sink.push(Event::Raised(traceback.clone()));
                    return ended(Ending::Raised(traceback));
                }
                ScriptStep::DieBeforeStart(exit) => {
                    self.kill_handle().kill(exit);
                    return Err(died_error(exit, Begun::No));
                }
                ScriptStep::Die(exit) => {
                    self.kill_handle().kill(exit);
                    return Err(died_error(exit, Begun::Maybe));
                }
                ScriptStep::PrintLate(after, stream, text) => {
                    let text = LateText {
                        request: u64::from(self.count),
                        stream,
                        bytes: text.into_bytes(),
                    };
                    self.late.push((Instant::now() + after, text));
                }
                ScriptStep::RunUntilStopped => {
                    let reason = tokio::select! {
                        biased;
                        exit = self.wait_killed() => return Err(died_error(exit, Begun::Maybe)),
                        reason = stop.requested() => reason,
                    };
                    self.log.add("interrupted".to_owned());
                    let state = KernelState::Preserved;
                    return ended(Ending::Stopped { reason, state });
                }
                ScriptStep::IgnoreInterrupts => {
                    let reason = tokio::select! {
                        biased;
                        exit = self.wait_killed() => return Err(died_error(exit, Begun::Maybe)),
                        reason = stop.requested() => reason,
                    };
                    self.log.add("interrupted".to_owned());
                    tokio::select! {
                        biased;
                        () = stop.forced() => {}
                        () = tokio::time::sleep(super::runner::INTERRUPT_GRACE) => {}
                    }
                    self.log.add("killed".to_owned());
                    self.kill_handle().kill(Exit {
                        code: None,
                        signal: Some(9),
                    });
                    let state = KernelState::Lost;
                    return ended(Ending::Stopped { reason, state });
                }
            }
        }
        ended(Ending::Completed)
    }
}

fn died_error(exit: Exit, begun: Begun) -> KernelError {
    KernelError::Died {
        exit,
        stderr: String::new(),
        begun,
    }
}

impl Kernel for ScriptedKernel {
    fn description(&self) -> &Description {
        &self.description
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(self.run_script(request, sink, stop))
    }

    fn query<'a>(
        &'a mut self,
        _query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(async move {
            let Some(time) = self.query_delay else {
                let message = "the script supports no queries".to_owned();
                return Err(KernelError::QueryFailed { message });
            };
            tokio::select! {
                biased;
                exit = self.wait_killed() => Err(died_error(exit, Begun::No)),
                reason = stop.requested() => Err(KernelError::StoppedEarly { reason }),
                () = tokio::time::sleep(time) => Ok(Value::from(self.count)),
            }
        })
    }

    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError> {
        Box::pin(async { died_error(self.wait_killed().await, Begun::No) })
    }

    fn take_late_text(&mut self) -> Vec<LateText> {
        let now = Instant::now();
        let printed = self.late.extract_if(.., |(at, _)| *at <= now);
        printed.map(|(_, text)| text).collect()
    }

    fn request_count(&self) -> u64 {
        u64::from(self.count)
    }

    fn is_alive(&mut self) -> bool {
        self.exit_status().is_none()
    }

    fn shutdown(self: Box<Self>, deadline: StopSignal) -> BoxFuture<'static, ShutdownReport> {
        self.log.add("shutdown".to_owned());
        Box::pin(async move {
            let graceful = self.exit_status().is_some()
                || tokio::select! {
                    biased;
                    () = tokio::time::sleep(self.shutdown_delay) => true,
                    _ = deadline.requested() => false,
                };
            ShutdownReport {
                exit: self.exit_status(),
                late_text: self.late.into_iter().map(|(_, text)| text).collect(),
                graceful,
            }
        })
    }
}
