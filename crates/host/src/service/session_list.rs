//! [`SessionList`]: the live sessions on disk, so that the successor of a killed host can report them as lost.

use std::path::PathBuf;
use std::sync::Mutex;

use cellwright_kernel::KernelId;
use cellwright_kernel::session::{KernelLoss, SessionKey, SessionReport, Sessions};
use cellwright_stdext::LockExt;
use serde::{Deserialize, Serialize};

/// Of how many lost sessions is remembered that they are missed.
const SESSIONS_MAX: usize = 1024;

/// A file with the sessions there are. A host that ends in order leaves none.
pub(super) struct SessionList {
    path: PathBuf,
    /// Sessions of hosts before this one that nobody has asked for since.
    missed: Mutex<Vec<SessionLine>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct SessionLine {
    name: String,
    cwd: PathBuf,
    kernel: KernelId,
    private_to: Option<String>,
}

impl SessionList {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            missed: Mutex::default(),
        }
    }

    /// Has everybody told whose session is gone with the host before this one; says how many.
    pub(super) fn recover_lost(&self, sessions: &Sessions) -> usize {
        let text = std::fs::read(&self.path).unwrap_or_default();
        // What is no ledger was not written by a host.
        let lines: Vec<SessionLine> = serde_json::from_slice(&text).unwrap_or_default();
        let count = lines.len();
        for line in lines.iter().cloned() {
            let key = SessionKey {
                name: line.name,
                cwd: line.cwd,
                kernel: line.kernel,
            };
            sessions.record_loss(key, line.private_to, KernelLoss::HostLost);
        }
        *self.missed.lock_ignoring_poison() = lines;
        count
    }

    /// Writes down the sessions there are, and gives them. When that fails, a host that is killed will
    /// not be missed, which is no reason to fail anything now.
    pub(super) fn write(&self, sessions: &Sessions) -> Vec<SessionReport> {
        // Also keeps two writers apart, so that the later list is the one that stays.
        let mut missed = self.missed.lock_ignoring_poison();
        let sessions = sessions.list();
        let line = |report: &SessionReport| SessionLine {
            name: report.key.name.clone(),
            cwd: report.key.cwd.clone(),
            kernel: report.key.kernel.clone(),
            private_to: report.private_to.clone(),
        };
        let living: Vec<SessionLine> = sessions.iter().map(line).collect();
        missed.retain(|line| !living.contains(line));
        let lines: Vec<&SessionLine> = living
            .iter()
            .chain(missed.iter())
            .take(SESSIONS_MAX)
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
