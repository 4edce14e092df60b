//! [`SessionFixture`]: a pool with scripted kernels, and observers that record each event as one line.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_kernel::backend::scripted::{CallLog, KillHandle, ScriptStep, ScriptedKernel};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::{
    AfterJob, CellEnd, Job, JobCell, JobObserver, KernelLauncher, KernelLoss, Policy, SessionCall,
    SessionId, SessionKey, SessionNotice, Sessions, SpareKernels, run_once,
};
use cellwright_kernel::{
    BoxFuture, Description, Ending, Kernel, KernelError, KernelId, KernelQuery, LateText, Outcome,
    ShutdownReport, StopHandle, StopReason, StopSignal,
};
use cellwright_output::{Event, Sink, Stream};
use cellwright_stdext::LockExt;
use serde_json::Value;
use tokio::sync::oneshot;

pub(super) const DEAD: Exit = Exit {
    code: None,
    signal: Some(9),
};

/// The course of the next start.
#[derive(Default)]
struct StartPlan {
    delay: Duration,
    error: Option<KernelError>,
    startup_text: Option<String>,
    shutdown_delay: Duration,
}

#[derive(Default)]
struct FixtureState {
    plans: VecDeque<StartPlan>,
    cells: Vec<Vec<Vec<ScriptStep>>>,
    ran: Vec<String>,
    kernels: Vec<(KillHandle, CallLog)>,
    starts: usize,
    adopts: usize,
    adopt_fails: bool,
}

/// A pool and the state of its scripted kernels.
pub(super) struct SessionFixture {
    pub(super) pool: Sessions,
    pub(super) spares: SpareKernels,
    policy: Policy,
    state: Arc<Mutex<FixtureState>>,
}

/// A submitted job.
pub(super) struct SubmittedJob {
    pub(super) stop_handle: StopHandle,
    pub(super) session: Option<SessionId>,
    pub(super) created: bool,
    events: oneshot::Receiver<Vec<String>>,
}

impl SubmittedJob {
    /// Waits for the job and returns all events of its observer.
    pub(super) async fn finish(self) -> Vec<String> {
        self.events.await.expect("`on_done` is always called")
    }
}

struct ScriptedLauncher {
    state: Arc<Mutex<FixtureState>>,
    spare_key: Option<String>,
}

fn lock(state: &Mutex<FixtureState>) -> std::sync::MutexGuard<'_, FixtureState> {
    state.lock_ignoring_poison()
}

impl KernelLauncher for ScriptedLauncher {
    fn start(&self, _stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let state = Arc::clone(&self.state);
        Box::pin(async move {
            let plan = {
                let mut guard = lock(&state);
                guard.starts += 1;
                guard.plans.pop_front().unwrap_or_default()
            };
            tokio::time::sleep(plan.delay).await;
            if let Some(error) = plan.error {
                return Err(error);
            }
            let script = {
                let state = Arc::clone(&state);
                move |code: &str| {
                    let mut guard = lock(&state);
                    guard.ran.push(code.to_owned());
                    let (job, cell) = code.split_once('.').unwrap();
                    let (job, cell): (usize, usize) = (job.parse().unwrap(), cell.parse().unwrap());
                    guard.cells[job][cell].clone()
                }
            };
            let (kernel, log) = ScriptedKernel::with_script(script);
            let mut kernel = kernel
                .with_query_delay(Duration::ZERO)
                .with_shutdown_delay(plan.shutdown_delay);
            if let Some(text) = plan.startup_text {
                kernel = kernel.with_startup_output(Stream::Stderr, &text);
            }
            let mut guard = lock(&state);
            guard.kernels.push((kernel.kill_handle(), log));
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }

    fn spare_key(&self) -> Option<String> {
        self.spare_key.clone()
    }

    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let mut guard = lock(&self.state);
        guard.adopts += 1;
        let fails = guard.adopt_fails;
        drop(guard);
        Box::pin(async move {
            if fails {
                let message = "no".to_owned();
                kernel.shutdown(StopSignal::never()).await;
                return Err(KernelError::QueryFailed { message });
            }
            Ok(kernel)
        })
    }
}

impl SessionFixture {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with_spares(policy, SpareKernels::disabled())
    }

    pub(super) fn with_spares(policy: Policy, spares: SpareKernels) -> Self {
        Self {
            pool: Sessions::new(policy.clone(), spares.clone()),
            spares,
            policy,
            state: Arc::default(),
        }
    }

    /// A fixture whose pool shares the limit with this one.
    pub(super) fn sibling(&self) -> Self {
        Self {
            pool: self.pool.sibling(),
            spares: self.spares.clone(),
            policy: self.policy.clone(),
            state: Arc::clone(&self.state),
        }
    }

