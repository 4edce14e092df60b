//! What a job's audience is told, held against what happened.

use std::time::Duration;

use cellwright_kernel::session::{Loss, Notice};
use cellwright_kernel::{KernelError, Outcome, StopReason};
use tokio::time::Instant;

use super::world::{Fate, State};

/// How much later than its deadline a cell may be answered: the time it has to react to being
/// interrupted, and the farewells of kernels and spares on the way.
const LATER: Duration = Duration::from_secs(5 + 3);

impl State {
    /// A job is told which kernel it has.
    pub(super) fn introduced(&mut self, job: usize, kernel: u32, generation: u32) {
        self.note(&format!(
            "job {job}: on kernel {kernel}, generation {generation}"
        ));
        let id = self.jobs[job].session.unwrap();
        let told = self.jobs[job].untold.take();
        self.jobs[job].kernel = Some(kernel);
        let session = self.sessions.get_mut(&id).unwrap();
        let (last, before) = (session.generation, session.kernel.replace(kernel));
        session.generation = generation;
        let counted_on = session.counted_on;
        self.check(
            if before == Some(kernel) {
                generation == last
            } else {
                generation > last
            },
            &format!("session {id} came from generation {last} to {generation}"),
        );
        if let Some((number, _)) = told {
            self.check(
                number == generation,
                &format!("job {job} was told of generation {number}, not {generation}"),
            );
        }
        let told = told.map(|(_, loss)| loss);
        match counted_on {
            Some((lost, inherited)) if lost != kernel => {
                let session = self.sessions.get_mut(&id).unwrap();
                session.counted_on = None;
                self.lost(job, (lost, inherited), told);
            }
            _ => self.check(
                told.is_none(),
                &format!("job {job} lost nothing and was told {told:?}"),
            ),
        }
    }

    /// What callers counted on is lost: was this one told what it must be?
    fn lost(&mut self, job: usize, (kernel, inherited): (u32, bool), told: Option<Loss>) {
        let id = self.jobs[job].session.unwrap();
        let fate = self.kernel(kernel).fate;
        let ended = self.kernel(kernel).ended;
        let resets = self.sessions[&id].resets;
        let next = self.jobs[job].next();
        let own = self.jobs[job].cells[next].reset;
        let knows = own || inherited || self.jobs[job].submitted > ended;
        let reset_right = match told {
            None => knows,
            Some(Loss::Reset) => !knows && resets > 0,
            _ => false,
        };
        let evicted = matches!(told, Some(Loss::Idle(_) | Loss::Crowded { .. }));
        let right = match fate {
            // Whether a death or a reset or an eviction came first is for the session to say.
            Some(Fate::Died { unnoticed }) => {
                matches!(told, Some(Loss::Died(_)))
                    || (unnoticed && resets > 0 && (reset_right || told == Some(Loss::Reset)))
                    || (unnoticed && inherited && evicted)
            }
            Some(Fate::Killed(StopReason::Reset) | Fate::Ended { live: true }) => reset_right,
            Some(Fate::Killed(_)) => told == Some(Loss::Killed),
            Some(Fate::Ended { live: false }) | None => inherited && evicted,
        };
        self.check(
            right,
            &format!(
                "job {job} (own reset {own}) lost kernel {kernel} ({fate:?}, inherited {inherited}) and was told {told:?}"
            ),
        );
    }

    pub(super) fn told(&mut self, job: usize, notice: &Notice) {
        match notice {
            Notice::Restarted { generation, loss } => {
                self.note(&format!("job {job}: restarted, {generation}, {loss:?}"));
                let before = self.jobs[job].untold.replace((*generation, *loss));
                self.check(before.is_none(), &format!("job {job} was told twice"));
            }
            Notice::Busy { owner, label, .. } => {
                self.note(&format!("job {job}: busy with {label} of {owner}"));
                let other: usize = label.parse().unwrap();
                let wrong = other == job
                    || self.jobs[other].done > 0
                    || self.jobs[other].session != self.jobs[job].session
                    || self.jobs[other].owner.to_string() != *owner;
                self.check(!wrong, &format!("job {job} waited for {other}, it is told"));
            }
            Notice::Late { bytes, .. } => {
                let said = String::from_utf8_lossy(bytes).into_owned();
                self.note(&format!("job {job}: earlier cells said {said}"));
                let mine = said.starts_with(&format!("late {job}."));
                self.check(
                    !mine,
                    &format!("job {job} is told its own {said} as a notice"),
                );
            }
            other => self.wrong(&format!("job {job} was told {other:?}")),
        }
    }

    pub(super) fn late(&mut self, job: usize, cell: usize, said: &str) {
        self.note(&format!("job {job}: cell {cell} said {said}"));
        self.check(
            said == format!("late {job}.{cell}"),
            &format!("cell {job}.{cell} did not say {said}"),
        );
    }

    pub(super) fn began(&mut self, job: usize, cell: usize) {
        self.note(&format!("job {job}: cell {cell} begins"));
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

    pub(super) fn ended(
        &mut self,
        job: usize,
        cell: usize,
        result: &Result<Outcome, KernelError>,
        well: bool,
        words: &str,
    ) {
        self.note(&format!("job {job}: cell {cell} ended, {words}"));
        let next = self.jobs[job].next();
        let state = &mut self.jobs[job];
        state.cells[cell].ends += 1;
        state.well = well;
        let ends = state.cells[cell].ends;
        let since = std::mem::replace(&mut state.since, Instant::now());
        let timeout = state.cells[cell].timeout;
        let stopped = state.stopped.map(|at| at.max(since));
        let (begun, session) = (state.cells[cell].begun, state.session);
        let untold = state.untold.is_some();
        self.check(ends == 1, &format!("cell {job}.{cell} ended {ends} times"));
        self.check(
            next == cell,
            &format!("cell {job}.{cell} ended out of turn"),
        );
        self.check(!untold, &format!("job {job} was told of no kernel"));
        self.check(
            begun == 1 || result.is_err(),
            &format!("cell {job}.{cell} ended without having begun"),
        );
        let due = timeout.map(|timeout| since + timeout);
        for due in due.into_iter().chain(stopped) {
            let over = Instant::now().saturating_duration_since(due);
            self.check(
                over <= LATER,
                &format!("cell {job}.{cell} was answered {over:?} after its time"),
            );
        }
        match result {
            Err(KernelError::RestartedTooOften) => {
                let limit = self.restarts;
                let session = &self.sessions[&session.unwrap()];
                let right = session.dead && session.most_restarts >= limit;
                self.check(right, &format!("job {job}: too many restarts too early"));
            }
            Err(KernelError::StoppedEarly {
                reason: StopReason::TimedOut(_),
            }) => self.check(
                due.is_some_and(|due| Instant::now() >= due),
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

    /// A session is ended under somebody only if it was asked for.
    pub(super) fn check_ended(&mut self, session: Option<u64>, who: &str) {
        let asked = self.closed || session.is_some_and(|id| self.sessions[&id].ended);
        self.check(
            asked,
            &format!("{who}: session {session:?} was taken away while it was used"),
        );
    }

    pub(super) fn done(&mut self, job: usize, bytes: usize) {
        self.note(&format!("job {job}: done, {bytes} bytes"));
        self.jobs[job].done += 1;
    }
}
