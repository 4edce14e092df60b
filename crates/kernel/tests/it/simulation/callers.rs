//! Random calls to the pool.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::session::{
    AfterJob, Job, JobCell, SessionCall, SessionId, SessionKey, Sessions,
};
use cellwright_kernel::{KernelError, KernelId, KernelQuery, StopReason, StopSignal};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::cells::random_cell;
use super::kernel::new_launcher;
use super::model::{Model, ModelCell, ModelJob, ModelState};
use super::observer::{ByteCounter, CheckedObserver};
use super::rng::SeededRng;

pub(super) struct RandomCaller {
    model: Model,
    pool: Sessions,
    keys: usize,
    owners: usize,
    /// Spawned calls with a description.
    waiting: Vec<(String, JoinHandle<()>)>,
}

impl RandomCaller {
    pub(super) fn new(model: Model, pool: Sessions, rng: &mut SeededRng) -> Self {
        Self {
            model,
            pool,
            keys: rng.between(2, 4),
            owners: rng.between(1, 3),
            waiting: Vec::new(),
        }
    }

    /// Makes a random call.
    pub(super) fn act(&mut self, rng: &mut SeededRng) {
        match rng.below(100) {
            0..45 => self.submit(rng),
            45..57 => self.cancel(rng),
            57..62 => self.leave(rng),
            62..69 => self.interrupt(rng),
            69..80 => {
                let (key, owner) = (rng.below(self.keys), rng.below(self.owners));
                for _ in 0..rng.pick(&[1, 1, 2, 3]) {
                    self.reset(key, owner);
                }
            }
            80..87 => self.query(rng),
            87..91 => self.end(rng),
            _ => self.model.with(ModelState::kill_one),
        }
    }

    fn call(&self, key: usize, owner: usize, reset: bool) -> (SessionCall, u32) {
        let spare_key = (key > 0).then(|| format!("spare key {key}"));
        let (launcher, number) = new_launcher(&self.model, spare_key);
        let call = SessionCall {
            key: SessionKey {
                name: key.to_string(),
                cwd: PathBuf::from("/"),
                kernel: KernelId::Runner {
                    python: "python3".into(),
                },
            },
            owner: owner.to_string(),
            launcher,
            reset,
        };
        (call, number)
    }

    fn submit(&mut self, rng: &mut SeededRng) {
        let (key, owner) = (rng.below(self.keys), rng.below(self.owners));
        let reset = rng.chance(10);
        let (call, launcher) = self.call(key, owner, reset);
        let (stop_handle, stop) = StopSignal::new();
        let number = self.model.with(|state| state.jobs.len());
        let mut cells: Vec<ModelCell> = (0..rng.between(1, 4))
            .map(|cell| random_cell(rng, number, cell))
            .collect();
        let fresh = reset || cells[0].reset;
        cells[0].reset = fresh;
        let split = self.model.with(|state| {
            let (model_key, split) = state.key_for(key, owner, fresh);
            state.note(&format!(
                "job {number}: key {key} owner {owner} reset {reset} to {model_key:?}, {:?}",
                cells
                    .iter()
                    .map(|cell| (&cell.attempt_steps, cell.timeout, cell.reset))
                    .collect::<Vec<_>>()
            ));
            let now = Instant::now();
            state.jobs.push(ModelJob {
                owner,
                key: model_key,
                session: None,
                stop_handle: stop_handle.clone(),
                cells,
                submitted: state.clock,
                since: now,
                began: None,
                stopped: None,
                reported_loss: None,
                kernel: None,
                done: 0,
                succeeded: false,
            });
            split
        });
        let job = self.model.with(|state| {
            let cells = state.jobs[number].cells.iter().enumerate();
            let cells = cells.map(|(index, cell)| JobCell {
                timeout: cell.timeout,
                // For the first cell, `call.reset` and `cell.reset` are equivalent.
                reset: cell.reset && !(index == 0 && reset),
                ..JobCell::new(format!("{number}.{index}"))
            });
            Job {
                queue_timeout: state.jobs[number].cells[0].timeout,
                cells: cells.collect(),
                owner: owner.to_string(),
                label: number.to_string(),
                stop_handle,
                stop,
                after: AfterJob::KeepKernel,
                observer: Box::new(CheckedObserver {
                    job: number,
                    model: self.model.clone(),
                    output: ByteCounter::default(),
                    done: false,
                }),
            }
        });
        let accepted = self.pool.submit(&call, job);
        self.model.with(|state| {
            let Some(accepted) = accepted else {
                let done = state.jobs[number].done;
                return state.check(done == 1, &format!("job {number} was lost"));
            };
            let id = accepted.id.0;
            let model_key = state.jobs[number].key;
            state.jobs[number].session = Some(id);
            state.joined(id, model_key, owner, accepted.created.then_some(launcher));
            // The latest caller's launcher starts the next kernel.
            state.launcher_sessions.insert(launcher, id);
            if split {
                state.owner_split_off(key, owner);
            }
            if fresh || state.jobs[number].cells.iter().any(|cell| cell.reset) {
                state.reset_requested(id);
            }
            state.check_owners();
        });
    }

    fn cancel(&mut self, rng: &mut SeededRng) {
        self.model.with(|state| {
            let unfinished: Vec<usize> = (0..state.jobs.len())
                .filter(|&job| state.jobs[job].done == 0)
                .collect();
            if unfinished.is_empty() {
                return;
            }
            let job = rng.pick(&unfinished);
            state.note(&format!("job {job}: cancelled"));
            let job = &mut state.jobs[job];
            job.stopped.get_or_insert_with(Instant::now);
            job.stop_handle.stop(StopReason::Cancelled);
        });
    }

