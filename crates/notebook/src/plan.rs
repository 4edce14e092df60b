//! [`Plan`]: what a notebook's cells shall be after an edit, in terms of what they were.

use crate::cell::CellKind;
use crate::document::Cells;

/// The cells of the edited notebook, in order.
///
/// Every edit, from one replaced line to a rewritten text, is a plan first. That makes merging,
/// diffing and writing one thing each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One for each cell of the result.
    pub slots: Vec<Slot>,
}

/// One cell of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The cell it was, or `None` for a new one.
    pub origin: Option<usize>,
    /// The kind it shall have.
    pub kind: CellKind,
    /// The source it shall have; `None` keeps the one it has.
    pub source: Option<String>,
    /// Whether outputs and execution count go.
    pub outputs: Outputs,
    /// The tags of a cell that is new.
    pub tags: Vec<String>,
}

/// What becomes of a code cell's outputs and execution count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outputs {
    /// They stay as they are.
    #[default]
    Keep,
    /// No outputs, no count.
    Clear,
}

impl Slot {
    /// Cell `index` as it is.
    pub fn keep(cells: &dyn Cells, index: usize) -> Self {
        Self {
            origin: Some(index),
            kind: cells.kind(index),
            source: None,
            outputs: Outputs::Keep,
            tags: Vec::new(),
        }
    }

    /// A cell that was not there.
    pub fn new(kind: CellKind, source: impl Into<String>) -> Self {
        Self {
            origin: None,
            kind,
            source: Some(source.into()),
            outputs: Outputs::Keep,
            tags: Vec::new(),
        }
    }

    /// Whether this is a cell of `cells` and nothing in it changes (its place may).
    pub fn is_kept(&self, cells: &dyn Cells) -> bool {
        self.origin.is_some_and(|origin| {
            self.source.is_none()
                && self.outputs == Outputs::Keep
                && self.kind == cells.kind(origin)
        })
    }
}

impl Plan {
    /// The plan that changes nothing.
    pub fn keep_all(cells: &dyn Cells) -> Self {
        Self {
            slots: (0..cells.count()).map(|n| Slot::keep(cells, n)).collect(),
        }
    }

    /// Whether the result is what was there.
    pub fn changes_nothing(&self, cells: &dyn Cells) -> bool {
        self.keeps_order(cells.count()) && self.slots.iter().all(|slot| slot.is_kept(cells))
    }

    /// This plan, and then one that was made for what this one leaves.
    #[must_use]
    pub(crate) fn then(self, next: Self) -> Self {
        let slots = next.slots.into_iter().map(|slot| {
            let Some(before) = slot.origin.and_then(|index| self.slots.get(index)) else {
                return slot;
            };
            Slot {
                origin: before.origin,
                kind: slot.kind,
                source: slot.source.or_else(|| before.source.clone()),
                outputs: match slot.outputs {
                    Outputs::Keep => before.outputs,
                    Outputs::Clear => Outputs::Clear,
                },
                tags: before.tags.clone(),
            }
        });
        Self {
            slots: slots.collect(),
        }
    }

    /// Whether exactly the old cells are there, in their old order.
    pub(crate) fn keeps_order(&self, count: usize) -> bool {
        self.slots.len() == count
            && self
                .slots
                .iter()
                .enumerate()
                .all(|(index, slot)| slot.origin == Some(index))
    }
}

/// How many cells an edit touched, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Same content (the place may differ).
    pub kept: usize,
    /// Other source, kind or outputs.
    pub changed: usize,
    /// New.
    pub added: usize,
    /// Gone.
    pub removed: usize,
    /// Kept or changed, but in another order.
    pub moved: usize,
}

impl Tally {
    /// Counts what `plan` does to `cells`.
    pub fn of(plan: &Plan, cells: &dyn Cells) -> Self {
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
        tally.moved = origins.len() - longest_rising(&origins);
        tally
    }

    /// How many cells are not what or where they were.
    pub fn touched(&self) -> usize {
        self.changed + self.added + self.removed + self.moved
    }
}

/// Length of the longest rising subsequence: the cells that need not move.
fn longest_rising(numbers: &[usize]) -> usize {
    let mut smallest_ends: Vec<usize> = Vec::new();
    for &number in numbers {
        let place = smallest_ends.partition_point(|&end| end < number);
        if place == smallest_ends.len() {
            smallest_ends.push(number);
        } else {
            smallest_ends[place] = number;
        }
    }
    smallest_ends.len()
}
