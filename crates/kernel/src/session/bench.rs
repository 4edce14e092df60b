//! The kernel that a session has, and how it comes to another one.

use std::sync::Arc;

use cellwright_output::Sink;
use serde_json::Value;

use super::Policy;
use super::job::{Loss, Notice};
use super::launch::Launch;
use super::memory;
use super::report::{Activity, Face};
use super::spare::Spares;
use crate::error::{KernelError, Retry};
use crate::kernel::{
    BoxFuture, Description, Ending, Farewell, Kernel, LateText, Outcome, Question, Remark, Request,
    State,
};
use crate::process::{Exit, Processes};
use crate::stop::{Stop, StopReason, Stopper};

/// How much of what earlier cells said late is kept for the next caller.
const LATE_BYTES: usize = 16 * 1024;

type Start = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

pub(super) struct Bench {
    /// How the latest caller would have a kernel started.
    pub(super) launch: Arc<dyn Launch>,
    spares: Spares,
    policy: Policy,
    kernel: Option<Box<dyn Kernel>>,
    /// A start that is under way. It goes on when whoever wanted it leaves: the next one will.
    starting: Option<(Stopper, Start)>,
    /// How many kernels there have been.
    pub(super) generation: u32,
    /// How many cells this one has been given.
    executions: u64,
    /// Whether the next kernel replaces one that died by itself.
    replaces_dead: bool,
    /// How many have been started in a row in place of one that died before it finished a cell.
    restarts: u32,
    /// What cells said after their end and nobody has been given, each with the generation of its
    /// kernel: every kernel counts its requests from 1.
    late: Vec<(u32, LateText)>,
    face: Face,
}

impl Bench {
    pub(super) fn new(launch: Arc<dyn Launch>, spares: Spares, policy: Policy, face: Face) -> Self {
        Self {
            launch,
            spares,
            policy,
            kernel: None,
            starting: None,
            generation: 0,
            executions: 0,
            replaces_dead: false,
            restarts: 0,
            late: Vec::new(),
            face,
        }
    }

    /// Whether there is nothing in the kernel that a reset could take away.
    pub(super) fn is_fresh(&self) -> bool {
        self.executions == 0
    }

    pub(super) fn description(&self) -> Option<&Description> {
        self.kernel.as_ref().map(|kernel| kernel.description())
    }

    /// What the session does when it runs nothing.
    pub(super) fn activity(&self) -> Activity {
        match (&self.kernel, &self.starting) {
            (Some(_), _) => Activity::Idle,
            (None, Some(_)) => Activity::Starting,
            (None, None) => Activity::Empty,
        }
    }

