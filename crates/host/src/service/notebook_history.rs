//! Which cells of which notebook ran on which session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cellwright_execution::{CellEnding, ExecutionHistory, RunSpec};
use cellwright_execution::{ExecutionReport, ExecutionStatus};
use cellwright_kernel::session::{SessionId, SessionReport};
use cellwright_stdext::LockExt;

use super::super::reply::SessionHistory;

/// The cells that ran, as long as their sessions exist.
#[derive(Default)]
pub(super) struct NotebookHistories(Mutex<Vec<NotebookHistory>>);

struct NotebookHistory {
    session: SessionId,
    path: PathBuf,
    history: ExecutionHistory,
}

impl NotebookHistories {
    /// Records the cells that ran. The latest run is the last entry.
    pub(super) fn record(&self, session: SessionId, spec: &RunSpec, report: &ExecutionReport) {
        if report.kernel.is_none() {
            return;
        }
        // The cells of a copy belong to the copy.
        let file = spec.written_file();
        let path = if file.is_held() {
            file.display_path().to_owned()
        } else {
            canonical(file.display_path())
        };
        let mut all = self.0.lock_ignoring_poison();
        let known = all
            .iter()
            .position(|entry| entry.session == session && entry.path == path);
        let mut entry = match known {
            Some(at) => all.remove(at),
            None => NotebookHistory {
                session,
                path,
                history: ExecutionHistory::default(),
            },
        };
        entry.history.record_existing(&spec.cell_ids);
        for (cell, result) in spec.cells.iter().zip(&report.cells) {
            let end = match result.status {
                _ if result.ended_as_expected() => CellEnding::Completed,
                ExecutionStatus::Skipped
                | ExecutionStatus::Pending
                | ExecutionStatus::NotStarted => continue,
                ExecutionStatus::Error => CellEnding::Failed,
                _ => CellEnding::Interrupted,
            };
            // With the generation that ran it: the kernel may have been replaced since.
            entry.history.record(&cell, result.generation, end);
        }
        all.push(entry);
    }

    /// Returns which cells of a notebook ran, the latest session first.
    pub(super) fn find(&self, path: &Path, sessions: &[SessionReport]) -> Vec<SessionHistory> {
        let path = canonical(path);
        let existing: HashMap<SessionId, &SessionReport> =
            sessions.iter().map(|report| (report.id, report)).collect();
        let mut all = self.0.lock_ignoring_poison();
        all.retain(|entry| existing.contains_key(&entry.session));
        let found = all.iter().rev().filter(|entry| entry.path == path);
        let found = found.filter_map(|entry| {
            let report = existing.get(&entry.session)?;
            let has_kernel = report.kernel.is_some();
            Some(SessionHistory {
                id: report.id.0,
                session: report.key.name.clone(),
                cwd: report.key.cwd.clone(),
                generation: has_kernel.then_some(report.generation),
                history: entry.history.clone(),
            })
        });
        found.collect()
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
