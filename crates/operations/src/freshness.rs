//! Requests from the host which cells of a notebook ran, and whether they have changed since.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::kernels::absolute_path;
use cellwright_execution::{CellFreshness, Freshness};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::reply::SessionHistory;

/// Returns which cells of a notebook ran: in the session with this name and directory, or with this number, else in the session that
/// ran it last.
pub fn session_history(
    kernels: &KernelHost,
    path: &Path,
    session: Option<(&str, &Path)>,
) -> Result<Option<SessionHistory>, Failure> {
    let path = absolute_path(path)?;
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
        Freshness::Failed => "failed",
        Freshness::Interrupted => "interrupted",
        Freshness::OtherKernel => "other kernel",
    }
}

/// Number of causes that a text names.
const CAUSES_MAX: usize = 2;

/// The name of a state, and for a stale cell the cells that make it stale.
pub fn describe(cell: &CellFreshness) -> String {
    let mut text = label(cell.state).to_owned();
    if !cell.causes.is_empty() {
        let shown: Vec<String> = cell
            .causes
            .iter()
            .take(CAUSES_MAX)
            .map(ToString::to_string)
            .collect();
        let more = if cell.causes.len() > CAUSES_MAX {
            ", …"
        } else {
            ""
        };
        text.push_str(&format!(" ({}{more})", shown.join(", ")));
    }
    text
}
