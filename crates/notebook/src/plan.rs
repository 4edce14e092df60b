//! [`Plan`]: the cells of an edited notebook, in terms of the old ones.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::error::EditError;
use crate::metadata::{self, MetadataChange};

/// The cells of the edited notebook, in order.
///
/// Every edit, from one replaced line to a rewritten text, first becomes a plan. Merging,
/// diffing and writing each handle only plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One slot per cell of the result.
    pub slots: Vec<Slot>,
    /// Changes to the metadata of the notebook.
    pub metadata: Vec<MetadataChange>,
}

/// One cell of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index of the old cell, or `None` for a new one.
    pub origin: Option<usize>,
    /// The new kind.
    pub kind: CellKind,
    /// The new source; `None` keeps the old one.
    pub source: Option<String>,
    /// Whether outputs and execution count stay.
    pub outputs: OutputAction,
    /// Changes to the metadata of the cell.
    pub metadata: Vec<MetadataChange>,
}

/// Whether a code cell keeps its outputs and execution count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputAction {
    /// Keep both.
    #[default]
    Keep,
    /// Remove both.
    Clear,
}

impl Slot {
    /// Cell `index`, unchanged.
    pub fn keep(cells: &dyn Cells, index: usize) -> Self {
        Self {
            origin: Some(index),
            kind: cells.kind(index),
            source: None,
            outputs: OutputAction::Keep,
            metadata: Vec::new(),
        }
    }

    /// A new cell.
    pub fn new(kind: CellKind, source: impl Into<String>) -> Self {
        Self {
            origin: None,
            kind,
            source: Some(source.into()),
            outputs: OutputAction::Keep,
            metadata: Vec::new(),
        }
    }

    /// Whether this is an unchanged cell of `cells`. Its position may change.
    pub fn is_kept(&self, cells: &dyn Cells) -> bool {
        self.origin.is_some_and(|origin| {
            self.source.is_none()
                && self.outputs == OutputAction::Keep
                && self.metadata.is_empty()
                && self.kind == cells.kind(origin)
        })
    }
}

impl Plan {
    /// The plan that changes nothing.
    pub fn keep_all(cells: &dyn Cells) -> Self {
        Self {
            slots: (0..cells.count()).map(|n| Slot::keep(cells, n)).collect(),
            metadata: Vec::new(),
        }
    }

    /// Whether the result equals the old notebook.
    pub fn changes_nothing(&self, cells: &dyn Cells) -> bool {
        self.metadata.is_empty()
            && self.keeps_order(cells.count())
            && self.slots.iter().all(|slot| slot.is_kept(cells))
    }

    /// Checks that the changes of metadata apply to `notebook` and leave it valid.
    pub fn check_metadata(&self, notebook: &Notebook) -> Result<(), EditError> {
        metadata::check(notebook.metadata(), &self.metadata, None)?;
        for slot in self.slots.iter().filter(|slot| !slot.metadata.is_empty()) {
            let old = slot.origin.map(|origin| notebook.cell_metadata(origin));
            metadata::check(old.unwrap_or_default(), &slot.metadata, Some(slot.kind))?;
        }
        Ok(())
    }

    /// This plan followed by `next`, which was made for the result of this one.
    #[must_use]
    pub(crate) fn followed_by(self, next: Self) -> Self {
        let slots = next.slots.into_iter().map(|slot| {
            let Some(before) = slot.origin.and_then(|index| self.slots.get(index)) else {
                return slot;
            };
            Slot {
                origin: before.origin,
                kind: slot.kind,
                source: slot.source.or_else(|| before.source.clone()),
                outputs: match slot.outputs {
                    OutputAction::Keep => before.outputs,
                    OutputAction::Clear => OutputAction::Clear,
                },
                metadata: [&before.metadata[..], &slot.metadata].concat(),
            }
        });
        Self {
            slots: slots.collect(),
            metadata: [self.metadata, next.metadata].concat(),
        }
    }

    /// Whether the result has exactly the old cells, in their old order.
    pub(crate) fn keeps_order(&self, count: usize) -> bool {
        self.slots.len() == count
            && self
                .slots
                .iter()
                .enumerate()
                .all(|(index, slot)| slot.origin == Some(index))
    }
}

/// Number of cells by kind of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellChangeCounts {
    /// Unchanged (the position may differ).
    pub kept: usize,
    /// Changed source, kind or outputs.
    pub changed: usize,
    /// Added.
    pub added: usize,
    /// Removed.
    pub removed: usize,
    /// Kept or changed, but moved.
    pub moved: usize,
}

impl CellChangeCounts {
    /// Counts the changes that `plan` makes to `cells`.
    pub fn count(plan: &Plan, cells: &dyn Cells) -> Self {
        let mut tally = Self::default();
        for slot in &plan.slots {
            if slot.origin.is_none() {
                tally.added += 1;
            } else if slot.is_kept(cells) {
                tally.kept += 1;
            } else {
                tally.changed += 1;
            }
        }
        tally.removed = cells.count() - tally.kept - tally.changed;
        let origins: Vec<usize> = plan.slots.iter().filter_map(|slot| slot.origin).collect();
        tally.moved = origins.len() - longest_increasing_len(&origins);
        tally
    }

    /// The number of cells that were changed, added, removed or moved.
    pub fn changed_count(&self) -> usize {
        self.changed + self.added + self.removed + self.moved
    }
}

/// Length of the longest increasing subsequence: the cells that need not move.
fn longest_increasing_len(numbers: &[usize]) -> usize {
    let mut smallest_ends: Vec<usize> = Vec::new();
    for &number in numbers {
        let index = smallest_ends.partition_point(|&end| end < number);
        if index == smallest_ends.len() {
            smallest_ends.push(number);
        } else {
            smallest_ends[index] = number;
        }
    }
    smallest_ends.len()
}
