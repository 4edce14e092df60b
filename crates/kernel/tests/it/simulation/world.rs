//! Everything that happens in one run, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_kernel::backend::scripted::{Killer, Step};
use cellwright_kernel::session::{Loss, Sessions};
use cellwright_kernel::{StopReason, Stopper};
use tokio::time::Instant;

use super::dice::Dice;
use super::kernel::{Start, kill};

/// Shared by everybody who plays.
#[derive(Clone)]
pub(super) struct World(Arc<Mutex<State>>);

impl World {
    pub(super) fn new(seed: u64, restarts: u32) -> Self {
        Self(Arc::new(Mutex::new(State {
            seed,
            began: Instant::now(),
            clock: 0,
            trace: Vec::new(),
            wrongs: Vec::new(),
            dice: Dice::new(seed ^ 0xd1ce),
            restarts,
            pool: None,
            closed: false,
            starts: 0,
            launches: 0,
            kernels: Vec::new(),
            jobs: Vec::new(),
            sessions: BTreeMap::new(),
            latest: BTreeMap::new(),
            privates: BTreeSet::new(),
            owned: BTreeMap::new(),
        })))
    }

    pub(super) fn with<T>(&self, state: impl FnOnce(&mut State) -> T) -> T {
        state(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A key, and whose own it is.
pub(super) type Place = (usize, Option<usize>);

pub(super) struct State {
    seed: u64,
    began: Instant,
    /// Counts what happens.
    pub(super) clock: u64,
    pub(super) trace: Vec<String>,
    pub(super) wrongs: Vec<String>,
    pub(super) dice: Dice,
    pub(super) restarts: u32,
    pub(super) pool: Option<Sessions>,
    pub(super) closed: bool,
    /// Starts that are under way.
    pub(super) starts: usize,
    launches: u32,
    pub(super) kernels: Vec<KernelState>,
    pub(super) jobs: Vec<JobState>,
    pub(super) sessions: BTreeMap<u64, SessionState>,
    /// The session that was made last in each place.
    pub(super) latest: BTreeMap<Place, u64>,
    /// Who has a session of its own.
    pub(super) privates: BTreeSet<(usize, usize)>,
    /// Which session a launch belongs to.
    pub(super) owned: BTreeMap<u32, u64>,
}

/// How a kernel came to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    /// By itself; `unnoticed` while it ran nothing.
    Died { unnoticed: bool },
    /// It did not react.
    Killed(StopReason),
    /// It was ended; `live`: its session went on.
    Ended { live: bool },
}

pub(super) struct KernelState {
    killer: Option<Killer>,
    launch: Option<u32>,
    alive: bool,
    busy: bool,
    pub(super) fate: Option<Fate>,
    /// When it was ended.
    pub(super) ended: u64,
    /// The jobs whose code began, one entry for each cell.
    executed: Vec<usize>,
}

pub(super) struct CellState {
    /// What each attempt does.
    pub(super) plays: Vec<Vec<Step>>,
    pub(super) timeout: Option<Duration>,
    pub(super) reset: bool,
    pub(super) attempts: usize,
    pub(super) begun: usize,
    pub(super) begins: usize,
    pub(super) ends: usize,
}

pub(super) struct JobState {
    pub(super) owner: usize,
    pub(super) place: Place,
    pub(super) session: Option<u64>,
    pub(super) stopper: Stopper,
    pub(super) cells: Vec<CellState>,
    pub(super) submitted: u64,
    /// When the cell that comes next could begin at the earliest.
    pub(super) since: Instant,
    pub(super) stopped: Option<Instant>,
    pub(super) untold: Option<(u32, Loss)>,
    pub(super) kernel: Option<u32>,
    pub(super) done: usize,
    pub(super) well: bool,
}

impl JobState {
    /// The cell that is next.
    pub(super) fn next(&self) -> usize {
        self.cells.iter().filter(|cell| cell.ends > 0).count()
    }
}

#[derive(Default)]
pub(super) struct SessionState {
    pub(super) place: Place,
    pub(super) owners: BTreeSet<usize>,
    /// Ended by somebody, not by the pool.
    pub(super) ended: bool,
    /// The kernel that holds, or held, what callers count on; `true`: in the session before.
    pub(super) counted_on: Option<(u32, bool)>,
    /// Resets that have not been answered, and which generation those got that were.
    pub(super) resets_under_way: usize,
    pub(super) renewed: Option<u32>,
    /// Resets that were asked for.
    pub(super) resets: usize,
    /// Counts what runs: resets with nothing between them are resets at the same time.
    pub(super) round: usize,
    pub(super) generation: u32,
    pub(super) kernel: Option<u32>,
    /// Which job began last.
    pub(super) latest_job: Option<usize>,
    /// A kernel died, and none has come in its place.
    pub(super) dead: bool,
    /// Somebody asked for a reset since the last kernel came.
    pub(super) forgiven: bool,
    /// Kernels in place of dead ones, since a cell was finished or a reset asked for.
    pub(super) fewest_restarts: u32,
    /// The same, not knowing of resets.
    pub(super) most_restarts: u32,
}

impl State {
    pub(super) fn note(&mut self, what: &str) {
        self.clock += 1;
        let at = self.began.elapsed().as_millis();
        self.trace.push(format!("{at:>9} {what}"));
    }

    pub(super) fn wrong(&mut self, what: &str) {
        self.note(&format!("WRONG: {what}"));
        self.wrongs.push(format!("seed {}: {what}", self.seed));
    }

    pub(super) fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong(what);
        }
    }