    /// A random live session, if there is one.
    fn random_session(&self, rng: &mut SeededRng) -> Option<SessionId> {
        let ids: Vec<SessionId> = self.pool.list().iter().map(|report| report.id).collect();
        (!ids.is_empty()).then(|| rng.pick(&ids))
    }

    fn leave(&mut self, rng: &mut SeededRng) {
        let Some(id) = self.random_session(rng) else {
            return;
        };
        let owner = rng.below(self.owners);
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn(format!("owner {owner} leaves {id}"), async move {
            let last = model.with(|state| {
                if !state.is_live(id.0) {
                    return None;
                }
                let session = state.sessions.get_mut(&id.0).unwrap();
                session.owners.remove(&owner);
                let last = session.owners.is_empty();
                if last {
                    state.ended_by_caller(id.0);
                }
                Some(last)
            });
            let left = pool.leave(id, &owner.to_string()).await;
            let expected = match (&left, last) {
                (Ok(left), Some(last)) => *left == last,
                (Err(KernelError::NoSession), None) => true,
                _ => false,
            };
            model.with(|state| {
                state.check(expected, &format!("leaving {id}: {left:?}, last {last:?}"));
            });
        });
    }

    fn end(&mut self, rng: &mut SeededRng) {
        let Some(id) = self.random_session(rng) else {
            return;
        };
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn(format!("end of {id}"), async move {
            model.with(|state| {
                if state.is_live(id.0) {
                    state.ended_by_caller(id.0);
                }
            });
            pool.end(id).await.ok();
        });
    }

    fn interrupt(&mut self, rng: &mut SeededRng) {
        let Some(id) = self.random_session(rng) else {
            return;
        };
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn(format!("interrupt of {id}"), async move {
            let answer = pool.interrupt(id).await;
            model.with(|state| state.note(&format!("interrupt of {id}: {answer:?}")));
        });
    }

    fn query(&mut self, rng: &mut SeededRng) {
        let Some(id) = self.random_session(rng) else {
            return;
        };
        let limit = rng.pick_millis(&[10, 1_000, 20_000]);
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn(format!("query of {id}"), async move {
            let since = Instant::now();
            let stop = StopSignal::never().with_timeout(limit);
            let query = KernelQuery::Variables { limit: 1 };
            let answer = pool.query(id, query, &stop).await;
            model.with(|state| {
                state.note(&format!("query of {id}: {answer:?}"));
                let over = since.elapsed().saturating_sub(limit);
                state.check(
                    over <= Duration::from_secs(10),
                    &format!("query of {id} was answered {over:?} late"),
                );
                if matches!(answer, Err(KernelError::SessionEnded)) {
                    state.check_ended(Some(id.0), "query");
                }
            });
        });
    }

    fn reset(&mut self, key: usize, owner: usize) {
        let (call, launcher) = self.call(key, owner, true);
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn(format!("reset of {key} by {owner}"), async move {
            let (model_key, split, existing, round) = model.with(|state| {
                let (model_key, split) = state.key_for(key, owner, true);
                let existing = state.live_session(model_key);
                state.note(&format!("reset of {model_key:?} by {owner}, {existing:?}"));
                let mut round = 0;
                if let Some(id) = existing {
                    state.joined(id, model_key, owner, None);
                    state.reset_requested(id);
                    let session = state.sessions.get_mut(&id).unwrap();
                    session.pending_resets += 1;
                    round = session.round;
                }
                (model_key, split, existing, round)
            });
            let outcome = pool.reset(&call).await;
            model.with(|state| {
                state.note(&format!("reset of {model_key:?} by {owner}: {outcome:?}"));
                if let Some(id) = existing {
                    let generation = outcome.as_ref().ok().map(|outcome| outcome.generation);
                    state.reset_finished(id, round, generation);
                }
                match outcome {
                    Ok(outcome) => {
                        let id = outcome.id.0;
                        if existing.is_none() {
                            state.joined(id, model_key, owner, Some(launcher));
                            if split {
                                state.owner_split_off(key, owner);
                            }
                        }
                        state.check(
                            existing.is_none_or(|existing| existing == id),
                            &format!("reset went to {id}, not {existing:?}"),
                        );
                        state.check(
                            outcome.private == model_key.1.is_some(),
                            &format!("session {id}: private {}", outcome.private),
                        );
                    }
                    Err(KernelError::SessionEnded) => state.check_ended(existing, "reset"),
                    Err(_) => {}
                }
            });
        });
    }

    pub(super) fn close(&mut self) {
        let (pool, model) = (self.pool.clone(), self.model.clone());
        self.spawn("close".to_owned(), async move {
            model.with(|state| {
                state.note("close");
                state.closed = true;
            });
            pool.close().await;
        });
    }

    fn spawn(&mut self, description: String, future: impl Future<Output = ()> + Send + 'static) {
        self.waiting.push((description, tokio::spawn(future)));
    }

    /// Checks that every call was answered.
    pub(super) fn check_answered(&self) {
        for (description, task) in &self.waiting {
            self.model.with(|state| {
                let answered = task.is_finished();
                state.check(answered, &format!("{description} was never answered"));
            });
        }
    }
}
