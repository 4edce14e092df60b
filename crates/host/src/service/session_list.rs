//! [`SessionList`]: the live sessions on disk, so that the successor of a killed host can report them as lost.

use std::path::PathBuf;
use std::sync::Mutex;

use cellwright_kernel::KernelId;
use cellwright_kernel::session::{KernelLoss, SessionKey, SessionReport, Sessions};
use cellwright_stdext::{LockExt, private};
use serde::{Deserialize, Serialize};

/// Maximum number of sessions in the file.
const SESSIONS_MAX: usize = 1024;

/// Maximum size of the file in bytes. Hosts write smaller ones.
const SIZE_LIMIT: u64 = 64 << 20;

/// A file with the live sessions. A host that shuts down in order removes it.
pub(super) struct SessionList {
    path: PathBuf,
    /// Sessions of earlier hosts that no client has started again.
    lost: Mutex<Vec<SessionLine>>,
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
            lost: Mutex::default(),
        }
    }

    /// Records the loss of the sessions of an earlier host, so that their clients receive a notice. Returns the
    /// number of lost sessions.
    pub(super) fn recover_lost(&self, sessions: &Sessions) -> usize {
        let text = private::read_file(&self.path, SIZE_LIMIT).unwrap_or_default();
        // Hosts write valid lists, so an invalid file is ignored.
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
        *self.lost.lock_ignoring_poison() = lines;
        count
    }

    /// Writes the live sessions to the file and returns them. Ignores a failed write: it only means that the sessions
    /// of a killed host are not reported as lost.
    pub(super) fn write(&self, sessions: &Sessions) -> Vec<SessionReport> {
        // The lock also orders writers, so that the later list replaces the earlier one.
        let mut lost = self.lost.lock_ignoring_poison();
        let sessions = sessions.list();
        let line = |report: &SessionReport| SessionLine {
            name: report.key.name.clone(),
            cwd: report.key.cwd.clone(),
            kernel: report.key.kernel.clone(),
            private_to: report.private_to.clone(),
        };
        let live: Vec<SessionLine> = sessions.iter().map(line).collect();
        lost.retain(|line| !live.contains(line));
        let lines: Vec<&SessionLine> = live.iter().chain(lost.iter()).take(SESSIONS_MAX).collect();
        if let Ok(text) = serde_json::to_vec(&lines) {
            private::replace_file(&self.path, &text).ok();
        }
        sessions
    }

    pub(super) fn remove(&self) {
        // The file may not exist.
        std::fs::remove_file(&self.path).ok();
    }
}
