//! Whether cells are up to date: [`ExecutionHistory`] stores which cells of a notebook a session has run, and
//! [`CellFreshness`] is the resulting state of a cell, with the reasons.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use cellwright_notebook::{CellKind, Cells, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::listing::Listing;
use crate::planned_cells::PlannedCell;

/// Number of causes of one kind that are listed for a cell.
const CAUSES_MAX: usize = 3;

/// The cells of a notebook that a session has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionHistory {
    cells: Vec<ExecutedCell>,
    /// Number of cells that have run.
    sequence: u64,
}

/// A cell that has run.
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
    #[serde(default)]
    end: CellEnding,
    /// Number of cells that had run when the cell was no longer in the notebook.
    #[serde(default)]
    deleted_at: Option<u64>,
}

/// How the last execution of a cell ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellEnding {
    /// It ran to its end.
    #[default]
    Completed,
    /// It raised an exception.
    Failed,
    /// It was cancelled, or exceeded its time limit.
    Interrupted,
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
    /// It has not run.
    NeverRun,
    /// It raised an exception.
    Failed,
    /// It was cancelled, or exceeded its time limit.
    Interrupted,
    /// It ran on a kernel that has been replaced.
    OtherKernel,
}

/// Whether a cell is up to date, and which cells make it stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFreshness {
    /// The state.
    pub state: Freshness,
    /// The cells that make the cell stale; empty in other states.
    pub causes: Vec<StaleCause>,
}

/// A cell that makes a later one stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StaleCause {
    /// Index of the cell; of a deleted cell, the index at which it ran.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// What happened to the cell.
    pub reason: StaleReason,
}

/// Why a cell makes a later one stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StaleReason {
    /// Its source has changed since it ran.
    Changed,
    /// It has not run: it may be new.
    NeverRun,
    /// It raised an exception.
    Failed,
    /// It was cancelled, or exceeded its time limit.
    Interrupted,
    /// It ran on a kernel that has been replaced.
    OtherKernel,
    /// It ran after the other cell.
    RanLater,
    /// It ran before the other cell, and is no longer in the notebook.
    Deleted,
    /// It is stale itself.
    Stale,
}

impl fmt::Display for StaleCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = match self.reason {
            StaleReason::Changed => "changed",
            StaleReason::NeverRun => "has not run",
            StaleReason::Failed => "failed",
            StaleReason::Interrupted => "was interrupted",
            StaleReason::OtherKernel => "ran on another kernel",
            StaleReason::RanLater => "ran later",
            StaleReason::Deleted => "was deleted",
            StaleReason::Stale => "is stale",
        };
        write!(f, "cell {} {event}", self.index)
    }
}

impl Freshness {
    /// Why a cell in this state makes later cells stale.
    fn stale_reason(self) -> Option<StaleReason> {
        match self {
            Self::Fresh | Self::Stale => None,
            Self::Changed => Some(StaleReason::Changed),
            Self::NeverRun => Some(StaleReason::NeverRun),
            Self::Failed => Some(StaleReason::Failed),
            Self::Interrupted => Some(StaleReason::Interrupted),
            Self::OtherKernel => Some(StaleReason::OtherKernel),
        }
    }
}

impl ExecutionHistory {
    /// Records that a cell ran on the kernel of this generation, and how it ended.
    pub fn record(&mut self, cell: &PlannedCell, generation: u32, end: CellEnding) {
        self.cells
            .retain(|executed| match (&executed.id, &cell.id) {
                (Some(own), Some(other)) => own != other,
                (None, None) => executed.index != cell.index,
                _ => true,
            });
        self.sequence += 1;
        self.cells.push(ExecutedCell {
            id: cell.id.clone(),
            index: cell.index,
            hash: source_hash(&cell.source),
            generation,
            sequence: self.sequence,
            end,
            deleted_at: None,
        });
    }

    /// Records which cells are in the notebook before further cells run. Cells that run after a deletion do not depend
    /// on the deleted cell.
    pub fn record_existing(&mut self, ids: &[String]) {
        let existing: HashSet<&str> = ids.iter().map(String::as_str).collect();
        for executed in &mut self.cells {
            let id = executed.id.as_deref();
            if id.is_some_and(|id| !existing.contains(id)) {
                executed.deleted_at.get_or_insert(self.sequence);
            } else {
                executed.deleted_at = None;
            }
        }
    }