    pub(super) fn next_launch(&mut self) -> u32 {
        self.launches += 1;
        self.launches
    }

    pub(super) fn next_kernel(&mut self) -> u32 {
        let number = u32::try_from(self.kernels.len()).unwrap();
        self.kernels.push(KernelState {
            killer: None,
            launch: None,
            alive: true,
            busy: false,
            fate: None,
            ended: 0,
            executed: Vec::new(),
        });
        number
    }

    pub(super) fn kernel(&mut self, number: u32) -> &mut KernelState {
        &mut self.kernels[number as usize]
    }

    fn session_of_kernel(&self, number: u32) -> Option<u64> {
        let launch = self.kernels[number as usize].launch?;
        self.owned.get(&launch).copied()
    }

    pub(super) fn is_live(&self, session: u64) -> bool {
        let reports = self.pool.as_ref().map(Sessions::list);
        reports.is_some_and(|reports| reports.iter().any(|report| report.id.0 == session))
    }

    pub(super) fn next_start(&mut self, launch: u32, spare: bool) -> (Duration, Start) {
        let delay = self
            .dice
            .millis(&[0, 10, 10, 100, 300, 300, 2_000, 9_000, 40_000]);
        let how = match self.dice.below(100) {
            0..80 => Start::Well,
            80..88 => Start::Fails,
            88..95 => Start::Exhausted,
            _ => Start::Hangs,
        };
        self.note(&format!(
            "launch {launch}: start {how:?} {delay:?} spare {spare}"
        ));
        (delay, how)
    }

    pub(super) fn kernel_started(&mut self, number: u32, killer: Killer) {
        self.note(&format!("kernel {number}: started"));
        self.kernel(number).killer = Some(killer);
    }

    /// A start goes on as long as there is a session that it could be for.
    pub(super) fn start_given_up(&mut self, launch: u32) {
        let wanted = self.owned.get(&launch).is_some_and(|id| self.is_live(*id));
        self.check(!wanted, &format!("launch {launch}: its start was given up"));
    }

