//! [`Runs`]: runs that are active, or whose result was not collected yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use cellwright_kernel::{StopHandle, StopReason};
use cellwright_stdext::LockExt;
use serde_json::{Value, json};

use crate::execution::{Execution, ExecutionStatus};
use crate::settings::Settings;

/// How long an end that was told can be asked for again.
const COLLECTED_RETENTION: Duration = Duration::from_mins(10);

/// How many numbers are set aside at once, so that not every run writes to disk.
const RESERVED_NUMBERS: u64 = 64;

/// The runs.
pub(super) struct Runs {
    inner: Mutex<RunTable>,
    /// Where the numbers that have been used are written down: an old run's number never means a new
    /// one, also after the host was killed.
    numbers: PathBuf,
    keep: Duration,
    most: usize,
}

struct RunTable {
    runs: BTreeMap<u64, Run>,
    last: u64,
    reserved: u64,
}

/// One run.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) session: String,
    pub(super) owner: String,
    pub(super) label: String,
    pub(super) execution: Execution,
    pub(super) stopper: StopHandle,
    started: SystemTime,
    /// When its end was told.
    collected: Option<Instant>,
    /// When it was first seen to have ended.
    ended: Option<Instant>,
}

impl Runs {
    pub(super) fn new(numbers: PathBuf, settings: &Settings) -> Self {
        let text = std::fs::read_to_string(&numbers).unwrap_or_default();
        let last = text.trim().parse().unwrap_or(0);
        Self {
            inner: Mutex::new(RunTable {
                runs: BTreeMap::new(),
                last,
                reserved: last,
            }),
            numbers,
            keep: settings.runs.keep,
            most: settings.runs.max,
        }
    }

    /// Takes a run in, and gives it a name.
    pub(super) fn add(
        &self,
        session: &str,
        owner: &str,
        label: String,
        evaluation: Execution,
        stopper: StopHandle,
    ) -> String {
        let mut inner = self.lock();
        inner.last += 1;
        if inner.last > inner.reserved {
            inner.reserved = inner.last + RESERVED_NUMBERS;
            // Without it numbers may come again after a crash.
            std::fs::write(&self.numbers, inner.reserved.to_string()).ok();
        }
        let number = inner.last;
        let run = Run {
            session: session.to_owned(),
            owner: owner.to_owned(),
            label,
            execution: evaluation,
            stopper,
            started: SystemTime::now(),
            collected: None,
            ended: None,
        };
        inner.runs.insert(number, run);
        self.expire(&mut inner);
        run_id(number)
    }

    pub(super) fn get(&self, run: &str) -> Option<Run> {
        let mut inner = self.lock();
        self.expire(&mut inner);
        inner.runs.get(&run_number(run)?).cloned()
    }

    /// Whoever wanted to know it does.
    pub(super) fn mark_collected(&self, run: &str) {
        let mut inner = self.lock();
        if let Some(run) = run_number(run).and_then(|number| inner.runs.get_mut(&number)) {
            run.collected = Some(Instant::now());
        }
    }

    /// Nobody will ask for it again.
    pub(super) fn remove(&self, run: &str) {
        if let Some(number) = run_number(run) {
            self.lock().runs.remove(&number);
        }
    }

    /// Stops everything that goes on; says how many.
    pub(super) fn stop_all(&self, reason: StopReason) -> usize {
        let inner = self.lock();
        let going_on = inner.runs.values().filter(|run| !run.status().is_final());
        going_on.map(|run| run.stopper.stop(reason)).count()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().runs.len()
    }

    /// Whether nothing goes on, and nothing is left to be told.
    pub(super) fn is_idle(&self) -> bool {
        let mut inner = self.lock();
        self.expire(&mut inner);
        let done = |run: &Run| run.collected.is_some() && run.execution.status().is_final();
        inner.runs.values().all(done)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().runs.keys().copied().map(run_id).collect()
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let mut inner = self.lock();
        self.expire(&mut inner);
        let list = inner.runs.iter().map(|(number, run)| {
            let glance = run.execution.snapshot();
            let begun = run.started.duration_since(SystemTime::UNIX_EPOCH);
            json!({
                "run": run_id(*number),
                "status": glance.status,
                "session": Some(&run.session).filter(|session| !session.is_empty()),
                "owner": run.owner,
                "label": run.label,
                "cell": glance.cell,
                "cells": glance.cells,
                "started_at": begun.unwrap_or_default().as_secs(),
                "elapsed_s": glance.elapsed.map(|elapsed| elapsed.as_secs_f64()),
                "collected": run.collected.is_some(),
            })
        });
        list.collect()
    }

    /// Lets go of ends that were told long ago, or that nobody asked for.
    fn expire(&self, inner: &mut RunTable) {
        let now = Instant::now();
        inner.runs.retain(|_, run| {
            if !run.execution.status().is_final() {
                return true;
            }
            let ended = *run.ended.get_or_insert(now);
            let told_long_ago = run
                .collected
                .is_some_and(|told| now - told > COLLECTED_RETENTION);
            !told_long_ago && now - ended <= self.keep
        });
        while inner.runs.len() > self.most {
            let ended = |run: &Run| run.ended.is_some();
            let oldest = |wanted: &dyn Fn(&Run) -> bool| {
                let mut found = inner.runs.iter().filter(|(_, run)| wanted(run));
                found.next().map(|(number, _)| *number)
            };
            let told = oldest(&|run| ended(run) && run.collected.is_some());
            let Some(number) = told.or_else(|| oldest(&ended)) else {
                return;
            };
            inner.runs.remove(&number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunTable> {
        self.inner.lock_ignoring_poison()
    }
}

impl Run {
    pub(super) fn status(&self) -> ExecutionStatus {
        self.execution.status()
    }
}

fn run_id(number: u64) -> String {
    format!("r{number}")
}

fn run_number(name: &str) -> Option<u64> {
    name.strip_prefix('r').unwrap_or(name).parse().ok()
}
