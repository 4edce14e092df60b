//! Which cells of which notebook ran on which session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cellwright_kernel::session::{SessionId, SessionReport};
use cellwright_run::{ExecutionHistory, RunSpec};
use cellwright_stdext::LockExt;
use serde_json::{Value, json};

use crate::execution::{ExecutionReport, ExecutionStatus};

/// What ran, for as long as the sessions live.
#[derive(Default)]
pub(super) struct NotebookHistories(Mutex<Vec<NotebookHistory>>);

struct NotebookHistory {
    session: SessionId,
    path: PathBuf,
    ledger: ExecutionHistory,
}

impl NotebookHistories {
    /// Notes what ran. The latest comes last.
    pub(super) fn record(&self, session: SessionId, order: &RunSpec, answer: &ExecutionReport) {
        if answer.kernel.is_none() {
            return;
        }
        // What is written elsewhere is another notebook from then on.
        let path = canonical(order.output.as_ref().unwrap_or(&order.path));
        let mut all = self.0.lock_ignoring_poison();
        let known = all
            .iter()
            .position(|noted| noted.session == session && noted.path == path);
        let mut noted = match known {
            Some(at) => all.remove(at),
            None => NotebookHistory {
                session,
                path,
                ledger: ExecutionHistory::default(),
            },
        };
        for (cell, report) in order.cells.iter().zip(&answer.cells) {
            match report.status {
                // By the kernel that ran it: another may have taken its place meanwhile.
                _ if report.ended_as_expected() => {
                    noted.ledger.record_completed(cell, report.generation);
                }
                ExecutionStatus::Skipped
                | ExecutionStatus::Pending
                | ExecutionStatus::NotStarted => {}
                _ => noted.ledger.forget(cell),
            }
        }
        all.push(noted);
    }

    /// What ran of a notebook, the latest session first.
    pub(super) fn find(&self, path: &Path, sessions: &[SessionReport]) -> Value {
        let path = canonical(path);
        let living: HashMap<SessionId, &SessionReport> =
            sessions.iter().map(|report| (report.id, report)).collect();
        let mut all = self.0.lock_ignoring_poison();
        all.retain(|noted| living.contains_key(&noted.session));
        let found = all.iter().rev().filter(|noted| noted.path == path);
        let found = found.filter_map(|noted| {
            let report = living.get(&noted.session)?;
            let alive = report.kernel.is_some();
            Some(json!({
                "session": report.key.name,
                "cwd": report.key.cwd,
                "generation": alive.then_some(report.generation),
                "ledger": noted.ledger,
            }))
        });
        Value::Array(found.collect())
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
