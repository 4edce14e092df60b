//! [`RunHistory`]: makes a run one change that can be undone.

use std::path::Path;

use cellwright_notebook::file::{self, RecordReport};
use cellwright_notebook::{Baselines, History, Notice, Revision};

/// The history of the file that a run writes in place. It is a cache: errors are ignored.
#[derive(Default)]
pub(crate) struct RunHistory {
    /// The store, and the revision before the run.
    before: Option<(History, Revision)>,
    is_incomplete: bool,
}

impl RunHistory {
    /// Stores the content of the file before the run. Returns a notice if that is not possible.
    pub(crate) fn begin(
        baselines: Option<&Baselines>,
        path: &Path,
        revision: Revision,
    ) -> (Self, Option<Notice>) {
        let history = baselines.map(Baselines::history);
        let stored = history
            .as_ref()
            .map(|history| file::open(path).and_then(|file| history.store_file(revision, &file)));
        let notice = match stored {
            Some(Err(error)) => Some(Notice::UndoNotStored {
                reason: error.to_string(),
            }),
            _ => None,
        };
        let new = Self {
            before: history.map(|history| (history, revision)),
            is_incomplete: false,
        };
        (new, notice)
    }

    /// Records a save; `saved` is the revision after the save before it, if there was one. Once another program has
    /// changed the file, nothing more is recorded: an undo would revert that change, too.
    pub(crate) fn record(&mut self, path: &Path, recorded: &RecordReport, saved: Option<Revision>) {
        self.is_incomplete |= recorded.merged;
        let Some((history, before)) = self.before.as_ref().filter(|_| !self.is_incomplete) else {
            return;
        };
        if recorded.changed {
            let after = recorded.survey.revision();
            history.record(path, *before, after, saved).ok();
        }
    }
}
