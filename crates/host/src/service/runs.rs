//! [`Runs`]: runs that are active, or whose result was not collected yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use cellwright_engine::settings::Settings;
use cellwright_execution::{Execution, ExecutionStatus};
use cellwright_kernel::{StopHandle, StopReason};
use cellwright_stdext::{LockExt, private, rfc3339};

use super::super::reply::RunInfo;

/// How long a collected result can be collected again.
const COLLECTED_RESULT_TIMEOUT: Duration = Duration::from_mins(10);

/// Number of run numbers that are reserved at once, so that not every run writes to disk.
const RESERVED_NUMBERS: u64 = 64;

/// Maximum size in bytes of the file with the reserved numbers.
const NUMBER_SIZE_LIMIT: u64 = 64;

/// The runs.
pub(super) struct Runs {
    inner: Mutex<RunTable>,
    /// The file with the reserved numbers: no number is used twice, even after the host was killed.
    numbers: PathBuf,
    /// How long a result is kept.
    retention: Duration,
    max_runs: usize,
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
    /// The directory of the session, or of the kernel.
    pub(super) cwd: PathBuf,
    pub(super) owner: String,
    pub(super) label: String,
    pub(super) execution: Execution,
    pub(super) stop_handle: StopHandle,
    started: SystemTime,
    /// When a client received the result.
    collected: Option<Instant>,
    /// When the run was first found to have ended.
    ended: Option<Instant>,
}

impl Runs {
    pub(super) fn new(numbers: PathBuf, settings: &Settings) -> Self {
        let text = private::read_file(&numbers, NUMBER_SIZE_LIMIT).unwrap_or_default();
        let text = String::from_utf8(text).unwrap_or_default();
        let last = text.trim().parse().unwrap_or(0);
        Self {
            inner: Mutex::new(RunTable {
                runs: BTreeMap::new(),
                last,
                reserved: last,
            }),
            numbers,
            retention: settings.runs.keep,
            max_runs: settings.runs.max,
        }
    }

    /// Adds a run and returns its id.
    pub(super) fn add(
        &self,
        (session, cwd): (&str, PathBuf),
        owner: &str,
        label: String,
        execution: Execution,
        stop_handle: StopHandle,
    ) -> String {
        let mut inner = self.lock();
        inner.last += 1;
        if inner.last > inner.reserved {
            inner.reserved = inner.last + RESERVED_NUMBERS;
            // If this fails, numbers may be used again after a crash.
            private::replace_file(&self.numbers, inner.reserved.to_string().as_bytes()).ok();
        }
        let number = inner.last;
        let run = Run {
            session: session.to_owned(),
            cwd,
            owner: owner.to_owned(),
            label,
            execution,
            stop_handle,
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

    /// Marks the result as collected.
    pub(super) fn mark_collected(&self, run: &str) {
        let mut inner = self.lock();
        if let Some(run) = run_number(run).and_then(|number| inner.runs.get_mut(&number)) {
            run.collected = Some(Instant::now());
        }
    }

    /// Removes a run that no client asks for again.
    pub(super) fn remove(&self, run: &str) {
        if let Some(number) = run_number(run) {
            self.lock().runs.remove(&number);
        }
    }

    /// Stops all active runs and returns their number.
    pub(super) fn stop_all(&self, reason: StopReason) -> usize {
        let inner = self.lock();
        let active = inner.runs.values().filter(|run| !run.status().is_final());
        active.map(|run| run.stop_handle.stop(reason)).count()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().runs.len()
    }

    /// Whether all runs have ended and their results are collected.
    pub(super) fn is_idle(&self) -> bool {
        let mut inner = self.lock();
        self.expire(&mut inner);
        let done = |run: &Run| run.collected.is_some() && run.execution.status().is_final();
        inner.runs.values().all(done)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().runs.keys().copied().map(run_id).collect()
    }

    pub(super) fn list(&self) -> Vec<RunInfo> {
        let mut inner = self.lock();
        self.expire(&mut inner);
        let list = inner.runs.iter().map(|(number, run)| {
            let snapshot = run.execution.snapshot();
            RunInfo {
                run: run_id(*number),
                status: snapshot.status,
                session: run.session_name(),
                cwd: run.cwd.display().to_string(),
                owner: run.owner.clone(),
                label: run.label.clone(),
                number: snapshot.cell + 1,
                total: snapshot.cells,
                started_at: rfc3339::format_seconds(run.started),
                elapsed_ms: snapshot.elapsed.map(|elapsed| elapsed.as_secs_f64() * 1e3),
                collected: run.collected.is_some(),
            }
        });
        list.collect()
    }

    /// Removes results that were collected some time ago, that are too old, or that are too many.
    fn expire(&self, inner: &mut RunTable) {
        let now = Instant::now();
        inner.runs.retain(|_, run| {
            if !run.execution.status().is_final() {
                return true;
            }
            let ended = *run.ended.get_or_insert(now);
            let expired = run
                .collected
                .is_some_and(|collected| now - collected > COLLECTED_RESULT_TIMEOUT);
            !expired && now - ended <= self.retention
        });
        while inner.runs.len() > self.max_runs {
            let ended = |run: &Run| run.ended.is_some();
            let oldest = |matches: &dyn Fn(&Run) -> bool| {
                let mut found = inner.runs.iter().filter(|(_, run)| matches(run));
                found.next().map(|(number, _)| *number)
            };
            let collected = oldest(&|run| ended(run) && run.collected.is_some());
            let Some(number) = collected.or_else(|| oldest(&ended)) else {
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
    /// Name of the session; `None` for a kernel that ends with the run.
    pub(super) fn session_name(&self) -> Option<String> {
        Some(self.session.clone()).filter(|session| !session.is_empty())
    }

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
