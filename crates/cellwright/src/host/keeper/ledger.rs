//! [`Ledger`]: which sessions live, written down for the host that comes after one that was killed.

use std::path::PathBuf;

use cellwright_kernel::session::{Loss, SessionKey, SessionReport, Sessions};
use serde::{Deserialize, Serialize};

/// A file with the sessions there are. A host that ends in order leaves none.
pub(super) struct Ledger {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    cwd: PathBuf,
    kernel: String,
    private_to: Option<String>,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Has everybody told whose session is gone with the host before this one; says how many.
    pub(super) fn take_lost(&self, sessions: &Sessions) -> usize {
        let text = std::fs::read(&self.path).unwrap_or_default();
        // What is no ledger was not written by a host.
        let lines: Vec<Line> = serde_json::from_slice(&text).unwrap_or_default();
        let count = lines.len();
        for line in lines {
            let key = SessionKey {
                name: line.name,
                cwd: line.cwd,
                kernel: line.kernel,
            };
            sessions.remember_loss(key, line.private_to, Loss::Abandoned);
        }
        count
    }

    /// Writes it. When that fails, a host that is killed will not be missed, which is no reason to
    /// fail anything now.
    pub(super) fn write(&self, sessions: &[SessionReport]) {
        let line = |report: &SessionReport| Line {
            name: report.key.name.clone(),
            cwd: report.key.cwd.clone(),
            kernel: report.key.kernel.clone(),
            private_to: report.private_to.clone(),
        };
        let lines: Vec<Line> = sessions.iter().map(line).collect();
        let new = self.path.with_extension("new");
        if let Ok(text) = serde_json::to_vec(&lines)
            && std::fs::write(&new, text).is_ok()
        {
            std::fs::rename(&new, &self.path).ok();
        }
    }

    pub(super) fn remove(&self) {
        // There may be none.
        std::fs::remove_file(&self.path).ok();
    }
}