    /// The state of each cell; `None` for cells that never run (Markdown, raw, empty, or tagged to be skipped).
    /// `generation` is the generation of the current kernel, if there is one.
    pub fn freshness(
        &self,
        listing: &Listing,
        generation: Option<u32>,
    ) -> Vec<Option<CellFreshness>> {
        let hashes: Vec<String> = (0..listing.count())
            .map(|index| source_hash(&listing.source(index)))
            .collect();
        let mut causes = EarlierCells::new(self.deleted_cells(listing, generation));
        (0..listing.count())
            .map(|index| {
                if !is_runnable(listing, index) {
                    return None;
                }
                let executed = self.find_execution(listing, index, &hashes);
                let own = own_state(executed, &hashes[index], generation);
                let cell = match (own, executed) {
                    (Freshness::Fresh, Some(executed)) => causes.judge(executed.sequence),
                    _ => CellFreshness {
                        state: own,
                        causes: Vec::new(),
                    },
                };
                // A cell of comments has no effect, unless it replaced code that ran.
                let has_effect = has_code(listing, index) || cell.state == Freshness::Changed;
                if has_effect {
                    let id = listing.id(index);
                    causes.add(index, id.as_deref(), cell.state, executed);
                }
                Some(cell)
            })
            .collect()
    }

    /// The cells that ran on the current kernel and are no longer in the notebook. Only ids identify them.
    fn deleted_cells(&self, listing: &Listing, generation: Option<u32>) -> Vec<&ExecutedCell> {
        let ids = (0..listing.count()).filter_map(|index| listing.id(index));
        let existing: HashSet<Cow<'_, str>> = ids.collect();
        let is_deleted = |executed: &&ExecutedCell| {
            let id = executed.id.as_deref();
            id.is_some_and(|id| !existing.contains(id)) && Some(executed.generation) == generation
        };
        self.cells.iter().filter(is_deleted).collect()
    }

    /// Finds the last execution of a cell: by id, or for a cell without an id by source, else by index.
    fn find_execution(
        &self,
        listing: &Listing,
        index: usize,
        hashes: &[String],
    ) -> Option<&ExecutedCell> {
        if let Some(id) = listing.id(index) {
            return self
                .cells
                .iter()
                .find(|executed| executed.id.as_deref() == Some(&id));
        }
        let without_id = || self.cells.iter().filter(|executed| executed.id.is_none());
        without_id()
            .filter(|executed| executed.hash == hashes[index])
            .min_by_key(|executed| executed.index.abs_diff(index))
            .or_else(|| {
                // The source that ran at this index may be that of a cell that moved.
                let mut at_index = without_id().filter(|executed| executed.index == index);
                at_index.find(|executed| !hashes.contains(&executed.hash))
            })
    }
}

/// Whether a run would run the cell.
fn is_runnable(listing: &Listing, index: usize) -> bool {
    listing.kind(index) == CellKind::Code
        && !listing.source(index).trim().is_empty()
        && !listing.has_tag(index, crate::SKIP_EXECUTION_TAG)
}

/// Whether the source has a line that is not a comment.
fn has_code(listing: &Listing, index: usize) -> bool {
    let has_hash_comments = match listing.language() {
        Some(language) => {
            let language = language.to_ascii_lowercase();
            ["python", "r", "julia", "bash"].contains(&language.as_str())
        }
        None => true,
    };
    let source = listing.source(index);
    let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    !has_hash_comments || !source.lines().all(is_comment)
}

/// The state of a cell regardless of other cells.
fn own_state(executed: Option<&ExecutedCell>, hash: &str, generation: Option<u32>) -> Freshness {
    let Some(executed) = executed else {
        return Freshness::NeverRun;
    };
    match executed.end {
        _ if Some(executed.generation) != generation => Freshness::OtherKernel,
        _ if executed.hash != hash => Freshness::Changed,
        CellEnding::Completed => Freshness::Fresh,
        CellEnding::Failed => Freshness::Failed,
        CellEnding::Interrupted => Freshness::Interrupted,
    }
}

/// The cells before a cell that can make it stale.
struct EarlierCells<'a> {
    /// Cells that are not up to date themselves.
    own: Vec<StaleCause>,
    /// The first stale cell.
    stale: Option<StaleCause>,
    /// Cells that ran later than all cells before them, with their positions in the order of execution.
    latest: Vec<(u64, StaleCause)>,
    deleted: Vec<&'a ExecutedCell>,
}

