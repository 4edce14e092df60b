//! [`KernelSlot`]: the current kernel of a session, and the rules for replacing it.

use std::sync::Arc;

use cellwright_output::Sink;
use serde_json::Value;
use tracing::debug;

use super::Policy;
use super::job::{KernelLoss, SessionNotice};
use super::launcher::KernelLauncher;
use super::memory_watch;
use super::spare::SpareKernels;
use super::status::{Activity, StatusCell};
use crate::error::{KernelError, Retry};
use crate::kernel::{
    BoxFuture, Description, Ending, Kernel, KernelNotice, KernelQuery, KernelState, LateText,
    Outcome, Request, ShutdownReport,
};
use crate::process::{Exit, ProcessTable};
use crate::stop::{StopHandle, StopReason, StopSignal};

/// How many bytes of late text of earlier cells are kept for the next caller.
const LATE_TEXT_LIMIT: usize = 16 * 1024;

type StartFuture = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

pub(super) struct KernelSlot {
    /// The launcher of the latest caller.
    pub(super) launcher: Arc<dyn KernelLauncher>,
    spares: SpareKernels,
    policy: Policy,
    kernel: Option<Box<dyn Kernel>>,
    /// A start in progress. It continues when its caller leaves: the next caller uses the kernel.
    starting: Option<(StopHandle, StartFuture)>,
    /// The number of kernels so far.
    pub(super) generation: u32,
    /// The number of cells that the current kernel received.
    executions: u64,
    /// Whether the next kernel replaces one that died by itself.
    replaces_dead: bool,
    /// The number of consecutive restarts after kernels that died before they finished a cell.
    restarts: u32,
    /// Late text that no caller has received, with the generation of its kernel: every kernel counts
    /// its requests from 1.
    late_text: Vec<(u32, LateText)>,
    status: StatusCell,
}

impl KernelSlot {
    pub(super) fn new(
        launcher: Arc<dyn KernelLauncher>,
        spares: SpareKernels,
        policy: Policy,
        status: StatusCell,
    ) -> Self {
        Self {
            launcher,
            spares,
            policy,
            kernel: None,
            starting: None,
            generation: 0,
            executions: 0,
            replaces_dead: false,
            restarts: 0,
            late_text: Vec::new(),
            status,
        }
    }

    /// Whether the kernel has run no cell, so that a reset would discard nothing.
    pub(super) fn is_unused(&self) -> bool {
        self.executions == 0
    }

    pub(super) fn description(&self) -> Option<&Description> {
        self.kernel.as_ref().map(|kernel| kernel.description())
    }

    /// The activity of the session while it runs no job.
    pub(super) fn activity(&self) -> Activity {
        match (&self.kernel, &self.starting) {
            (Some(_), _) => Activity::Idle,
            (None, Some(_)) => Activity::Starting,
            (None, None) => Activity::Empty,
        }
    }

