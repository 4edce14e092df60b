//! Where sessions are played: a pool whose kernels do what their cells say, and audiences that write
//! down in one line each what they hear.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_kernel::backend::scripted::{Killer, Log, Scripted, Step};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::{
    Audience, Call, Cell, CellEnd, Job, Launch, Loss, Notice, Policy, SessionId, SessionKey,
    Sessions, Spares, Then, run_once,
};
use cellwright_kernel::{
    BoxFuture, Description, Ending, Farewell, Kernel, KernelError, LateText, Outcome, Question,
    Stop, Stopper,
};
use cellwright_output::{Event, Sink, Stream};
use serde_json::Value;
use tokio::sync::oneshot;

pub(super) const DEAD: Exit = Exit {
    code: None,
    signal: Some(9),
};

/// How the next start goes.
#[derive(Default)]
struct Plan {
    takes: Duration,
    fails: Option<KernelError>,
    says: Option<String>,
    lingers: Duration,
}

#[derive(Default)]
struct Backstage {
    plans: VecDeque<Plan>,
    cells: Vec<Vec<Vec<Step>>>,
    ran: Vec<String>,
    kernels: Vec<(Killer, Log)>,
    starts: usize,
    adopts: usize,
    adopt_fails: bool,
}

/// A pool and what is behind it.
pub(super) struct Stage {
    pub(super) pool: Sessions,
    pub(super) spares: Spares,
    policy: Policy,
    backstage: Arc<Mutex<Backstage>>,
}

/// A job that was handed in.
pub(super) struct Handed {
    pub(super) stopper: Stopper,
    pub(super) session: Option<SessionId>,
    pub(super) new: bool,
    heard: oneshot::Receiver<Vec<String>>,
}

impl Handed {
    /// Everything its audience heard.
    pub(super) async fn done(self) -> Vec<String> {
        self.heard.await.expect("it is always done")
    }
}

struct Launcher {
    backstage: Arc<Mutex<Backstage>>,
    sort: Option<String>,
}