    pub(super) fn call(&self, owner: &str, reset: bool) -> SessionCall {
        self.call_to("session", owner, reset)
    }

    pub(super) fn call_to(&self, name: &str, owner: &str, reset: bool) -> SessionCall {
        SessionCall {
            key: SessionKey {
                name: name.to_owned(),
                cwd: PathBuf::from("/"),
                kernel: KernelId::Runner {
                    python: "python3".into(),
                },
            },
            owner: owner.to_owned(),
            // Bare sessions have no spare kernels.
            launcher: self.launcher((name != "bare").then(|| "python".to_owned())),
            reset,
        }
    }

    fn launcher(&self, spare_key: Option<String>) -> Arc<dyn KernelLauncher> {
        Arc::new(ScriptedLauncher {
            state: Arc::clone(&self.state),
            spare_key,
        })
    }

    fn job(
        &self,
        owner: &str,
        cells: &[Vec<ScriptStep>],
        limit: Option<Duration>,
        reset_at: Option<usize>,
    ) -> (Job, SubmittedJob) {
        let mut guard = lock(&self.state);
        let number = guard.cells.len();
        guard.cells.push(cells.to_vec());
        let (stop_handle, stop) = StopSignal::new();
        let (sender, events) = oneshot::channel();
        let cells = (0..cells.len()).map(|index| JobCell {
            timeout: limit,
            reset: reset_at == Some(index),
            ..JobCell::new(format!("{number}.{index}"))
        });
        let job = Job {
            queue_timeout: limit,
            cells: cells.collect(),
            owner: owner.to_owned(),
            label: format!("job {number}"),
            stop_handle: stop_handle.clone(),
            stop,
            after: AfterJob::KeepKernel,
            observer: Box::new(LineObserver {
                lines: LineSink(Vec::new()),
                sender,
            }),
        };
        let submitted = SubmittedJob {
            stop_handle,
            session: None,
            created: false,
            events,
        };
        (job, submitted)
    }

    pub(super) fn submit(&self, owner: &str, cells: &[Vec<ScriptStep>]) -> SubmittedJob {
        let (job, submitted) = self.job(owner, cells, None, None);
        self.submit_job(&self.call(owner, false), job, submitted)
    }

    pub(super) fn submit_limited(
        &self,
        owner: &str,
        cells: &[Vec<ScriptStep>],
        limit: Duration,
    ) -> SubmittedJob {
        let (job, submitted) = self.job(owner, cells, Some(limit), None);
        self.submit_job(&self.call(owner, false), job, submitted)
    }

    pub(super) fn submit_to(&self, call: &SessionCall, cells: &[Vec<ScriptStep>]) -> SubmittedJob {
        let (job, submitted) = self.job(&call.owner, cells, None, None);
        self.submit_job(call, job, submitted)
    }

    /// Submits a job whose cell with this index needs a fresh kernel.
    pub(super) fn submit_reset_at(
        &self,
        owner: &str,
        cells: &[Vec<ScriptStep>],
        at: usize,
    ) -> SubmittedJob {
        let (job, submitted) = self.job(owner, cells, None, Some(at));
        self.submit_job(&self.call(owner, false), job, submitted)
    }

    fn submit_job(
        &self,
        call: &SessionCall,
        job: Job,
        mut submitted: SubmittedJob,
    ) -> SubmittedJob {
        if let Some(accepted) = self.pool.submit(call, job) {
            submitted.session = Some(accepted.id);
            submitted.created = accepted.created;
        }
        submitted
    }

    pub(super) async fn run_once(&self, cells: &[Vec<ScriptStep>], limit: Duration) -> Vec<String> {
        let (job, submitted) = self.job("a", cells, Some(limit), None);
        run_once(self.launcher(None), self.policy.clone(), job).await;
        submitted.finish().await
    }

    pub(super) async fn query(&self, id: SessionId) -> Result<Value, KernelError> {
        let query = KernelQuery::Variables { limit: 10 };
        self.pool.query(id, query, &StopSignal::never()).await
    }

    fn push_plan(&self, plan: StartPlan) {
        lock(&self.state).plans.push_back(plan);
    }

    /// Sets the duration of the next start.
    pub(super) fn delay_next_start(&self, delay: Duration) {
        self.push_plan(StartPlan {
            delay,
            ..StartPlan::default()
        });
    }

    /// Makes the next start fail.
    pub(super) fn fail_next_start(&self) {
        let exit = Exit {
            code: Some(1),
            signal: None,
        };
        let stderr = String::new();
        self.push_plan(StartPlan {
            error: Some(KernelError::FailedToStart { exit, stderr }),
            ..StartPlan::default()
        });
    }

