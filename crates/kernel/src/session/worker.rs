//! [`Worker`]: the task of a session. It owns the kernel, runs one job after the other, and handles
//! commands meanwhile.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellwright_output::Event;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Policy;
use super::cell_request_ids::CellRequestIds;
use super::job::{AfterJob, CellEnd, Job, OnError, SessionNotice};
use super::kernel_slot::{CellResult, KernelSlot};
use super::launcher::KernelLauncher;
use super::mailbox::{Mailbox, SessionCommand};
use super::queue::{QueuedCall, queue_stop, with_limit};
use super::spare::SpareKernels;
use super::status::{Activity, StatusCell};
use crate::error::{KernelError, Retry};
use crate::kernel::{Ending, KernelQuery, KernelState, LateText};
use crate::stop::{StopReason, StopSignal, TimeLimit};

/// How long a kernel may take to shut down after a job whose last cell failed.
const FAILED_JOB_GRACE: Duration = Duration::from_secs(1);

/// How long a kernel may take at least to shut down after a job that succeeded.
const SHUTDOWN_TIMEOUT_MIN: Duration = Duration::from_secs(2);

pub(super) struct Worker {
    mailbox: Mailbox,
    slot: KernelSlot,
}

/// Runs a job on a new kernel, which is shut down afterwards.
pub async fn run_once(launcher: Arc<dyn KernelLauncher>, policy: Policy, mut job: Job) {
    job.after = AfterJob::ShutDown;
    let (commands, receiver) = mpsc::channel(1);
    let status = StatusCell::new();
    let worker = Worker::new(
        Mailbox::new(receiver, StopSignal::never(), status.clone()),
        KernelSlot::new(
            Arc::clone(&launcher),
            SpareKernels::disabled(),
            policy,
            status,
        ),
    );
    let call = QueuedCall::Run {
        queue_stop: queue_stop(&job),
        job: Box::new(job),
        resets_seen: 0,
        launcher,
    };
    // Cannot fail: the channel has a capacity of one and is empty.
    commands.try_send(SessionCommand::Enqueue(call)).ok();
    drop(commands);
    worker.run().await;
}

impl Worker {
    pub(super) fn new(mailbox: Mailbox, slot: KernelSlot) -> Self {
        Self { mailbox, slot }
    }

    /// Serves the session until it ends.
    pub(super) async fn run(mut self) {
        while !self.mailbox.is_ending() && !self.mailbox.is_closed_and_empty() {
            if !self.mailbox.pending_resets.is_empty() {
                self.serve_resets().await;
                continue;
            }
            match self.mailbox.queue.pop() {
                Some(QueuedCall::Run {
                    job,
                    resets_seen,
                    launcher,
                    ..
                }) => {
                    self.slot.launcher = launcher;
                    self.run_job(*job, resets_seen).await;
                }
                Some(QueuedCall::Query { query, stop, reply }) => {
                    self.run_query(&query, &stop, reply).await;
                }
                None => {
                    let drained = self.mailbox.wait_idle(self.slot.drain_while_idle()).await;
                    if let Some(Some(loss)) = drained {
                        let death = self.slot.record_death(loss);
                        self.mailbox.serve_while(None, death).await;
                    }
                }
            }
        }
        self.mailbox.close();
        self.slot.close().await;
    }

    /// Replaces the kernel once for all callers that wait for a reset.
    async fn serve_resets(&mut self) {
        let (slot, never) = (&mut self.slot, StopSignal::never());
        let replaced = self.mailbox.serve_until_end(async {
            slot.replace_if_used().await;
            slot.ensure_ready(&never).await
        });
        let Some(result) = replaced.await else {
            // The session ends: closing the mailbox replies to the callers.
            return;
        };
        let generation = match result {
            Ok(()) => self.slot.generation,
            // The next call starts a kernel and reports the error.
            Err(_) => 0,
        };
        // Include resets that arrived at the last moment.
        self.mailbox.receive_pending();
        for reply in self.mailbox.pending_resets.drain(..) {
            self.mailbox.status.call_finished();
            reply.send(Ok(generation)).ok();
        }
    }

