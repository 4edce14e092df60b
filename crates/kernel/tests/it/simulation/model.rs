//! The model of one simulation: the expected state, the trace, and the violated rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_kernel::backend::scripted::{KillHandle, ScriptStep};
use cellwright_kernel::session::{KernelLoss, Sessions};
use cellwright_kernel::{StopHandle, StopReason};
use cellwright_stdext::LockExt;
use tokio::time::Instant;

use super::kernel::{PlannedStart, kill};
use super::rng::SeededRng;

/// A shared handle to the model.
#[derive(Clone)]
pub(super) struct Model(Arc<Mutex<ModelState>>);

impl Model {
    pub(super) fn new(seed: u64, restarts: u32) -> Self {
        Self(Arc::new(Mutex::new(ModelState {
            seed,
            started_at: Instant::now(),
            clock: 0,
            trace: Vec::new(),
            violations: Vec::new(),
            rng: SeededRng::new(seed ^ 0xd1ce),
            max_restarts: restarts,
            pool: None,
            closed: false,
            starts: 0,
            launchers: 0,
            kernels: Vec::new(),
            jobs: Vec::new(),
            sessions: BTreeMap::new(),
            latest: BTreeMap::new(),
            private_owners: BTreeSet::new(),
            launcher_sessions: BTreeMap::new(),
        })))
    }

    pub(super) fn with<T>(&self, state: impl FnOnce(&mut ModelState) -> T) -> T {
        state(&mut self.0.lock_ignoring_poison())
    }
}

/// A session key, and the owner of a private session.
pub(super) type ModelKey = (usize, Option<usize>);

pub(super) struct ModelState {
    seed: u64,
    started_at: Instant,
    /// Counts events.
    pub(super) clock: u64,
    pub(super) trace: Vec<String>,
    pub(super) violations: Vec<String>,
    pub(super) rng: SeededRng,
    pub(super) max_restarts: u32,
    pub(super) pool: Option<Sessions>,
    pub(super) closed: bool,
    /// The number of starts in progress.
    pub(super) starts: usize,
    launchers: u32,
    pub(super) kernels: Vec<ModelKernel>,
    pub(super) jobs: Vec<ModelJob>,
    pub(super) sessions: BTreeMap<u64, ModelSession>,
    /// The latest session with each key.
    pub(super) latest: BTreeMap<ModelKey, u64>,
    /// Keys and owners of private sessions.
    pub(super) private_owners: BTreeSet<(usize, usize)>,
    /// The session of each launcher.
    pub(super) launcher_sessions: BTreeMap<u32, u64>,
}

/// How a kernel ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KernelEnd {
    /// It died by itself; `unnoticed`: while it was idle.
    Died { unnoticed: bool },
    /// It did not react to an interrupt.
    Killed(StopReason),
    /// It was shut down; `live`: its session still existed.
    Ended { live: bool },
}

pub(super) struct ModelKernel {
    killer: Option<KillHandle>,
    launcher: Option<u32>,
    alive: bool,
    busy: bool,
    pub(super) end: Option<KernelEnd>,
    /// The event count at its end.
    pub(super) ended_at: u64,
    /// The jobs of the cells that began, one entry per cell.
    executed: Vec<usize>,
}

pub(super) struct ModelCell {
    /// The steps of each attempt.
    pub(super) attempt_steps: Vec<Vec<ScriptStep>>,
    pub(super) timeout: Option<Duration>,
    pub(super) reset: bool,
    pub(super) attempts: usize,
    pub(super) begun: usize,
    pub(super) begins: usize,
    pub(super) ends: usize,
}

pub(super) struct ModelJob {
    pub(super) owner: usize,
    pub(super) key: ModelKey,
    pub(super) session: Option<u64>,
    pub(super) stop_handle: StopHandle,
    pub(super) cells: Vec<ModelCell>,
    pub(super) submitted: u64,
    /// The earliest time at which the next cell could begin.
    pub(super) since: Instant,
    /// When the running cell began.
    pub(super) began: Option<Instant>,
    pub(super) stopped: Option<Instant>,
    pub(super) reported_loss: Option<(u32, KernelLoss)>,
    pub(super) kernel: Option<u32>,
    pub(super) done: usize,
    pub(super) succeeded: bool,
}

impl ModelJob {
    /// The index of the next cell.
    pub(super) fn next(&self) -> usize {
        self.cells.iter().filter(|cell| cell.ends > 0).count()
    }
}

