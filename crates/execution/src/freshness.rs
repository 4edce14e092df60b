//! Whether cells are up to date: [`ExecutionHistory`] stores which cells of a notebook a session has run, and
//! [`Freshness`] is the resulting state of a cell.

use cellwright_notebook::{CellKind, Cells, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::listing::Listing;
use crate::run_spec::PlannedCell;

/// The cells of a notebook that a session has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionHistory {
    cells: Vec<ExecutedCell>,
    /// Number of cells that have run.
    sequence: u64,
}

/// A cell that has run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ExecutedCell {
    id: Option<String>,
    index: usize,
    /// Hash of the source.
    hash: String,
    /// Generation of the kernel that ran it.
    generation: u32,
    /// Position in the order of execution, from 1.
    sequence: u64,
}

/// Whether a cell is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// Its source has run, after all preceding cells, which are fresh too.
    Fresh,
    /// Its source has run, but a preceding cell is not fresh or ran later.
    Stale,
    /// Its source has changed since it ran.
    Changed,
    /// It has not run, or not to its end.
    NeverRun,
    /// It ran on a kernel that has been replaced.
    OtherKernel,
}

impl ExecutionHistory {
    /// Records that a cell ran to its end on the kernel of this generation.
    pub fn record_completed(&mut self, cell: &PlannedCell, generation: u32) {
        self.forget(cell);
        self.sequence += 1;
        self.cells.push(ExecutedCell {
            id: cell.id.clone(),
            index: cell.index,
            hash: source_hash(&cell.source),
            generation,
            sequence: self.sequence,
        });
    }

    /// Removes a cell that did not run to its end.
    pub fn forget(&mut self, cell: &PlannedCell) {
        self.cells
            .retain(|executed| match (&executed.id, &cell.id) {
                (Some(own), Some(other)) => own != other,
                (None, None) => executed.index != cell.index,
                _ => true,
            });
    }

    /// The state of each cell; `None` for cells that never run (Markdown, raw, empty, or tagged to be skipped).
    /// `generation` is the generation of the current kernel, if there is one.
    pub fn freshness(&self, listing: &Listing, generation: Option<u32>) -> Vec<Option<Freshness>> {
        let mut all_fresh = true;
        let mut last_sequence = 0;
        (0..listing.count())
            .map(|index| {
                let is_runnable = listing.kind(index) == CellKind::Code
                    && !listing.source(index).trim().is_empty()
                    && !listing.has_tag(index, crate::SKIP_EXECUTION_TAG);
                if !is_runnable {
                    return None;
                }
                let state = match self.find_execution(listing, index) {
                    None => Freshness::NeverRun,
                    Some(executed) if Some(executed.generation) != generation => {
                        Freshness::OtherKernel
                    }
                    Some(executed) if executed.hash != source_hash(&listing.source(index)) => {
                        Freshness::Changed
                    }
                    Some(executed) if all_fresh && executed.sequence > last_sequence => {
                        last_sequence = executed.sequence;
                        Freshness::Fresh
                    }
                    Some(_) => Freshness::Stale,
                };
                all_fresh &= state == Freshness::Fresh;
                Some(state)
            })
            .collect()
    }

    /// Finds the last execution of a cell: by id, or for a cell without an id by source, else by index.
    fn find_execution(&self, listing: &Listing, index: usize) -> Option<&ExecutedCell> {
        if let Some(id) = listing.id(index) {
            return self
                .cells
                .iter()
                .find(|executed| executed.id.as_deref() == Some(&id));
        }
        let without_id = || self.cells.iter().filter(|executed| executed.id.is_none());
        let hash = source_hash(&listing.source(index));
        without_id()
            .filter(|executed| executed.hash == hash)
            .min_by_key(|executed| executed.index.abs_diff(index))
            .or_else(|| without_id().find(|executed| executed.index == index))
    }
}

fn source_hash(source: &str) -> String {
    Revision::compute(source.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use Freshness::{Changed, Fresh, NeverRun, OtherKernel, Stale};

    use super::*;
    use crate::listing::ListedCell;

    fn listing(sources: &[&str]) -> Listing {
        let cell = |(index, source): (usize, &&str)| ListedCell {
            kind: CellKind::Code,
            id: Some(format!("c{index}")),
            source: (*source).to_owned(),
            tags: Vec::new(),
            last_duration: None,
        };
        Listing::new(sources.iter().enumerate().map(cell).collect())
    }

    fn states(history: &ExecutionHistory, listing: &Listing, generation: u32) -> Vec<Freshness> {
        let states = history.freshness(listing, Some(generation));
        states.into_iter().flatten().collect()
    }

    #[test]
    fn cells_after_a_changed_cell_are_stale() {
        let before = listing(&["a", "b", "c"]);
        let mut history = ExecutionHistory::default();
        assert_eq!(states(&history, &before, 1), [NeverRun; 3]);
        for index in 0..3 {
            history.record_completed(&PlannedCell::from_listing(&before, index), 1);
        }
        assert_eq!(states(&history, &before, 1), [Fresh; 3]);
        let edited = listing(&["a", "B", "c"]);
        assert_eq!(states(&history, &edited, 1), [Fresh, Changed, Stale]);
        history.record_completed(&PlannedCell::from_listing(&edited, 1), 1);
        assert_eq!(states(&history, &edited, 1), [Fresh, Fresh, Stale]);
        history.record_completed(&PlannedCell::from_listing(&edited, 2), 1);
        assert_eq!(states(&history, &edited, 1), [Fresh; 3]);
        // Running a cell again makes the following cells stale, although no source has changed.
        history.record_completed(&PlannedCell::from_listing(&edited, 0), 1);
        assert_eq!(states(&history, &edited, 1), [Fresh, Stale, Stale]);
        history.forget(&PlannedCell::from_listing(&edited, 0));
        assert_eq!(states(&history, &edited, 1), [NeverRun, Stale, Stale]);
    }

    #[test]
    fn replaced_kernel_makes_no_cell_fresh() {
        let cells = listing(&["a", "b"]);
        let mut history = ExecutionHistory::default();
        for index in 0..2 {
            history.record_completed(&PlannedCell::from_listing(&cells, index), 1);
        }
        assert_eq!(states(&history, &cells, 2), [OtherKernel; 2]);
        assert_eq!(history.freshness(&cells, None), [Some(OtherKernel); 2]);
        history.record_completed(&PlannedCell::from_listing(&cells, 0), 2);
        assert_eq!(states(&history, &cells, 2), [Fresh, OtherKernel]);
    }

    #[test]
    fn cells_that_do_not_run_make_no_cell_stale() {
        let mut cells = listing(&["a", "skipped", "", " \n", "# Text", "raw", "b"])
            .cells()
            .to_vec();
        cells[1].tags = vec![crate::SKIP_EXECUTION_TAG.to_owned()];
        cells[4].kind = CellKind::Markdown;
        cells[5].kind = CellKind::Raw;
        let cells = Listing::new(cells);
        let expected = |first, last| [Some(first), None, None, None, None, None, Some(last)];
        let mut history = ExecutionHistory::default();
        assert_eq!(
            history.freshness(&cells, Some(1)),
            expected(NeverRun, NeverRun)
        );
        history.record_completed(&PlannedCell::from_listing(&cells, 0), 1);
        assert_eq!(
            history.freshness(&cells, Some(1)),
            expected(Fresh, NeverRun)
        );
        history.record_completed(&PlannedCell::from_listing(&cells, 6), 1);
        assert_eq!(history.freshness(&cells, Some(1)), expected(Fresh, Fresh));
    }
}