    async fn run_query(
        &mut self,
        query: &KernelQuery,
        stop: &StopSignal,
        reply: oneshot::Sender<Result<Value, KernelError>>,
    ) {
        let answer = match stop.reason() {
            Some(reason) => Err(KernelError::StoppedEarly { reason }),
            None => self
                .mailbox
                .serve_until_end(self.slot.query(query, stop))
                .await
                .unwrap_or(Err(KernelError::SessionEnded)),
        };
        self.mailbox.status.call_finished();
        reply.send(answer).ok();
    }

    async fn run_job(&mut self, mut job: Job, resets_seen: u32) {
        self.mailbox.status.with(|status| {
            status.activity = Activity::Busy {
                owner: job.owner.clone(),
                label: job.label.clone(),
                since: SystemTime::now(),
            };
        });
        let mut progress = JobProgress {
            resets_seen,
            reported_generation: 0,
            requests: CellRequestIds::default(),
        };
        let mut last_stop = Some(job.stop.clone());
        for index in 0..job.cells.len() {
            last_stop = self.run_cell(&mut job, index, &mut progress).await;
            if last_stop.is_none() {
                break;
            }
        }
        if job.after == AfterJob::ShutDown {
            // As Python does at its exit: wait for threads as long as there is time.
            // A cell that used up its time leaves some for the shutdown.
            let deadline = match last_stop.filter(|stop| stop.reason().is_none()) {
                Some(stop) => match stop.remaining() {
                    Some(left) => job.stop.with_timeout(left.max(SHUTDOWN_TIMEOUT_MIN)),
                    None => stop,
                },
                None => StopSignal::never().with_timeout(FAILED_JOB_GRACE),
            };
            let shutdown = self.slot.shut_down(deadline);
            let report = self
                .mailbox
                .serve_while(Some(&job.stop_handle), shutdown)
                .await;
            if let Some(report) = report {
                job.observer.on_shutdown(&report);
                let generation = self.slot.generation;
                for text in report.late_text {
                    if let Some(text) = progress.attribute_late_text(generation, text, &mut job) {
                        self.slot.store_late_text(generation, text);
                    }
                }
            }
        }
        let activity = self.slot.activity();
        self.mailbox
            .status
            .with(|status| status.activity = activity);
        // Before `on_done`: when the caller learns of the end, the session is free.
        self.mailbox.status.call_finished();
        job.observer.on_done();
    }

    /// Runs one cell. Returns its stop signal if the job continues.
    async fn run_cell(
        &mut self,
        job: &mut Job,
        index: usize,
        progress: &mut JobProgress,
    ) -> Option<StopSignal> {
        if self.mailbox.is_ending() {
            job.stop_handle.stop(StopReason::ShuttingDown);
        }
        // A cell that will not run must not reset the kernel, and must not consume the notices that the
        // next caller needs.
        if let Some(reason) = job.stop.reason() {
            let end = CellEnd {
                result: Err(KernelError::StoppedEarly { reason }),
                duration: Duration::ZERO,
            };
            job.observer.on_cell_end(index, end);
            return None;
        }
        let mut retried = false;
        let cell = job.cells.create(index);
        if job.cells.needs_reset(index) {
            self.mailbox
                .serve_while(Some(&job.stop_handle), self.slot.replace_if_used())
                .await;
            progress.resets_seen = self.slot.reset_count();
        }
        loop {
            let ready = self
                .mailbox
                .serve_while(Some(&job.stop_handle), self.slot.ensure_ready(&job.stop))
                .await;
            if let Err(error) = ready {
                let end = CellEnd {
                    result: Err(error),
                    duration: Duration::ZERO,
                };
                job.observer.on_cell_end(index, end);
                return None;
            }
            self.report_kernel(job, progress);
            let startup_text = self.startup_text(job, progress);
            let sink = job.observer.on_cell_begin(index);
            for text in &startup_text {
                sink.push(Event::Text {
                    stream: text.stream,
                    bytes: &text.bytes,
                });
            }
            // The observer may have waited until a large notebook was saved: that is not the time of the cell.
            let started = Instant::now();
            let stop = with_limit(&job.stop, TimeLimit::Cell, cell.timeout);
            let execution = self
                .slot
                .execute(&cell.request, sink, &stop, &job.stop_handle);
            let CellResult {
                result,
                notice,
                request_id,
            } = self
                .mailbox
                .serve_while(Some(&job.stop_handle), execution)
                .await;
            let duration = started.elapsed();
            progress.requests.push(index, request_id);
            for (generation, text) in self.slot.take_late_text() {
                if let Some(text) = progress.attribute_late_text(generation, text, job) {
                    self.slot.store_late_text(generation, text);
                }
            }
            if let Some(notice) = notice {
                job.observer.on_notice(notice);
            }
            for notice in self.slot.take_notices() {
                job.observer.on_notice(SessionNotice::Kernel(notice));
            }
            let not_begun =
                matches!(&result, Err(error) if error.retry() == Retry::OnceOnFreshKernel);
            if not_begun && !retried {
                retried = true;
                continue;
            }
            let continues = match &result {
                Ok(outcome) => continues_after(&outcome.ending, cell.on_error),
                Err(_) => false,
            };
            job.observer
                .on_cell_end(index, CellEnd { result, duration });
            return continues.then_some(stop);
        }
    }

