//! Compares the events of a job's observer with the model.

use std::time::Duration;

use cellwright_kernel::session::{KernelLoss, SessionNotice};
use cellwright_kernel::{KernelError, Outcome, StopReason};
use tokio::time::Instant;

use super::model::{KernelEnd, ModelState};

/// How much later than its deadline a cell may be answered: its time to react to an interrupt, and the
/// shutdown of kernels and spares in between.
const ANSWER_TOLERANCE: Duration = Duration::from_secs(5 + 3);

impl ModelState {
    /// A job received its kernel.
    pub(super) fn kernel_reported(&mut self, job: usize, kernel: u32, generation: u32) {
        self.note(&format!(
            "job {job}: on kernel {kernel}, generation {generation}"
        ));
        let id = self.jobs[job].session.unwrap();
        let reported = self.jobs[job].reported_loss.take();
        self.jobs[job].kernel = Some(kernel);
        let session = self.sessions.get_mut(&id).unwrap();
        let (last, before) = (session.generation, session.kernel.replace(kernel));
        session.generation = generation;
        let state_kernel = session.state_kernel;
        self.check(
            if before == Some(kernel) {
                generation == last
            } else {
                generation > last
            },
            &format!("session {id} went from generation {last} to {generation}"),
        );
        if let Some((number, _)) = reported {
            self.check(
                number == generation,
                &format!("job {job} was notified of generation {number}, not {generation}"),
            );
        }
        let reported = reported.map(|(_, loss)| loss);
        match state_kernel {
            Some((lost, inherited)) if lost != kernel => {
                let session = self.sessions.get_mut(&id).unwrap();
                session.state_kernel = None;
                self.check_loss(job, (lost, inherited), reported);
            }
            _ => self.check(
                reported.is_none(),
                &format!("job {job} lost nothing and was notified of {reported:?}"),
            ),
        }
    }

    /// The callers' variables are lost: checks the notice to this caller.
    fn check_loss(
        &mut self,
        job: usize,
        (kernel, inherited): (u32, bool),
        reported: Option<KernelLoss>,
    ) {
        let id = self.jobs[job].session.unwrap();
        let end = self.kernel(kernel).end;
        let ended = self.kernel(kernel).ended_at;
        let resets = self.sessions[&id].resets;
        let next = self.jobs[job].next();
        let own = self.jobs[job].cells[next].reset;
        let is_informed = own || inherited || self.jobs[job].submitted > ended;
        let reset_expected = match reported {
            None => is_informed,
            Some(KernelLoss::Reset) => !is_informed && resets > 0,
            _ => false,
        };
        let evicted = matches!(
            reported,
            Some(KernelLoss::Idle(_) | KernelLoss::Evicted { .. })
        );
        let expected = match end {
            // The session decides whether a death, a reset or an eviction came first.
            Some(KernelEnd::Died { unnoticed }) => {
                matches!(reported, Some(KernelLoss::Died(_)))
                    || (unnoticed
                        && resets > 0
                        && (reset_expected || reported == Some(KernelLoss::Reset)))
                    || (unnoticed && inherited && evicted)
            }
            Some(KernelEnd::Killed(StopReason::Reset) | KernelEnd::Ended { live: true }) => {
                reset_expected
            }
            Some(KernelEnd::Killed(_)) => reported == Some(KernelLoss::Killed),
            Some(KernelEnd::Ended { live: false }) | None => inherited && evicted,
        };
        self.check(
            expected,
            &format!(
                "job {job} (own reset {own}) lost kernel {kernel} ({end:?}, inherited {inherited}) and was notified of {reported:?}"
            ),
        );
    }