    /// A kernel is that of a session from now on.
    pub(super) fn kernel_belongs(&mut self, number: u32, launch: u32) {
        self.note(&format!("kernel {number}: of launch {launch}"));
        self.kernel(number).launch = Some(launch);
        let Some(&id) = self.owned.get(&launch) else {
            return;
        };
        let limit = self.restarts;
        // A reset that is under way forgives, now or in a moment.
        let forgiven = self.jobs.iter().any(|job| {
            job.session == Some(id) && job.done == 0 && job.cells.iter().any(|cell| cell.reset)
        });
        let session = self.sessions.get_mut(&id).unwrap();
        let forgiven =
            forgiven || session.resets_under_way > 0 || std::mem::take(&mut session.forgiven);
        if std::mem::take(&mut session.dead) {
            session.fewest_restarts = if forgiven {
                0
            } else {
                session.fewest_restarts + 1
            };
            session.most_restarts += 1;
            let restarts = session.fewest_restarts;
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
        kernel.ended = clock;
        kernel.fate.get_or_insert(Fate::Ended { live });
    }

    pub(super) fn kernel_gone(&mut self, number: u32) {
        self.note(&format!("kernel {number}: gone"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.alive = false;
        if kernel.fate.is_none() {
            kernel.ended = clock;
            kernel.fate = Some(Fate::Ended { live: false });
        }
    }

    pub(super) fn kernel_killed(&mut self, number: u32, reason: StopReason) {
        self.note(&format!("kernel {number}: killed, {reason:?}"));
        let clock = self.clock;
        let kernel = self.kernel(number);
        kernel.ended = clock;
        let before = kernel.fate.replace(Fate::Killed(reason));
        // That it died at the last moment makes no difference then.
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
        kernel.ended = clock;
        kernel.fate = Some(Fate::Died { unnoticed });
        if let Some(id) = self.session_of_kernel(number) {
            let session = self.sessions.get_mut(&id).unwrap();
            session.dead = true;
            session.renewed = None;
            session.round += 1;
        }
    }

    pub(super) fn cell_finished(&mut self, number: u32) {
        if let Some(id) = self.session_of_kernel(number) {
            let session = self.sessions.get_mut(&id).unwrap();
            session.fewest_restarts = 0;
            session.most_restarts = 0;
        }
    }

    pub(super) fn occupy(&mut self, number: u32) {
        let busy = std::mem::replace(&mut self.kernel(number).busy, true);
        let ending = matches!(self.kernel(number).fate, Some(Fate::Ended { .. }));
        self.check(!busy, &format!("kernel {number} does two things at once"));
        self.check(
            !ending,
            &format!("kernel {number} is asked after it was ended"),
        );
    }

    pub(super) fn release(&mut self, number: u32) {
        self.kernel(number).busy = false;
    }

    /// The code of a cell reaches a kernel: what it does there.
    pub(super) fn execute(&mut self, number: u32, code: &str) -> Vec<Step> {
        let (job, cell) = code.split_once('.').unwrap();
        let (job, cell): (usize, usize) = (job.parse().unwrap(), cell.parse().unwrap());
        let state = &mut self.jobs[job].cells[cell];
        let play = state.plays[state.attempts.min(state.plays.len() - 1)].clone();
        state.attempts += 1;
        let begins = !matches!(play.first(), Some(Step::DieUnbegun(_)));
        self.note(&format!("kernel {number}: cell {code} begins {begins}"));
        if !begins {
            return play;
        }
        let state = &mut self.jobs[job].cells[cell];
        state.begun += 1;
        let begun = state.begun;
        self.check(begun == 1, &format!("cell {code} began {begun} times"));
        let executed = &mut self.kernel(number).executed;
        let between = executed.contains(&job) && executed.last() != Some(&job);
        executed.push(job);
        self.check(!between, &format!("somebody came between cells of {job}"));
        let mine = self.session_of_kernel(number);
        let asked = self.jobs[job].session;
        self.check(
            mine.is_some() && mine == asked,
            &format!("cell {code} of session {asked:?} ran in {mine:?}"),
        );
        if let Some(id) = mine {
            let session = self.sessions.get_mut(&id).unwrap();
            session.counted_on = Some((number, false));
            // From now on there is something again that a reset takes away.
            session.renewed = None;
            session.round += 1;
        }
        play
    }

    /// Kills one of the kernels that live.
    pub(super) fn kill_one(&mut self) {
        let killable: Vec<u32> = (0..u32::try_from(self.kernels.len()).unwrap())
            .filter(|&number| {
                let kernel = &self.kernels[number as usize];
                kernel.alive && kernel.fate.is_none()
            })
            .collect();
        if killable.is_empty() {
            return;
        }
        let number = self.dice.pick(&killable);
        self.kernel_died(number, true);
        if let Some(killer) = &self.kernel(number).killer {
            kill(killer);
        }
    }

    /// What must hold when everything is over.
    pub(super) fn finish(&mut self) {
        for job in 0..self.jobs.len() {
            let done = self.jobs[job].done;
            self.check(done == 1, &format!("job {job} was done {done} times"));
            let (ends, cells) = (self.jobs[job].next(), self.jobs[job].cells.len());
            let well = self.jobs[job].well;
            self.check(
                !well || ends == cells,
                &format!("job {job} went well, and {ends} of {cells} cells ended"),
            );
        }
        for number in 0..self.kernels.len() {
            let alive = self.kernels[number].alive;
            self.check(!alive, &format!("kernel {number} is left behind"));
        }
        let starts = self.starts;
        self.check(starts == 0, &format!("{starts} starts are left behind"));
    }
}