#[derive(Default)]
pub(super) struct ModelSession {
    pub(super) key: ModelKey,
    pub(super) owners: BTreeSet<usize>,
    /// Ended by a caller, not by the pool.
    pub(super) ended: bool,
    /// The kernel that holds, or held, the callers' variables; `true`: in the previous session.
    pub(super) state_kernel: Option<(u32, bool)>,
    /// The number of unanswered resets.
    pub(super) pending_resets: usize,
    /// The generation that concurrent resets have received.
    pub(super) reset_generation: Option<u32>,
    /// The number of requested resets.
    pub(super) resets: usize,
    /// Counts cells and deaths: resets with neither in between are concurrent.
    pub(super) round: usize,
    pub(super) generation: u32,
    pub(super) kernel: Option<u32>,
    /// The job that began last.
    pub(super) latest_job: Option<usize>,
    /// Whether a kernel died and has not been replaced.
    pub(super) dead: bool,
    /// Whether a reset was requested since the last start.
    pub(super) reset_since_start: bool,
    /// Restarts after deaths since a cell finished or a reset was requested.
    pub(super) min_restarts: u32,
    /// The same, ignoring resets.
    pub(super) max_restarts: u32,
}

impl ModelState {
    pub(super) fn note(&mut self, text: &str) {
        self.clock += 1;
        let at = self.started_at.elapsed().as_millis();
        self.trace.push(format!("{at:>9} {text}"));
    }

    pub(super) fn violation(&mut self, text: &str) {
        self.note(&format!("VIOLATION: {text}"));
        self.violations.push(format!("seed {}: {text}", self.seed));
    }

    pub(super) fn check(&mut self, holds: bool, text: &str) {
        if !holds {
            self.violation(text);
        }
    }

    pub(super) fn next_launcher(&mut self) -> u32 {
        self.launchers += 1;
        self.launchers
    }

    pub(super) fn next_kernel(&mut self) -> u32 {
        let number = u32::try_from(self.kernels.len()).unwrap();
        self.kernels.push(ModelKernel {
            killer: None,
            launcher: None,
            alive: true,
            busy: false,
            end: None,
            ended_at: 0,
            executed: Vec::new(),
        });
        number
    }

    pub(super) fn kernel(&mut self, number: u32) -> &mut ModelKernel {
        &mut self.kernels[number as usize]
    }

    fn session_of_kernel(&self, number: u32) -> Option<u64> {
        let launcher = self.kernels[number as usize].launcher?;
        self.launcher_sessions.get(&launcher).copied()
    }

    pub(super) fn is_live(&self, session: u64) -> bool {
        let reports = self.pool.as_ref().map(Sessions::list);
        reports.is_some_and(|reports| reports.iter().any(|report| report.id.0 == session))
    }

    pub(super) fn next_start(&mut self, launcher: u32, spare: bool) -> (Duration, PlannedStart) {
        let delay = self
            .rng
            .pick_millis(&[0, 10, 10, 100, 300, 300, 2_000, 9_000, 40_000]);
        let plan = match self.rng.below(100) {
            0..80 => PlannedStart::Succeeds,
            80..88 => PlannedStart::Fails,
            88..95 => PlannedStart::Exhausted,
            _ => PlannedStart::Hangs,
        };
        self.note(&format!(
            "launcher {launcher}: start {plan:?} {delay:?} spare {spare}"
        ));
        (delay, plan)
    }

    pub(super) fn kernel_started(&mut self, number: u32, killer: KillHandle) {
        self.note(&format!("kernel {number}: started"));
        self.kernel(number).killer = Some(killer);
    }

    /// A start must not be abandoned while its session exists.
    pub(super) fn start_abandoned(&mut self, launcher: u32) {
        let needed = self
            .launcher_sessions
            .get(&launcher)
            .is_some_and(|id| self.is_live(*id));
        self.check(
            !needed,
            &format!("launcher {launcher}: its start was abandoned"),
        );
    }

    /// A kernel was assigned to a session.
    pub(super) fn kernel_assigned(&mut self, number: u32, launcher: u32) {
        self.note(&format!("kernel {number}: of launcher {launcher}"));
        self.kernel(number).launcher = Some(launcher);
        let Some(&id) = self.launcher_sessions.get(&launcher) else {
            return;
        };
        let limit = self.max_restarts;
        // A pending reset clears the restart count, now or soon.
        let cleared_by_reset = self.jobs.iter().any(|job| {
            job.session == Some(id) && job.done == 0 && job.cells.iter().any(|cell| cell.reset)
        });
        let session = self.sessions.get_mut(&id).unwrap();
        let cleared_by_reset = cleared_by_reset
            || session.pending_resets > 0
            || std::mem::take(&mut session.reset_since_start);
        if std::mem::take(&mut session.dead) {
            session.min_restarts = if cleared_by_reset {
                0
            } else {
                session.min_restarts + 1
            };
            session.max_restarts += 1;
            let restarts = session.min_restarts;
            self.check(
                restarts <= limit,
                &format!("session {id} restarted {restarts} times, limit {limit}"),
            );
        }
    }