    /// Reports the kernel to the observer, if it is not the one that was reported before.
    fn report_kernel(&mut self, job: &mut Job, progress: &mut JobProgress) {
        let generation = self.slot.generation;
        if progress.reported_generation == generation {
            return;
        }
        progress.reported_generation = generation;
        if let Some(loss) = self.slot.take_loss(progress.resets_seen) {
            job.observer
                .on_notice(SessionNotice::Restarted { generation, loss });
        }
        for notice in self.slot.take_notices() {
            job.observer.on_notice(SessionNotice::Kernel(notice));
        }
        let is_new = self.slot.is_unused();
        if let Some(description) = self.slot.description() {
            job.observer.on_kernel(description, generation, is_new);
        }
    }

    /// Takes the text that arrived before the cell. Returns the text of the kernel's start, which belongs
    /// to the first cell; reports late text of earlier jobs as notices.
    fn startup_text(&mut self, job: &mut Job, progress: &JobProgress) -> Vec<LateText> {
        let mut startup_text = Vec::new();
        let unused = self.slot.is_unused();
        for (generation, text) in self.slot.take_late_text() {
            if unused && text.request == 0 && generation == self.slot.generation {
                startup_text.push(text);
            } else if let Some(text) = progress.attribute_late_text(generation, text, job) {
                let LateText { stream, bytes, .. } = text;
                job.observer
                    .on_notice(SessionNotice::LateText { stream, bytes });
            }
        }
        startup_text
    }
}

/// Whether a job continues after a cell with this ending.
fn continues_after(ending: &Ending, on_error: OnError) -> bool {
    match ending {
        Ending::Completed => true,
        Ending::Raised(_) => on_error == OnError::Continue,
        Ending::Stopped { reason, state } => {
            let timed_out = matches!(reason, StopReason::TimedOut { .. });
            on_error == OnError::Continue && timed_out && *state == KernelState::Preserved
        }
    }
}

/// The progress of a running job.
struct JobProgress {
    /// How many resets of the session the caller knows of.
    resets_seen: u32,
    /// The generation that was last reported to the observer; 0 for none.
    reported_generation: u32,
    requests: CellRequestIds,
}

impl JobProgress {
    /// Passes late text to the observer under the cell that printed it. Returns the text if that cell is
    /// not part of this job.
    fn attribute_late_text(
        &self,
        generation: u32,
        text: LateText,
        job: &mut Job,
    ) -> Option<LateText> {
        match self.requests.find_cell((generation, text.request)) {
            Some(index) => {
                job.observer.on_late_text(index, &text);
                None
            }
            None => Some(text),
        }
    }
}
