//! Asks whoever keeps kernels which cells of a notebook are as they ran.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_run::{Freshness, Ledger, Listing};
use serde::Deserialize;

use crate::failure::Failure;
use crate::host::reach::Reach;
use crate::host::wanted::Wanted;

/// What ran of a notebook on a session.
#[derive(Debug, Deserialize)]
pub(crate) struct Known {
    pub(crate) session: String,
    cwd: PathBuf,
    generation: Option<u32>,
    ledger: Ledger,
}

impl Known {
    /// What that says of the cells.
    pub(crate) fn states(&self, listing: &Listing) -> Vec<Option<Freshness>> {
        self.ledger.states(listing, self.generation)
    }
}

/// What ran of a notebook: on the session that is named, else on the one that ran it last.
pub(crate) fn known(
    kernels: &Reach,
    path: &Path,
    session: Option<(&str, &Path)>,
) -> Result<Option<Known>, Failure> {
    let wanted = Wanted::Freshness {
        path: std::path::absolute(path)?,
    };
    let Some(mut answer) = kernels.ask(&wanted, Duration::ZERO)? else {
        return Ok(None);
    };
    let all = answer["notebooks"].take();
    let all: Vec<Known> = serde_json::from_value(all).map_err(std::io::Error::from)?;
    Ok(all.into_iter().find(|known| match session {
        Some((name, cwd)) => known.session == name && known.cwd == cwd,
        None => true,
    }))
}

/// A state in a word or two.
pub(crate) fn word(state: Freshness) -> &'static str {
    match state {
        Freshness::Fresh => "fresh",
        Freshness::Stale => "stale",
        Freshness::Changed => "changed",
        Freshness::NeverRun => "never run",
        Freshness::OtherKernel => "other kernel",
    }
}