    /// Sees to it that there is a kernel that can run a cell.
    pub(super) async fn ready(&mut self, stop: &Stop) -> Result<(), KernelError> {
        if self
            .kernel
            .as_mut()
            .is_some_and(|kernel| !kernel.is_alive())
        {
            self.bury(Loss::Died(Exit::UNKNOWN)).await;
        }
        if self.kernel.is_some() {
            return Ok(());
        }
        let mut cleared = false;
        loop {
            if self.starting.is_none() {
                if self.replaces_dead && self.restarts >= self.policy.restarts {
                    return Err(KernelError::RestartedTooOften);
                }
                self.begin_start(!cleared);
            }
            let started = tokio::select! {
                biased;
                reason = stop.pulled() => return Err(KernelError::StoppedEarly { reason }),
                started = self.started() => started,
            };
            match started {
                Ok(()) => return Ok(()),
                Err(error) if error.retry() == Retry::OnceAfterClearing && !cleared => {
                    // What is ours and holds nothing of anybody: kernels that wait to be used.
                    cleared = true;
                    self.spares.clear().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `refill`: whether a spare may be started as well.
    fn begin_start(&mut self, refill: bool) {
        let (stopper, stop) = Stop::new();
        let launch = Arc::clone(&self.launch);
        let spares = self.spares.clone();
        self.starting = Some((
            stopper,
            Box::pin(async move {
                let kernel = match spares.adopted(launch.as_ref(), &stop).await {
                    Some(kernel) => kernel,
                    None => launch.start(stop).await?,
                };
                if refill {
                    spares.refill(&launch);
                }
                Ok(kernel)
            }),
        ));
        self.face.with(|look| {
            if look.activity == Activity::Empty {
                look.activity = Activity::Starting;
            }
        });
    }

    /// Waits for the start that is under way. Cancel-safe.
    async fn started(&mut self) -> Result<(), KernelError> {
        let Some((_, start)) = &mut self.starting else {
            return std::future::pending().await;
        };
        let result = start.await;
        self.starting = None;
        let kernel = match result {
            Ok(kernel) => kernel,
            Err(error) => {
                self.face.with(|look| {
                    if look.activity == Activity::Starting {
                        look.activity = Activity::Empty;
                    }
                });
                return Err(error);
            }
        };
        self.generation += 1;
        self.executions = 0;
        if std::mem::take(&mut self.replaces_dead) {
            self.restarts += 1;
        }
        self.face.with(|look| {
            look.generation = self.generation;
            look.executions = 0;
            look.kernel = Some(kernel.description().clone());
            if look.activity == Activity::Starting {
                look.activity = Activity::Idle;
            }
        });
        self.kernel = Some(kernel);
        Ok(())
    }

    /// Runs a cell.
    pub(super) async fn execute(
        &mut self,
        request: &Request,
        sink: &mut dyn Sink,
        stop: &Stop,
        stopper: &Stopper,
    ) -> Executed {
        let generation = self.generation;
        let Some(kernel) = &mut self.kernel else {
            return Executed {
                result: Err(KernelError::NoSession),
                notice: None,
                number: (generation, 0),
            };
        };
        let pid = kernel.description().pid;
        let limit = self.policy.memory_limit;
        let result = tokio::select! {
            biased;
            result = kernel.execute(request, sink, stop) => result,
            never = memory::watch(pid, limit, stopper) => match never {},
        };
        // Asked now: the kernel may be gone in a moment.
        let number = (generation, kernel.requests());
        let notice = self.after(&result).await;
        Executed {
            result,
            notice,
            number,
        }
    }

    /// Draws the conclusions from how a cell ended.
    async fn after(&mut self, result: &Result<Outcome, KernelError>) -> Option<Notice> {
        let unbegun = matches!(result, Err(KernelError::StoppedEarly { .. }))
            || matches!(result, Err(error) if error.retry() == Retry::OnceOnAFreshKernel);
        if !unbegun {
            self.executions += 1;
            let executions = self.executions;
            self.face.with(|look| look.executions = executions);
        }
        match result {
            Ok(Outcome {
                ending:
                    Ending::Stopped {
                        reason,
                        state: State::Lost,
                    },
                ..
            }) => {
                let loss = match *reason {
                    StopReason::Reset => Loss::Reset,
                    StopReason::MemoryLimit { used, limit } => Loss::Memory { used, limit },
                    _ => Loss::Killed,
                };
                self.discard(Some(loss)).await;
                None
            }
            Ok(_) => {
                self.restarts = 0;
                self.judge_memory().await
            }
            Err(KernelError::StoppedEarly { .. }) => None,
            Err(KernelError::Died { exit, .. }) => {
                self.bury(Loss::Died(*exit)).await;
                None
            }
            Err(_) => {
                self.bury(Loss::Broken).await;
                None
            }
        }
    }

    /// Looks at the memory after a cell: warns, or has the kernel replaced.
    async fn judge_memory(&mut self) -> Option<Notice> {
        let limit = self.policy.memory_limit?;
        let used = self
            .description()
            .and_then(|description| description.pid)
            .and_then(|pid| Processes::now().memory_of(pid))?;
        if used > limit {
            self.discard(Some(Loss::Memory { used, limit })).await;
            return Some(Notice::MemoryExceeded { used, limit });
        }
        let warning = limit / 100 * u64::from(self.policy.memory_warning);
        (used > warning).then_some(Notice::MemoryHigh { used, limit })
    }

    pub(super) async fn ask(
        &mut self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Value, KernelError> {
        let Some(kernel) = &mut self.kernel else {
            let why = "no kernel runs in this session".to_owned();
            return Err(KernelError::NoAnswer { why });
        };
        let answer = kernel.ask(question, stop).await;
        match &answer {
            Err(KernelError::Died { exit, .. }) => self.bury(Loss::Died(*exit)).await,
            Err(KernelError::Protocol { .. }) => self.bury(Loss::Broken).await,
            _ => {}
        }
        answer
    }

    /// Keeps the kernel drained, and a start going; ends when something has changed, and says if the
    /// kernel must be buried. Cancel-safe.
    pub(super) async fn attend(&mut self) -> Option<Loss> {
        if self.starting.is_some() {
            // Whoever wanted it has left, and nobody is there to be told if it fails.
            self.started().await.ok();
            return None;
        }
        let Some(kernel) = &mut self.kernel else {
            return std::future::pending().await;
        };
        Some(match kernel.attend().await {
            KernelError::Died { exit, .. } => Loss::Died(exit),
            _ => Loss::Broken,
        })
    }

    /// Puts a kernel away that died by itself.
    pub(super) async fn bury(&mut self, loss: Loss) {
        self.replaces_dead = true;
        self.discard(Some(loss)).await;
    }

    /// Ends the kernel for a fresh one in its place, unless it is as fresh as can be. Whoever wants
    /// that does not mind how often it died.
    pub(super) async fn renew(&mut self) {
        self.replaces_dead = false;
        self.restarts = 0;
        // One that died unnoticed goes here, too, or it would count as a death after all.
        let dead = self
            .kernel
            .as_mut()
            .is_some_and(|kernel| !kernel.is_alive());
        if dead || !self.is_fresh() {
            self.discard(Some(Loss::Reset)).await;
        }
    }

    /// Ends the kernel; `loss` is what became of its variables.
    async fn discard(&mut self, loss: Option<Loss>) {
        let Some(kernel) = self.kernel.take() else {
            return;
        };
        let used = self.let_go();
        self.face.with(|look| {
            if used {
                look.untold = loss;
                look.resets += u32::from(loss == Some(Loss::Reset));
            }
        });
        let patience = Stop::never().with_timeout(self.policy.farewell);
        let farewell = kernel.shutdown(patience).await;
        let late = farewell
            .late
            .into_iter()
            .map(|late| (self.generation, late));
        self.late.extend(late);
    }

    /// Ends the kernel with its last job.
    pub(super) async fn end(&mut self, patience: Stop) -> Option<Farewell> {
        let kernel = self.kernel.take()?;
        self.let_go();
        Some(kernel.shutdown(patience).await)
    }

    /// There is no kernel any more; says whether it had been used.
    fn let_go(&mut self) -> bool {
        self.face.with(|look| {
            look.kernel = None;
            look.executions = 0;
            if look.activity == Activity::Idle {
                look.activity = Activity::Empty;
            }
        });
        std::mem::take(&mut self.executions) > 0
    }

    /// The session ends.
    pub(super) async fn close(&mut self) {
        if let Some((stopper, _)) = self.starting.take() {
            stopper.stop_at_once(StopReason::ShuttingDown);
        }
        self.discard(None).await;
    }

    /// Takes what cells said after their end, with the generation of their kernel.
    pub(super) fn take_late(&mut self) -> Vec<(u32, LateText)> {
        let mut late = std::mem::take(&mut self.late);
        if let Some(kernel) = &mut self.kernel {
            let generation = self.generation;
            late.extend(
                kernel
                    .take_late()
                    .into_iter()
                    .map(|late| (generation, late)),
            );
        }
        late
    }

    /// What whoever started the kernel has to say.
    pub(super) fn take_remarks(&mut self) -> Vec<Remark> {
        let kernel = self.kernel.as_mut();
        kernel
            .map(|kernel| kernel.take_remarks())
            .unwrap_or_default()
    }

    /// Keeps late text that belongs to nobody who is here, for the next caller.
    pub(super) fn keep_late(&mut self, generation: u32, mut late: LateText) {
        let kept: usize = self.late.iter().map(|(_, late)| late.bytes.len()).sum();
        late.bytes.truncate(LATE_BYTES.saturating_sub(kept));
        if !late.bytes.is_empty() {
            self.late.push((generation, late));
        }
    }

    /// How often the session has been reset.
    pub(super) fn resets(&self) -> u32 {
        self.face.with(|look| look.resets)
    }

    /// What the caller must be told about lost variables. Whoever asked for a reset, or came after
    /// it, knows (`resets`: how many of them); whoever waited meanwhile does not.
    pub(super) fn take_loss(&mut self, resets: u32) -> Option<Loss> {
        let (loss, now) = self.face.with(|look| (look.untold.take(), look.resets));
        loss.filter(|loss| *loss != Loss::Reset || resets < now)
    }
}

/// How a cell was run.
pub(super) struct Executed {
    pub(super) result: Result<Outcome, KernelError>,
    /// What a caller should know afterwards.
    pub(super) notice: Option<Notice>,
    /// The generation of the kernel, and the cell's number there, as late text names it.
    pub(super) number: (u32, u64),
}
