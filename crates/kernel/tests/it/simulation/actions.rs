//! What callers do to the pool.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::session::{Call, Cell, Job, SessionId, SessionKey, Sessions, Then};
use cellwright_kernel::{KernelError, Question, Stop, StopReason};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::audience::{Heard, Listener};
use super::cells::random_cell;
use super::dice::Dice;
use super::kernel::launcher;
use super::world::{CellState, JobState, State, World};

pub(super) struct Player {
    world: World,
    pool: Sessions,
    keys: usize,
    owners: usize,
    /// What is waited for, and by whom.
    waiting: Vec<(String, JoinHandle<()>)>,
}

impl Player {
    pub(super) fn new(world: World, pool: Sessions, dice: &mut Dice) -> Self {
        Self {
            world,
            pool,
            keys: dice.between(2, 4),
            owners: dice.between(1, 3),
            waiting: Vec::new(),
        }
    }

    /// Does one thing or the other.
    pub(super) fn act(&mut self, dice: &mut Dice) {
        match dice.below(100) {
            0..45 => self.submit(dice),
            45..57 => self.cancel(dice),
            57..62 => self.leave(dice),
            62..69 => self.interrupt(dice),
            69..80 => {
                let (key, owner) = (dice.below(self.keys), dice.below(self.owners));
                for _ in 0..dice.pick(&[1, 1, 2, 3]) {
                    self.reset(key, owner);
                }
            }
            80..87 => self.ask(dice),
            87..91 => self.end(dice),
            _ => self.world.with(State::kill_one),
        }
    }

    fn call(&self, key: usize, owner: usize, reset: bool) -> (Call, u32) {
        let sort = (key > 0).then(|| format!("sort {key}"));
        let (launch, number) = launcher(&self.world, sort);
        let call = Call {
            key: SessionKey {
                name: key.to_string(),
                cwd: PathBuf::from("/"),
                kernel: "python3".to_owned(),
            },
            owner: owner.to_string(),
            launch,
            reset,
        };
        (call, number)
    }

    fn submit(&mut self, dice: &mut Dice) {
        let (key, owner) = (dice.below(self.keys), dice.below(self.owners));
        let reset = dice.chance(10);
        let (call, launch) = self.call(key, owner, reset);
        let (stopper, stop) = Stop::new();
        let number = self.world.with(|state| state.jobs.len());
        let mut cells: Vec<CellState> = (0..dice.between(1, 4))
            .map(|cell| random_cell(dice, number, cell))
            .collect();
        let fresh = reset || cells[0].reset;
        cells[0].reset = fresh;
        let split = self.world.with(|state| {
            let (place, split) = state.place_for(key, owner, fresh);
            state.note(&format!(
                "job {number}: key {key} owner {owner} reset {reset} to {place:?}, {:?}",
                cells
                    .iter()
                    .map(|cell| (&cell.plays, cell.timeout, cell.reset))
                    .collect::<Vec<_>>()
            ));
            let now = Instant::now();
            state.jobs.push(JobState {
                owner,
                place,
                session: None,
                stopper: stopper.clone(),
                cells,
                submitted: state.clock,
                since: now,
                stopped: None,
                untold: None,
                kernel: None,
                done: 0,
                well: false,
            });
            split
        });
        let job = self.world.with(|state| {
            let cells = state.jobs[number].cells.iter().enumerate();
            let cells = cells.map(|(index, cell)| Cell {
                timeout: cell.timeout,
                // The first one in either way of saying it.
                reset: cell.reset && !(index == 0 && reset),
                ..Cell::new(format!("{number}.{index}"))
            });
            Job {
                cells: cells.collect(),
                owner: owner.to_string(),
                label: number.to_string(),
                stopper,
                stop,
                then: Then::Keep,
                audience: Box::new(Listener {
                    job: number,
                    world: self.world.clone(),
                    heard: Heard::default(),
                    done: false,
                }),
            }
        });
        let accepted = self.pool.submit(&call, job);
        self.world.with(|state| {
            let Some(accepted) = accepted else {
                let done = state.jobs[number].done;
                return state.check(done == 1, &format!("job {number} was lost"));
            };
            let id = accepted.id.0;
            let place = state.jobs[number].place;
            state.jobs[number].session = Some(id);
            state.joined(id, place, owner, accepted.new.then_some(launch));
            // Whoever called last says how the next kernel is started.
            state.owned.insert(launch, id);
            if split {
                state.moved_out(key, owner);
            }
            if fresh || state.jobs[number].cells.iter().any(|cell| cell.reset) {
                state.reset_asked(id);
            }
            state.check_owners();
        });
    }

    fn cancel(&mut self, dice: &mut Dice) {
        self.world.with(|state| {
            let undone: Vec<usize> = (0..state.jobs.len())
                .filter(|&job| state.jobs[job].done == 0)
                .collect();
            if undone.is_empty() {
                return;
            }
            let job = dice.pick(&undone);
            state.note(&format!("job {job}: cancelled"));
            let job = &mut state.jobs[job];
            job.stopped.get_or_insert_with(Instant::now);
            job.stopper.stop(StopReason::Cancelled);
        });
    }