    /// Makes the next start fail for lack of descriptors.
    pub(super) fn exhaust_next_start(&self) {
        let source = std::io::Error::from_raw_os_error(24);
        self.push_plan(StartPlan {
            error: Some(KernelError::from_exhaustion(source)),
            ..StartPlan::default()
        });
    }

    /// Makes the next kernel print this text while it starts.
    pub(super) fn print_on_next_start(&self, text: &str) {
        self.push_plan(StartPlan {
            startup_text: Some(text.to_owned()),
            ..StartPlan::default()
        });
    }

    /// Gives the next kernel threads that run this long.
    pub(super) fn delay_next_shutdown(&self, shutdown_delay: Duration) {
        self.push_plan(StartPlan {
            shutdown_delay,
            ..StartPlan::default()
        });
    }

    pub(super) fn fail_adoptions(&self) {
        lock(&self.state).adopt_fails = true;
    }

    /// Kills a kernel; they are numbered from 1 in the order of their starts.
    pub(super) fn kill(&self, number: usize) {
        lock(&self.state).kernels[number - 1].0.kill(DEAD);
    }

    /// The number of starts.
    pub(super) fn start_count(&self) -> usize {
        lock(&self.state).starts
    }

    pub(super) fn adoption_count(&self) -> usize {
        lock(&self.state).adopts
    }

    /// The number of kernels that were not shut down.
    pub(super) fn running_count(&self) -> usize {
        let guard = lock(&self.state);
        let shut_down = |log: &CallLog| log.entries().iter().any(|entry| entry == "shutdown");
        guard
            .kernels
            .iter()
            .filter(|(_, log)| !shut_down(log))
            .count()
    }

    /// The cells that kernels received, in order.
    pub(super) fn executed_cells(&self) -> Vec<String> {
        lock(&self.state).ran.clone()
    }

    pub(super) async fn advance(&self, seconds: u64) {
        // A little longer, so that every task has run.
        let margin = Duration::from_millis(1);
        tokio::time::sleep(Duration::from_secs(seconds) + margin).await;
    }
}

struct LineObserver {
    lines: LineSink,
    sender: oneshot::Sender<Vec<String>>,
}

struct LineSink(Vec<String>);

impl Sink for LineSink {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.0
                .push(format!("text {}", String::from_utf8_lossy(bytes)));
        }
    }
}

impl LineObserver {
    fn line(&mut self, line: String) {
        self.lines.0.push(line);
    }
}

impl JobObserver for LineObserver {
    fn on_kernel(&mut self, _description: &Description, generation: u32, _is_new: bool) {
        self.line(format!("kernel {generation}"));
    }

    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.line(format!("begin {cell}"));
        &mut self.lines
    }

    fn on_cell_end(&mut self, cell: usize, end: CellEnd) {
        let line = match end.result {
            Ok(Outcome { ending, .. }) => match ending {
                Ending::Completed => format!("ok {cell}"),
                Ending::Raised(_) => format!("raised {cell}"),
                Ending::Stopped { reason, state } => {
                    format!("stopped {cell} {} {state:?}", stop_name(reason))
                }
            },
            Err(KernelError::StoppedEarly { reason }) => {
                format!("early {cell} {}", stop_name(reason))
            }
            Err(error) => format!("failed {cell}: {error}"),
        };
        self.line(line);
    }

    fn on_late_text(&mut self, cell: usize, text: &LateText) {
        let text = String::from_utf8_lossy(&text.bytes).into_owned();
        self.line(format!("late {cell} {text}"));
    }

    fn on_notice(&mut self, notice: SessionNotice) {
        let line = match notice {
            SessionNotice::Restarted {
                generation,
                loss: KernelLoss::Died(exit),
            } => format!(
                "restarted {generation} Died(signal {})",
                exit.signal.unwrap()
            ),
            SessionNotice::Restarted { generation, loss } => {
                format!("restarted {generation} {loss:?}")
            }
            SessionNotice::LateText { bytes, .. } => {
                format!("earlier {}", String::from_utf8_lossy(&bytes))
            }
            SessionNotice::Busy { owner, label, .. } => format!("busy {owner} {label}"),
            other => format!("{other:?}"),
        };
        self.line(line);
    }

    fn on_shutdown(&mut self, report: &ShutdownReport) {
        self.line(format!("shutdown graceful: {}", report.graceful));
    }

    fn on_done(self: Box<Self>) {
        // Fails if the test does not wait for the events.
        self.sender.send(self.lines.0).ok();
    }
}

/// The reason of a stop, such as `Cancelled` or `Cell(7s)`.
fn stop_name(reason: StopReason) -> String {
    match reason {
        StopReason::TimedOut { limit, after } => format!("{limit:?}({after:?})"),
        other => format!("{other:?}"),
    }
}