    pub(super) fn kernel_ending(&mut self, number: u32) {
        let live = self
            .session_of_kernel(number)
            .is_some_and(|session| self.is_live(session));
        self.note(&format!("kernel {number}: shutdown, session live {live}"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.ended_at = clock;
        kernel.end.get_or_insert(KernelEnd::Ended { live });
    }

    pub(super) fn kernel_gone(&mut self, number: u32) {
        self.note(&format!("kernel {number}: gone"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.alive = false;
        if kernel.end.is_none() {
            kernel.ended_at = clock;
            kernel.end = Some(KernelEnd::Ended { live: false });
        }
    }

    pub(super) fn kernel_killed(&mut self, number: u32, reason: StopReason) {
        self.note(&format!("kernel {number}: killed, {reason:?}"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.ended_at = clock;
        let before = kernel.end.replace(KernelEnd::Killed(reason));
        // A death just before the kill makes no difference.
        if before.is_some()
            && let Some(id) = self.session_of_kernel(number)
        {
            self.sessions.get_mut(&id).unwrap().dead = false;
        }
    }

    pub(super) fn kernel_died(&mut self, number: u32, unnoticed: bool) {
        self.note(&format!("kernel {number}: died, unnoticed {unnoticed}"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.ended_at = clock;
        kernel.end = Some(KernelEnd::Died { unnoticed });
        if let Some(id) = self.session_of_kernel(number) {
            let session = self.sessions.get_mut(&id).unwrap();
            session.dead = true;
            session.reset_generation = None;
            session.round += 1;
        }
    }

    pub(super) fn cell_finished(&mut self, number: u32) {
        if let Some(id) = self.session_of_kernel(number) {
            let session = self.sessions.get_mut(&id).unwrap();
            session.min_restarts = 0;
            session.max_restarts = 0;
        }
    }

    pub(super) fn occupy(&mut self, number: u32) {
        let busy = std::mem::replace(&mut self.kernel(number).busy, true);
        let ending = matches!(self.kernel(number).end, Some(KernelEnd::Ended { .. }));
        self.check(!busy, &format!("kernel {number} runs two requests at once"));
        self.check(
            !ending,
            &format!("kernel {number} received a request after its shutdown"),
        );
    }

    pub(super) fn release(&mut self, number: u32) {
        self.kernel(number).busy = false;
    }

    /// A cell reaches a kernel. Returns its steps.
    pub(super) fn execute(&mut self, number: u32, code: &str) -> Vec<ScriptStep> {
        let (job, cell) = code.split_once('.').unwrap();
        let (job, cell): (usize, usize) = (job.parse().unwrap(), cell.parse().unwrap());
        let state = &mut self.jobs[job].cells[cell];
        let steps = state.attempt_steps[state.attempts.min(state.attempt_steps.len() - 1)].clone();
        state.attempts += 1;
        let begins = !matches!(steps.first(), Some(ScriptStep::DieBeforeStart(_)));
        self.note(&format!("kernel {number}: cell {code} begins {begins}"));
        if !begins {
            return steps;
        }
        let state = &mut self.jobs[job].cells[cell];
        state.begun += 1;
        let begun = state.begun;
        self.check(begun == 1, &format!("cell {code} began {begun} times"));
        let executed = &mut self.kernel(number).executed;
        let interleaved = executed.contains(&job) && executed.last() != Some(&job);
        executed.push(job);
        self.check(
            !interleaved,
            &format!("another job ran between the cells of {job}"),
        );
        let actual = self.session_of_kernel(number);
        let expected = self.jobs[job].session;
        self.check(
            actual.is_some() && actual == expected,
            &format!("cell {code} of session {expected:?} ran in {actual:?}"),
        );
        if let Some(id) = actual {
            let session = self.sessions.get_mut(&id).unwrap();
            session.state_kernel = Some((number, false));
            // From now on the kernel has variables that a reset discards.
            session.reset_generation = None;
            session.round += 1;
        }
        steps
    }

    /// Kills a random live kernel.
    pub(super) fn kill_one(&mut self) {
        let killable: Vec<u32> = (0..u32::try_from(self.kernels.len()).unwrap())
            .filter(|&number| {
                let kernel = &self.kernels[number as usize];
                kernel.alive && kernel.end.is_none()
            })
            .collect();
        if killable.is_empty() {
            return;
        }
        let number = self.rng.pick(&killable);
        self.kernel_died(number, true);
        if let Some(killer) = &self.kernel(number).killer {
            kill(killer);
        }
    }

    /// Checks the rules that hold at the end.
    pub(super) fn finish(&mut self) {
        for job in 0..self.jobs.len() {
            let done = self.jobs[job].done;
            self.check(done == 1, &format!("job {job} was done {done} times"));
            let (ends, cells) = (self.jobs[job].next(), self.jobs[job].cells.len());
            let succeeded = self.jobs[job].succeeded;
            self.check(
                !succeeded || ends == cells,
                &format!("job {job} succeeded, but only {ends} of {cells} cells ended"),
            );
        }
        for number in 0..self.kernels.len() {
            let alive = self.kernels[number].alive;
            self.check(!alive, &format!("kernel {number} still runs"));
        }
        let starts = self.starts;
        self.check(
            starts == 0,
            &format!("{starts} starts are still in progress"),
        );
    }
}
