//! Requests from the host which cells of a notebook ran, and whether they have changed since.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_run::{ExecutionHistory, Freshness, Listing};
use serde::Deserialize;

use crate::failure::Failure;
use crate::host::kernel_host::KernelHost;
use crate::host::protocol::HostRequest;

/// Which cells of a notebook ran in a session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionHistory {
    pub(crate) session: String,
    cwd: PathBuf,
    generation: Option<u32>,
    ledger: ExecutionHistory,
}

impl SessionHistory {
    /// The freshness of each cell.
    pub(crate) fn states(&self, listing: &Listing) -> Vec<Option<Freshness>> {
        self.ledger.freshness(listing, self.generation)
    }
}

/// Returns which cells of a notebook ran: in the session with this name and working directory, else in the session that
/// ran it last.
pub(crate) fn session_history(
    kernels: &KernelHost,
    path: &Path,
    session: Option<(&str, &Path)>,
) -> Result<Option<SessionHistory>, Failure> {
    let request = HostRequest::Freshness {
        path: std::path::absolute(path)?,
    };
    let Some(mut reply) = kernels.request_blocking(&request, Duration::ZERO)? else {
        return Ok(None);
    };
    let all = reply["notebooks"].take();
    let all: Vec<SessionHistory> = serde_json::from_value(all).map_err(std::io::Error::from)?;
    Ok(all.into_iter().find(|history| match session {
        Some((name, cwd)) => history.session == name && history.cwd == cwd,
        None => true,
    }))
}

/// The name of a state in tables.
pub(crate) fn label(state: Freshness) -> &'static str {
    match state {
        Freshness::Fresh => "fresh",
        Freshness::Stale => "stale",
        Freshness::Changed => "changed",
        Freshness::NeverRun => "never run",
        Freshness::OtherKernel => "other kernel",
    }
}
