//! Requests from the host which cells of a notebook ran, and whether they have changed since.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_execution::Freshness;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::reply::SessionHistory;

/// Returns which cells of a notebook ran: in the session with this name and directory, or with this number, else in the session that
/// ran it last.
pub fn session_history(
    kernels: &KernelHost,
    path: &Path,
    session: Option<(&str, &Path)>,
) -> Result<Option<SessionHistory>, Failure> {
    let path = std::path::absolute(path)?;
    let histories = kernels.block_on(kernels.histories(path))?;
    let mut histories = histories.unwrap_or_default().into_iter();
    Ok(histories.find(|history| match session {
        Some((name, cwd)) => {
            let number = name.strip_prefix('@');
            number == Some(&history.id.to_string())
                || (history.session == name && history.cwd == cwd)
        }
        None => true,
    }))
}

/// The name of a state in tables.
pub fn label(state: Freshness) -> &'static str {
    match state {
        Freshness::Fresh => "fresh",
        Freshness::Stale => "stale",
        Freshness::Changed => "changed",
        Freshness::NeverRun => "never run",
        Freshness::OtherKernel => "other kernel",
    }
}