fn lock(backstage: &Mutex<Backstage>) -> std::sync::MutexGuard<'_, Backstage> {
    backstage.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launch for Launcher {
    fn start(&self, _stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let backstage = Arc::clone(&self.backstage);
        Box::pin(async move {
            let plan = {
                let mut guard = lock(&backstage);
                guard.starts += 1;
                guard.plans.pop_front().unwrap_or_default()
            };
            tokio::time::sleep(plan.takes).await;
            if let Some(error) = plan.fails {
                return Err(error);
            }
            let play = {
                let backstage = Arc::clone(&backstage);
                move |code: &str| {
                    let mut guard = lock(&backstage);
                    guard.ran.push(code.to_owned());
                    let (job, cell) = code.split_once('.').unwrap();
                    let (job, cell): (usize, usize) = (job.parse().unwrap(), cell.parse().unwrap());
                    guard.cells[job][cell].clone()
                }
            };
            let (kernel, log) = Scripted::playing(play);
            let mut kernel = kernel.answering(Duration::ZERO).lingering(plan.lingers);
            if let Some(text) = plan.says {
                kernel = kernel.saying(Stream::Stderr, &text);
            }
            let mut guard = lock(&backstage);
            guard.kernels.push((kernel.killer(), log));
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }

    fn spare(&self) -> Option<String> {
        self.sort.clone()
    }

    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: Stop,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let mut guard = lock(&self.backstage);
        guard.adopts += 1;
        let fails = guard.adopt_fails;
        drop(guard);
        Box::pin(async move {
            if fails {
                let why = "no".to_owned();
                kernel.shutdown(Stop::never()).await;
                return Err(KernelError::NoAnswer { why });
            }
            Ok(kernel)
        })
    }
}

impl Stage {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with(policy, Spares::none())
    }

    pub(super) fn with(policy: Policy, spares: Spares) -> Self {
        Self {
            pool: Sessions::new(policy.clone(), spares.clone()),
            spares,
            policy,
            backstage: Arc::default(),
        }
    }

    pub(super) fn call(&self, owner: &str, reset: bool) -> Call {
        self.call_to("session", owner, reset)
    }

    pub(super) fn call_to(&self, name: &str, owner: &str, reset: bool) -> Call {
        Call {
            key: SessionKey {
                name: name.to_owned(),
                cwd: PathBuf::from("/"),
                kernel: "python3".to_owned(),
            },
            owner: owner.to_owned(),
            // Kernels of bare sessions cannot be started beforehand.
            launch: self.launch((name != "bare").then(|| "python".to_owned())),
            reset,
        }
    }

    fn launch(&self, sort: Option<String>) -> Arc<dyn Launch> {
        Arc::new(Launcher {
            backstage: Arc::clone(&self.backstage),
            sort,
        })
    }

    fn job(&self, owner: &str, cells: &[Vec<Step>], limit: Option<Duration>) -> (Job, Handed) {
        let mut guard = lock(&self.backstage);
        let number = guard.cells.len();
        guard.cells.push(cells.to_vec());
        let (stopper, stop) = Stop::new();
        let (sender, heard) = oneshot::channel();
        let cells = (0..cells.len()).map(|index| Cell {
            timeout: limit,
            ..Cell::new(format!("{number}.{index}"))
        });
        let job = Job {
            cells: cells.collect(),
            owner: owner.to_owned(),
            label: format!("job {number}"),
            stopper: stopper.clone(),
            stop,
            then: Then::Keep,
            audience: Box::new(Listener {
                lines: Lines(Vec::new()),
                sender,
            }),
        };
        let handed = Handed {
            stopper,
            session: None,
            new: false,
            heard,
        };
        (job, handed)
    }

    pub(super) fn submit(&self, owner: &str, cells: &[Vec<Step>]) -> Handed {
        let (job, handed) = self.job(owner, cells, None);
        self.hand(&self.call(owner, false), job, handed)
    }

    pub(super) fn submit_limited(
        &self,
        owner: &str,
        cells: &[Vec<Step>],
        limit: Duration,
    ) -> Handed {
        let (job, handed) = self.job(owner, cells, Some(limit));
        self.hand(&self.call(owner, false), job, handed)
    }

    pub(super) fn submit_to(&self, call: &Call, cells: &[Vec<Step>]) -> Handed {
        let (job, handed) = self.job(&call.owner, cells, None);
        self.hand(call, job, handed)
    }

    /// A job whose cell of this number wants a fresh kernel.
    pub(super) fn submit_reset_at(&self, owner: &str, cells: &[Vec<Step>], at: usize) -> Handed {
        let (mut job, handed) = self.job(owner, cells, None);
        job.cells[at].reset = true;
        self.hand(&self.call(owner, false), job, handed)
    }

    fn hand(&self, call: &Call, job: Job, mut handed: Handed) -> Handed {
        if let Some(accepted) = self.pool.submit(call, job) {
            handed.session = Some(accepted.id);
            handed.new = accepted.new;
        }
        handed
    }

    pub(super) async fn run_once(&self, cells: &[Vec<Step>], limit: Duration) -> Vec<String> {
        let (job, handed) = self.job("a", cells, Some(limit));
        run_once(self.launch(None), self.policy.clone(), job).await;
        handed.done().await
    }

    pub(super) async fn ask(&self, id: SessionId) -> Result<Value, KernelError> {
        let question = Question::Variables { limit: 10 };
        self.pool.ask(id, question, &Stop::never()).await
    }

    fn plan(&self, plan: Plan) {
        lock(&self.backstage).plans.push_back(plan);
    }

    /// The next start takes this long.
    pub(super) fn next_start(&self, takes: Duration) {
        self.plan(Plan {
            takes,
            ..Plan::default()
        });
    }

    /// The next start fails.
    pub(super) fn next_fails(&self) {
        let exit = Exit {
            code: Some(1),
            signal: None,
        };
        let stderr = String::new();
        self.plan(Plan {
            fails: Some(KernelError::FailedToStart { exit, stderr }),
            ..Plan::default()
        });
    }

    /// The next start finds no descriptors.
    pub(super) fn next_is_exhausted(&self) {
        let source = std::io::Error::from_raw_os_error(24);
        self.plan(Plan {
            fails: Some(KernelError::exhausted_by(source)),
            ..Plan::default()
        });
    }

    /// The next kernel says this while it starts.
    pub(super) fn next_says(&self, text: &str) {
        self.plan(Plan {
            says: Some(text.to_owned()),
            ..Plan::default()
        });
    }

    /// The next kernel has threads that go on this long.
    pub(super) fn next_lingers(&self, lingers: Duration) {
        self.plan(Plan {
            lingers,
            ..Plan::default()
        });
    }

    pub(super) fn adopting_fails(&self) {
        lock(&self.backstage).adopt_fails = true;
    }

    /// Kills a kernel, counted from 1 as they were started.
    pub(super) fn kill(&self, number: usize) {
        lock(&self.backstage).kernels[number - 1].0.kill(DEAD);
    }

    /// How many starts were begun.
    pub(super) fn started(&self) -> usize {
        lock(&self.backstage).starts
    }

    pub(super) fn adopted(&self) -> usize {
        lock(&self.backstage).adopts
    }

    /// How many were not shut down.
    pub(super) fn alive(&self) -> usize {
        let guard = lock(&self.backstage);
        let shut = |log: &Log| log.entries().iter().any(|entry| entry == "shutdown");
        guard.kernels.iter().filter(|(_, log)| !shut(log)).count()
    }

    /// The cells that kernels were given, in order.
    pub(super) fn ran(&self) -> Vec<String> {
        lock(&self.backstage).ran.clone()
    }

    pub(super) async fn pass(&self, seconds: u64) {
        // A moment more, so that everybody has had a turn.
        let moment = Duration::from_millis(1);
        tokio::time::sleep(Duration::from_secs(seconds) + moment).await;
    }
}