impl<'a> EarlierCells<'a> {
    fn new(deleted: Vec<&'a ExecutedCell>) -> Self {
        Self {
            own: Vec::new(),
            stale: None,
            latest: Vec::new(),
            deleted,
        }
    }

    /// The state of a cell that ran to its end at this position in the order of execution.
    fn judge(&self, sequence: u64) -> CellFreshness {
        let mut causes = self.own.clone();
        let ran_earlier = self
            .latest
            .partition_point(|(latest, _)| *latest < sequence);
        let ran_later = self.latest.get(ran_earlier).map(|(_, cause)| cause.clone());
        causes.extend(ran_later);
        // A cell that ran between the deleted cell and its deletion may depend on it.
        let deleted = self.deleted.iter().filter(|cell| {
            cell.sequence < sequence && cell.deleted_at.is_none_or(|at| sequence <= at)
        });
        causes.extend(deleted.take(CAUSES_MAX).map(|cell| StaleCause {
            index: cell.index,
            id: cell.id.clone(),
            reason: StaleReason::Deleted,
        }));
        if causes.is_empty() {
            causes.extend(self.stale.clone());
        }
        CellFreshness {
            state: if causes.is_empty() {
                Freshness::Fresh
            } else {
                Freshness::Stale
            },
            causes,
        }
    }