    /// A session that there is, if any.
    fn some_session(&self, dice: &mut Dice) -> Option<SessionId> {
        let ids: Vec<SessionId> = self.pool.list().iter().map(|report| report.id).collect();
        (!ids.is_empty()).then(|| dice.pick(&ids))
    }

    fn leave(&mut self, dice: &mut Dice) {
        let Some(id) = self.some_session(dice) else {
            return;
        };
        let owner = dice.below(self.owners);
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait(format!("owner {owner} leaves {id}"), async move {
            let last = world.with(|state| {
                if !state.is_live(id.0) {
                    return None;
                }
                let session = state.sessions.get_mut(&id.0).unwrap();
                session.owners.remove(&owner);
                let last = session.owners.is_empty();
                if last {
                    state.ended_by_somebody(id.0);
                }
                Some(last)
            });
            let left = pool.leave(id, &owner.to_string()).await;
            let right = match (&left, last) {
                (Ok(left), Some(last)) => *left == last,
                (Err(KernelError::NoSession), None) => true,
                _ => false,
            };
            world.with(|state| {
                state.check(right, &format!("leaving {id}: {left:?}, last {last:?}"));
            });
        });
    }

    fn end(&mut self, dice: &mut Dice) {
        let Some(id) = self.some_session(dice) else {
            return;
        };
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait(format!("end of {id}"), async move {
            world.with(|state| {
                if state.is_live(id.0) {
                    state.ended_by_somebody(id.0);
                }
            });
            pool.end(id).await.ok();
        });
    }

    fn interrupt(&mut self, dice: &mut Dice) {
        let Some(id) = self.some_session(dice) else {
            return;
        };
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait(format!("interrupt of {id}"), async move {
            let answer = pool.interrupt(id).await;
            world.with(|state| state.note(&format!("interrupt of {id}: {answer:?}")));
        });
    }

    fn ask(&mut self, dice: &mut Dice) {
        let Some(id) = self.some_session(dice) else {
            return;
        };
        let limit = dice.millis(&[10, 1_000, 20_000]);
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait(format!("question to {id}"), async move {
            let since = Instant::now();
            let stop = Stop::never().with_timeout(limit);
            let question = Question::Variables { limit: 1 };
            let answer = pool.ask(id, question, &stop).await;
            world.with(|state| {
                state.note(&format!("question to {id}: {answer:?}"));
                let over = since.elapsed().saturating_sub(limit);
                state.check(
                    over <= Duration::from_secs(10),
                    &format!("question to {id} was answered {over:?} late"),
                );
                if matches!(answer, Err(KernelError::SessionEnded)) {
                    state.check_ended(Some(id.0), "question");
                }
            });
        });
    }

    fn reset(&mut self, key: usize, owner: usize) {
        let (call, launch) = self.call(key, owner, true);
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait(format!("reset of {key} by {owner}"), async move {
            let (place, split, there, round) = world.with(|state| {
                let (place, split) = state.place_for(key, owner, true);
                let there = state.live_in(place);
                state.note(&format!("reset of {place:?} by {owner}, {there:?}"));
                let mut round = 0;
                if let Some(id) = there {
                    state.joined(id, place, owner, None);
                    state.reset_asked(id);
                    let session = state.sessions.get_mut(&id).unwrap();
                    session.resets_under_way += 1;
                    round = session.round;
                }
                (place, split, there, round)
            });
            let renewed = pool.reset(&call).await;
            world.with(|state| {
                state.note(&format!("reset of {place:?} by {owner}: {renewed:?}"));
                if let Some(id) = there {
                    let generation = renewed.as_ref().ok().map(|renewed| renewed.generation);
                    state.reset_answered(id, round, generation);
                }
                match renewed {
                    Ok(renewed) => {
                        let id = renewed.id.0;
                        if there.is_none() {
                            state.joined(id, place, owner, Some(launch));
                            if split {
                                state.moved_out(key, owner);
                            }
                        }
                        state.check(
                            there.is_none_or(|there| there == id),
                            &format!("reset went to {id}, not {there:?}"),
                        );
                        state.check(
                            renewed.private == place.1.is_some(),
                            &format!("session {id}: private {}", renewed.private),
                        );
                    }
                    Err(KernelError::SessionEnded) => state.check_ended(there, "reset"),
                    Err(_) => {}
                }
            });
        });
    }

    pub(super) fn close(&mut self) {
        let (pool, world) = (self.pool.clone(), self.world.clone());
        self.wait("close".to_owned(), async move {
            world.with(|state| {
                state.note("close");
                state.closed = true;
            });
            pool.close().await;
        });
    }

    fn wait(&mut self, what: String, future: impl Future<Output = ()> + Send + 'static) {
        self.waiting.push((what, tokio::spawn(future)));
    }

    /// Nobody waits any more.
    pub(super) fn check_answered(&self) {
        for (what, task) in &self.waiting {
            self.world.with(|state| {
                let answered = task.is_finished();
                state.check(answered, &format!("{what} was never answered"));
            });
        }
    }
}