struct Listener {
    lines: Lines,
    sender: oneshot::Sender<Vec<String>>,
}

struct Lines(Vec<String>);

impl Sink for Lines {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.0
                .push(format!("said {}", String::from_utf8_lossy(bytes)));
        }
    }
}

impl Listener {
    fn line(&mut self, line: String) {
        self.lines.0.push(line);
    }
}

impl Audience for Listener {
    fn kernel(&mut self, _description: &Description, generation: u32) {
        self.line(format!("kernel {generation}"));
    }

    fn begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.line(format!("begin {cell}"));
        &mut self.lines
    }

    fn end(&mut self, cell: usize, end: CellEnd) {
        let line = match end.result {
            Ok(Outcome { ending, .. }) => match ending {
                Ending::Completed => format!("ok {cell}"),
                Ending::Raised(_) => format!("raised {cell}"),
                Ending::Exited { code } => format!("exit {cell} {code}"),
                Ending::Stopped { reason, state } => format!("stopped {cell} {reason:?} {state:?}"),
            },
            Err(KernelError::StoppedEarly { reason }) => format!("early {cell} {reason:?}"),
            Err(error) => format!("failed {cell}: {error}"),
        };
        self.line(line);
    }

    fn late(&mut self, cell: usize, text: &LateText) {
        let text = String::from_utf8_lossy(&text.bytes).into_owned();
        self.line(format!("late {cell} {text}"));
    }

    fn tell(&mut self, notice: Notice) {
        let line = match notice {
            Notice::Restarted {
                generation,
                loss: Loss::Died(exit),
            } => format!(
                "restarted {generation} Died(signal {})",
                exit.signal.unwrap()
            ),
            Notice::Restarted { generation, loss } => format!("restarted {generation} {loss:?}"),
            Notice::Late { bytes, .. } => format!("heard {}", String::from_utf8_lossy(&bytes)),
            Notice::Busy { owner, label, .. } => format!("busy {owner} {label}"),
            other => format!("{other:?}"),
        };
        self.line(line);
    }

    fn farewell(&mut self, farewell: &Farewell) {
        self.line(format!("farewell in peace: {}", farewell.in_peace));
    }

    fn done(self: Box<Self>) {
        // Not every test wants to know.
        self.sender.send(self.lines.0).ok();
    }
}