    fn add(
        &mut self,
        index: usize,
        id: Option<&str>,
        state: Freshness,
        executed: Option<&ExecutedCell>,
    ) {
        let cause = |reason| StaleCause {
            index,
            id: id.map(str::to_owned),
            reason,
        };
        match (state.stale_reason(), executed) {
            (Some(reason), _) => {
                if self.own.len() < CAUSES_MAX {
                    self.own.push(cause(reason));
                }
            }
            (None, Some(executed)) => {
                let latest = self.latest.last().map_or(0, |(latest, _)| *latest);
                if executed.sequence > latest {
                    self.latest
                        .push((executed.sequence, cause(StaleReason::RanLater)));
                }
                if state == Freshness::Stale && self.stale.is_none() {
                    self.stale = Some(cause(StaleReason::Stale));
                }
            }
            (None, None) => {}
        }
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

    /// Cells whose ids are the first letters of their sources, in upper case.
    fn listing(sources: &[&str]) -> Listing {
        let cell = |source: &&str| ListedCell {
            kind: CellKind::Code,
            id: Some(source[..1].to_uppercase()),
            source: (*source).to_owned(),
            tags: Vec::new(),
            last_duration: None,
        };
        Listing::new(sources.iter().map(cell).collect())
    }

    fn without_ids(sources: &[&str]) -> Listing {
        let mut cells: Vec<ListedCell> = listing(sources).cells().collect();
        for cell in &mut cells {
            cell.id = None;
        }
        Listing::new(cells)
    }

    fn run(history: &mut ExecutionHistory, listing: &Listing, cells: &[usize]) {
        for &index in cells {
            let cell = PlannedCell::from_listing(listing, index);
            history.record(&cell, 1, CellEnding::Completed);
        }
    }

    fn states(history: &ExecutionHistory, listing: &Listing, generation: u32) -> Vec<Freshness> {
        let states = history.freshness(listing, Some(generation));
        states
            .into_iter()
            .flatten()
            .map(|cell| cell.state)
            .collect()
    }

    /// The causes of each cell, separated by commas.
    fn causes(history: &ExecutionHistory, listing: &Listing) -> Vec<String> {
        let states = history.freshness(listing, Some(1)).into_iter();
        let causes = |cell: Option<CellFreshness>| {
            let causes = cell.map(|cell| cell.causes).unwrap_or_default();
            let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
            causes.join(", ")
        };
        states.map(causes).collect()
    }

    #[test]
    fn cells_after_a_changed_cell_are_stale() {
        let before = listing(&["a", "b", "c"]);
        let mut history = ExecutionHistory::default();
        assert_eq!(states(&history, &before, 1), [NeverRun; 3]);
        run(&mut history, &before, &[0, 1, 2]);
        assert_eq!(states(&history, &before, 1), [Fresh; 3]);
        let edited = listing(&["a", "b2", "c"]);
        assert_eq!(states(&history, &edited, 1), [Fresh, Changed, Stale]);
        assert_eq!(causes(&history, &edited), ["", "", "cell 1 changed"]);
        run(&mut history, &edited, &[1]);
        assert_eq!(states(&history, &edited, 1), [Fresh, Fresh, Stale]);
        assert_eq!(causes(&history, &edited), ["", "", "cell 1 ran later"]);
        run(&mut history, &edited, &[2]);
        assert_eq!(states(&history, &edited, 1), [Fresh; 3]);
        // Running a cell again makes the following cells stale, although no source has changed.
        run(&mut history, &edited, &[0]);
        assert_eq!(states(&history, &edited, 1), [Fresh, Stale, Stale]);
        run(&mut history, &edited, &[2]);
        assert_eq!(
            causes(&history, &edited),
            ["", "cell 0 ran later", "cell 1 is stale"]
        );
        let first = PlannedCell::from_listing(&edited, 0);
        for (end, state, cause) in [
            (CellEnding::Failed, Freshness::Failed, "cell 0 failed"),
            (
                CellEnding::Interrupted,
                Freshness::Interrupted,
                "cell 0 was interrupted",
            ),
        ] {
            history.record(&first, 1, end);
            assert_eq!(states(&history, &edited, 1), [state, Stale, Stale]);
            assert_eq!(causes(&history, &edited)[1..], [cause, cause]);
        }
    }

    #[test]
    fn inserted_moved_and_deleted_cells_make_later_cells_stale() {
        let before = listing(&["a", "b", "c"]);
        let mut history = ExecutionHistory::default();
        run(&mut history, &before, &[0, 1, 2]);
        let inserted = listing(&["a", "x", "b", "c"]);
        assert_eq!(
            causes(&history, &inserted),
            ["", "", "cell 1 has not run", "cell 1 has not run"]
        );
        let moved = listing(&["a", "c", "b"]);
        assert_eq!(causes(&history, &moved), ["", "", "cell 1 ran later"]);
        // Only cells that ran after the deleted one can depend on it.
        let deleted = listing(&["a", "c"]);
        assert_eq!(causes(&history, &deleted), ["", "cell 1 was deleted"]);
        history.record_existing(&["A".to_owned(), "C".to_owned()]);
        assert_eq!(causes(&history, &deleted), ["", "cell 1 was deleted"]);
        run(&mut history, &deleted, &[1]);
        assert_eq!(causes(&history, &deleted), ["", ""]);
    }

    #[test]
    fn cells_without_ids_are_found_by_source() {
        let before = without_ids(&["a", "b"]);
        let mut history = ExecutionHistory::default();
        run(&mut history, &before, &[0, 1]);
        let inserted = without_ids(&["x", "a", "b"]);
        assert_eq!(states(&history, &inserted, 1), [NeverRun, Stale, Stale]);
        let edited = without_ids(&["a", "b2"]);
        assert_eq!(states(&history, &edited, 1), [Fresh, Changed]);
    }

    #[test]
    fn replaced_kernel_makes_no_cell_fresh() {
        let cells = listing(&["a", "b"]);
        let mut history = ExecutionHistory::default();
        run(&mut history, &cells, &[0, 1]);
        assert_eq!(states(&history, &cells, 2), [OtherKernel; 2]);
        let first = PlannedCell::from_listing(&cells, 0);
        history.record(&first, 2, CellEnding::Completed);
        assert_eq!(states(&history, &cells, 2), [Fresh, OtherKernel]);
    }

    #[test]
    fn cells_that_have_no_effect_make_no_cell_stale() {
        let mut cells = listing(
            &[
                "a",
                "skipped",
                "",
                " \n",
                "# Text",
                "raw",
                "b",
                "# only\n\n# comments",
                "c",
            ]
            .map(|source| if source.is_empty() { "_" } else { source }),
        )
        .cells()
        .collect::<Vec<ListedCell>>();
        cells[1].tags = vec![crate::SKIP_EXECUTION_TAG.to_owned()];
        cells[2].source = String::new();
        cells[4].kind = CellKind::Markdown;
        cells[5].kind = CellKind::Raw;
        let cells = Listing::new(cells);
        let mut history = ExecutionHistory::default();
        assert_eq!(states(&history, &cells, 1), [NeverRun; 4]);
        run(&mut history, &cells, &[0, 6, 8]);
        assert_eq!(states(&history, &cells, 1), [Fresh, Fresh, NeverRun, Fresh]);
        // Comments instead of code that ran: its effects remain.
        let mut commented: Vec<ListedCell> = cells.cells().collect();
        commented[6].source = "# b".to_owned();
        let commented = Listing::new(commented);
        assert_eq!(
            states(&history, &commented, 1),
            [Fresh, Changed, NeverRun, Stale]
        );
    }
}