    /// Starts a kernel if there is none that can run a cell.
    pub(super) async fn ensure_ready(&mut self, stop: &StopSignal) -> Result<(), KernelError> {
        if self
            .kernel
            .as_mut()
            .is_some_and(|kernel| !kernel.is_alive())
        {
            self.record_death(KernelLoss::Died(Exit::UNKNOWN)).await;
        }
        if self.kernel.is_some() {
            return Ok(());
        }
        let mut cleared = false;
        loop {
            if self.starting.is_none() {
                if self.replaces_dead && self.restarts >= self.policy.max_restarts {
                    return Err(KernelError::RestartedTooOften);
                }
                self.begin_start(!cleared);
            }
            let started = tokio::select! {
                biased;
                reason = stop.requested() => return Err(KernelError::StoppedEarly { reason }),
                started = self.wait_started() => started,
            };
            match started {
                Ok(()) => return Ok(()),
                Err(error) if error.retry() == Retry::OnceAfterClearingSpares && !cleared => {
                    // Spare kernels hold no user's state, so they can be given back.
                    cleared = true;
                    self.spares.clear().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `refill`: whether to start a spare kernel, too.
    fn begin_start(&mut self, refill: bool) {
        let (stop_handle, stop) = StopSignal::new();
        let launcher = Arc::clone(&self.launcher);
        let spares = self.spares.clone();
        self.starting = Some((
            stop_handle,
            Box::pin(async move {
                let kernel = match spares.adopt_ready(launcher.as_ref(), &stop).await {
                    Some(kernel) => kernel,
                    None => launcher.start(stop).await?,
                };
                if refill {
                    spares.refill(&launcher);
                }
                Ok(kernel)
            }),
        ));
        self.status.with(|status| {
            if status.activity == Activity::Empty {
                status.activity = Activity::Starting;
            }
        });
    }

    /// Waits for the start in progress. Cancel-safe.
    async fn wait_started(&mut self) -> Result<(), KernelError> {
        let Some((_, start)) = &mut self.starting else {
            return std::future::pending().await;
        };
        let result = start.await;
        self.starting = None;
        let kernel = match result {
            Ok(kernel) => kernel,
            Err(error) => {
                debug!("kernel failed to start");
                self.status.with(|status| {
                    if status.activity == Activity::Starting {
                        status.activity = Activity::Empty;
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
        debug!(
            generation = self.generation,
            restarts = self.restarts,
            pid = kernel.description().pid,
            "kernel is ready"
        );
        self.status.with(|status| {
            status.generation = self.generation;
            status.executions = 0;
            status.kernel = Some(kernel.description().clone());
            if status.activity == Activity::Starting {
                status.activity = Activity::Idle;
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
        stop: &StopSignal,
        stop_handle: &StopHandle,
    ) -> CellResult {
        let generation = self.generation;
        let Some(kernel) = &mut self.kernel else {
            return CellResult {
                result: Err(KernelError::NoSession),
                notice: None,
                request_id: (generation, 0),
            };
        };
        let pid = kernel.description().pid;
        let limit = self.policy.memory_limit;
        let result = tokio::select! {
            biased;
            result = kernel.execute(request, sink, stop) => result,
            never = memory_watch::watch(pid, limit, stop_handle) => match never {},
        };
        // Read now: `apply_outcome` may dispose of the kernel.
        let request_id = (generation, kernel.request_count());
        let notice = self.apply_outcome(&result).await;
        CellResult {
            result,
            notice,
            request_id,
        }
    }

    /// Updates the counters, and disposes of the kernel if it did not survive the cell.
    async fn apply_outcome(
        &mut self,
        result: &Result<Outcome, KernelError>,
    ) -> Option<SessionNotice> {
        let not_begun = matches!(result, Err(KernelError::StoppedEarly { .. }))
            || matches!(result, Err(error) if error.retry() == Retry::OnceOnFreshKernel);
        if !not_begun {
            self.executions += 1;
            let executions = self.executions;
            self.status.with(|status| status.executions = executions);
        }
        match result {
            Ok(Outcome {
                ending:
                    Ending::Stopped {
                        reason,
                        state: KernelState::Lost,
                    },
                ..
            }) => {
                let loss = match *reason {
                    StopReason::Reset => KernelLoss::Reset,
                    StopReason::MemoryLimit { used, limit } => KernelLoss::Memory { used, limit },
                    _ => KernelLoss::Killed,
                };
                self.dispose(Some(loss)).await;
                None
            }
            Ok(_) => {
                self.restarts = 0;
                self.check_memory().await
            }
            Err(KernelError::StoppedEarly { .. }) => None,
            Err(KernelError::Died { exit, .. }) => {
                self.record_death(KernelLoss::Died(*exit)).await;
                None
            }
            Err(_) => {
                self.record_death(KernelLoss::Broken).await;
                None
            }
        }
    }

    /// Measures the kernel's memory after a cell. Returns a warning, or replaces the kernel.
    async fn check_memory(&mut self) -> Option<SessionNotice> {
        let limit = self.policy.memory_limit?;
        let used = self
            .description()
            .and_then(|description| description.pid)
            .and_then(|pid| ProcessTable::capture().tree_memory(pid))?;
        if used > limit {
            self.dispose(Some(KernelLoss::Memory { used, limit })).await;
            return Some(SessionNotice::MemoryExceeded { used, limit });
        }
        let warning = limit / 100 * u64::from(self.policy.memory_warning_percent);
        (used > warning).then_some(SessionNotice::MemoryHigh { used, limit })
    }

    pub(super) async fn query(
        &mut self,
        query: &KernelQuery,
        stop: &StopSignal,
    ) -> Result<Value, KernelError> {
        let Some(kernel) = &mut self.kernel else {
            let message = "no kernel runs in this session".to_owned();
            return Err(KernelError::QueryFailed { message });
        };
        let answer = kernel.query(query, stop).await;
        match &answer {
            Err(KernelError::Died { exit, .. }) => {
                self.record_death(KernelLoss::Died(*exit)).await;
            }
            Err(KernelError::Protocol { .. }) => self.record_death(KernelLoss::Broken).await,
            _ => {}
        }
        answer
    }

    /// Drives a start in progress, or reads the idle kernel's output. Returns after the start, and with a
    /// loss when the kernel has ended. Cancel-safe.
    pub(super) async fn drain_while_idle(&mut self) -> Option<KernelLoss> {
        if self.starting.is_some() {
            // The caller that needed it has left, so there is no receiver for an error.
            self.wait_started().await.ok();
            return None;
        }
        let Some(kernel) = &mut self.kernel else {
            return std::future::pending().await;
        };
        Some(match kernel.drain_while_idle().await {
            KernelError::Died { exit, .. } => KernelLoss::Died(exit),
            _ => KernelLoss::Broken,
        })
    }

    /// Disposes of a kernel that died by itself, and counts its replacement as a restart.
    pub(super) async fn record_death(&mut self, loss: KernelLoss) {
        self.replaces_dead = true;
        self.dispose(Some(loss)).await;
    }

    /// Disposes of the kernel for a reset, unless it is unused. A reset clears the restart count.
    pub(super) async fn replace_if_used(&mut self) {
        self.replaces_dead = false;
        self.restarts = 0;
        // A kernel that died unnoticed is replaced here as well; otherwise it would count as a restart.
        let dead = self
            .kernel
            .as_mut()
            .is_some_and(|kernel| !kernel.is_alive());
        if dead || !self.is_unused() {
            self.dispose(Some(KernelLoss::Reset)).await;
        }
    }

    /// Shuts the kernel down. `loss` is recorded for the next caller if the kernel had been used.
    async fn dispose(&mut self, loss: Option<KernelLoss>) {
        let Some(kernel) = self.kernel.take() else {
            return;
        };
        let used = self.clear_slot();
        debug!(
            generation = self.generation,
            ?loss,
            used,
            "kernel is shut down"
        );
        self.status.with(|status| {
            if used {
                status.unreported_loss = loss;
                status.resets += u32::from(loss == Some(KernelLoss::Reset));
            }
        });
        let deadline = StopSignal::never().with_timeout(self.policy.shutdown_grace);
        let report = kernel.shutdown(deadline).await;
        let late_text = report
            .late_text
            .into_iter()
            .map(|text| (self.generation, text));
        self.late_text.extend(late_text);
    }

    /// Shuts the kernel down after its last job.
    pub(super) async fn shut_down(&mut self, deadline: StopSignal) -> Option<ShutdownReport> {
        let kernel = self.kernel.take()?;
        self.clear_slot();
        Some(kernel.shutdown(deadline).await)
    }

    /// Updates status and counters after the kernel was removed. Returns whether it had been used.
    fn clear_slot(&mut self) -> bool {
        self.status.with(|status| {
            status.kernel = None;
            status.executions = 0;
            if status.activity == Activity::Idle {
                status.activity = Activity::Empty;
            }
        });
        std::mem::take(&mut self.executions) > 0
    }

    /// Ends the session's kernel and any start in progress.
    pub(super) async fn close(&mut self) {
        if let Some((stop_handle, _)) = self.starting.take() {
            stop_handle.force_stop(StopReason::ShuttingDown);
        }
        self.dispose(None).await;
    }

    /// Removes and returns late text, with the generation of its kernel.
    pub(super) fn take_late_text(&mut self) -> Vec<(u32, LateText)> {
        let mut late_text = std::mem::take(&mut self.late_text);
        if let Some(kernel) = &mut self.kernel {
            let generation = self.generation;
            late_text.extend(
                kernel
                    .take_late_text()
                    .into_iter()
                    .map(|text| (generation, text)),
            );
        }
        late_text
    }

    /// Removes and returns the notices of the kernel's launcher.
    pub(super) fn take_notices(&mut self) -> Vec<KernelNotice> {
        let kernel = self.kernel.as_mut();
        kernel
            .map(|kernel| kernel.take_notices())
            .unwrap_or_default()
    }

    /// Stores late text of a cell that is not part of the running job, for the next caller.
    pub(super) fn store_late_text(&mut self, generation: u32, mut text: LateText) {
        let stored: usize = self
            .late_text
            .iter()
            .map(|(_, text)| text.bytes.len())
            .sum();
        text.bytes.truncate(LATE_TEXT_LIMIT.saturating_sub(stored));
        if !text.bytes.is_empty() {
            self.late_text.push((generation, text));
        }
    }

    /// How often the session has been reset.
    pub(super) fn reset_count(&self) -> u32 {
        self.status.with(|status| status.resets)
    }

    /// Removes and returns the loss that the caller must be notified of. A caller that requested the
    /// reset, or called after it, knows of it (`resets_seen` is up to date); a caller that waited during
    /// the reset does not.
    pub(super) fn take_loss(&mut self, resets_seen: u32) -> Option<KernelLoss> {
        let (loss, resets) = self
            .status
            .with(|status| (status.unreported_loss.take(), status.resets));
        loss.filter(|loss| *loss != KernelLoss::Reset || resets_seen < resets)
    }
}

/// The result of running a cell.
pub(super) struct CellResult {
    pub(super) result: Result<Outcome, KernelError>,
    /// A notice for the caller.
    pub(super) notice: Option<SessionNotice>,
    /// The generation of the kernel and the cell's request number there, by which late text refers to
    /// the cell.
    pub(super) request_id: (u32, u64),
}
