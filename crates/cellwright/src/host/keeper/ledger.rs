//! [`Ledger`]: which sessions live, written down for the host that comes after one that was killed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cellwright_kernel::session::{Loss, SessionKey, SessionReport, Sessions};
use serde::{Deserialize, Serialize};

/// Of how many lost sessions is remembered that they are missed.
const REMEMBERED: usize = 1024;

/// A file with the sessions there are. A host that ends in order leaves none.
pub(super) struct Ledger {
    path: PathBuf,
    /// Sessions of hosts before this one that nobody has asked for since.
    missed: Mutex<Vec<Line>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    name: String,
    cwd: PathBuf,
    kernel: String,
    private_to: Option<String>,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            missed: Mutex::default(),
        }
    }

    /// Has everybody told whose session is gone with the host before this one; says how many.
    pub(super) fn take_lost(&self, sessions: &Sessions) -> usize {
        let text = std::fs::read(&self.path).unwrap_or_default();
        // What is no ledger was not written by a host.
        let lines: Vec<Line> = serde_json::from_slice(&text).unwrap_or_default();
        let count = lines.len();
        for line in lines.iter().cloned() {
            let key = SessionKey {
                name: line.name,
                cwd: line.cwd,
                kernel: line.kernel,
            };
            sessions.remember_loss(key, line.private_to, Loss::Abandoned);
        }
        *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = lines;
        count
    }

    /// Writes down the sessions there are, and gives them. When that fails, a host that is killed will
    /// not be missed, which is no reason to fail anything now.
    pub(super) fn write(&self, sessions: &Sessions) -> Vec<SessionReport> {
        // Also keeps two writers apart, so that the later list is the one that stays.
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = sessions.list();
        let line = |report: &SessionReport| Line {
            name: report.key.name.clone(),
            cwd: report.key.cwd.clone(),
            kernel: report.key.kernel.clone(),
            private_to: report.private_to.clone(),
        };
        let living: Vec<Line> = sessions.iter().map(line).collect();
        missed.retain(|line| !living.contains(line));
        let lines: Vec<&Line> = living
            .iter()
            .chain(missed.iter())
            .take(REMEMBERED)
            .collect();
        let new = self.path.with_extension("new");
        if let Ok(text) = serde_json::to_vec(&lines)
            && std::fs::write(&new, text).is_ok()
        {
            std::fs::rename(&new, &self.path).ok();
        }
        sessions
    }

    pub(super) fn remove(&self) {
        // There may be none.
        std::fs::remove_file(&self.path).ok();
    }
}