    pub(super) fn notice_received(&mut self, job: usize, notice: &SessionNotice) {
        match notice {
            SessionNotice::Restarted { generation, loss } => {
                self.note(&format!("job {job}: restarted, {generation}, {loss:?}"));
                let before = self.jobs[job].reported_loss.replace((*generation, *loss));
                self.check(before.is_none(), &format!("job {job} was notified twice"));
            }
            SessionNotice::Busy { owner, label, .. } => {
                self.note(&format!("job {job}: busy with {label} of {owner}"));
                let other: usize = label.parse().unwrap();
                let mismatch = other == job
                    || self.jobs[other].done > 0
                    || self.jobs[other].session != self.jobs[job].session
                    || self.jobs[other].owner.to_string() != *owner;
                self.check(
                    !mismatch,
                    &format!("job {job} was notified that it waits for {other}"),
                );
            }
            SessionNotice::LateText { bytes, .. } => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                self.note(&format!("job {job}: earlier cells printed {text}"));
                let is_own_text = text.starts_with(&format!("late {job}."));
                self.check(
                    !is_own_text,
                    &format!("job {job} received its own {text} as a notice"),
                );
            }
            other => self.violation(&format!("job {job} received {other:?}")),
        }
    }

    pub(super) fn late_text_received(&mut self, job: usize, cell: usize, text: &str) {
        self.note(&format!("job {job}: cell {cell} printed {text}"));
        self.check(
            text == format!("late {job}.{cell}"),
            &format!("cell {job}.{cell} did not print {text}"),
        );
    }

    pub(super) fn cell_began(&mut self, job: usize, cell: usize) {
        self.note(&format!("job {job}: cell {cell} begins"));
        self.jobs[job].began = Some(Instant::now());
        let state = &mut self.jobs[job].cells[cell];
        state.begins += 1;
        let (begins, attempts, begun) = (state.begins, state.attempts, state.begun);
        self.check(
            begins == 1 || (begins == 2 && begun == 0 && attempts <= 1),
            &format!("cell {job}.{cell} begins again ({begins}), begun {begun}"),
        );
        let next = self.jobs[job].next();
        self.check(next == cell, &format!("cell {job}.{cell} is not next"));
        let id = self.jobs[job].session.unwrap();
        let before = self.sessions.get_mut(&id).unwrap().latest_job.replace(job);
        self.check(
            before.is_none_or(|before| before <= job),
            &format!("job {job} came after {before:?} and begins later"),
        );
    }

    pub(super) fn cell_ended(
        &mut self,
        job: usize,
        cell: usize,
        result: &Result<Outcome, KernelError>,
        succeeded: bool,
        description: &str,
    ) {
        self.note(&format!("job {job}: cell {cell} ended, {description}"));
        let next = self.jobs[job].next();
        let state = &mut self.jobs[job];
        state.cells[cell].ends += 1;
        state.succeeded = succeeded;
        let ends = state.cells[cell].ends;
        let since = std::mem::replace(&mut state.since, Instant::now());
        let timeout = state.cells[cell].timeout;
        let began = state.began.take();
        let stopped = state.stopped.map(|at| at.max(since));
        let (begun, session) = (state.cells[cell].begun, state.session);
        let unmatched = state.reported_loss.is_some();
        self.check(ends == 1, &format!("cell {job}.{cell} ended {ends} times"));
        self.check(
            next == cell,
            &format!("cell {job}.{cell} ended out of turn"),
        );
        self.check(
            !unmatched,
            &format!("job {job} was notified of a restart without a kernel"),
        );
        self.check(
            begun == 1 || result.is_err(),
            &format!("cell {job}.{cell} ended without having begun"),
        );
        // A cell is limited from its begin. The first cell of a job also limits the wait for the session, and not the
        // start of a kernel after it.
        let due = timeout.and_then(|timeout| Some(began? + timeout));
        let queue_due = timeout.filter(|_| cell == 0 && began.is_none());
        let queue_due = queue_due.map(|timeout| since + timeout);
        // A cell that has not begun may wait for another kernel.
        let begun_due = due.filter(|_| begun > 0);
        for due in begun_due.into_iter().chain(stopped) {
            let over = Instant::now().saturating_duration_since(due);
            self.check(
                over <= ANSWER_TOLERANCE,
                &format!("cell {job}.{cell} was answered {over:?} after its time"),
            );
        }
        match result {
            Err(KernelError::RestartedTooOften) => {
                let limit = self.max_restarts;
                let session = &self.sessions[&session.unwrap()];
                let expected = session.dead && session.max_restarts >= limit;
                self.check(expected, &format!("job {job}: too many restarts too early"));
            }
            Err(KernelError::StoppedEarly {
                reason: StopReason::TimedOut { .. },
            }) => self.check(
                due.or(queue_due).is_some_and(|due| Instant::now() >= due),
                &format!("cell {job}.{cell} timed out too early"),
            ),
            Err(
                KernelError::StoppedEarly {
                    reason: StopReason::ShuttingDown,
                }
                | KernelError::SessionEnded,
            )
            | Ok(Outcome {
                ending:
                    cellwright_kernel::Ending::Stopped {
                        reason: StopReason::ShuttingDown,
                        ..
                    },
                ..
            }) => self.check_ended(session, &format!("job {job}")),
            _ => {}
        }
    }

    /// A session in use ends only if a caller requested it.
    pub(super) fn check_ended(&mut self, session: Option<u64>, caller: &str) {
        let requested = self.closed || session.is_some_and(|id| self.sessions[&id].ended);
        self.check(
            requested,
            &format!("{caller}: session {session:?} ended while it was used"),
        );
    }

    pub(super) fn job_done(&mut self, job: usize, bytes: usize) {
        self.note(&format!("job {job}: done, {bytes} bytes"));
        self.jobs[job].done += 1;
    }
}
