//! Operations on one cell and text replacement, as plans.

mod matches;
mod pattern;
mod replace;

use std::borrow::Cow;
use std::fmt;

use crate::cell::CellKind;
use crate::document::Cells;
use crate::error::{EditError, Notice};
use crate::metadata::MetadataChange;
use crate::plan::{OutputAction, Plan, Slot};

pub use pattern::MatchMode;
pub use replace::{ReplaceScope, Replacement, replace, replace_all, replace_text};

/// The address of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By index, from 0.
    Index(usize),
    /// By id, or a prefix of an id.
    Id(String),
    /// By the whole id.
    ExactId(String),
}

impl Address {
    /// Parses `3`, `cell:3`, `id:` and the start of an id, or a whole id that cannot be a number.
    /// The forms of selectors (`:id=ab12`, `:cells=3`) are accepted as well.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(':').unwrap_or(text);
        let after = |names: &[&str]| names.iter().find_map(|name| text.strip_prefix(name));
        if let Some(id) = after(&["id:", "id="]) {
            return (!id.is_empty()).then(|| Self::Id(id.to_owned()));
        }
        let digits = after(&["cell:", "cell=", "cells:", "cells="]).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Some(Self::Index(digits.parse().unwrap_or(usize::MAX)));
        }
        // The characters that nbformat allows in an id.
        let in_id = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let is_id = text.bytes().all(in_id) && text.bytes().any(|b| b.is_ascii_alphabetic());
        is_id.then(|| Self::ExactId(text.to_owned()))
    }

    /// The index of the cell. An exact id wins over longer ids that start with it.
    pub fn resolve(&self, cells: &dyn Cells) -> Result<usize, EditError> {
        match self {
            Self::Index(index) if *index < cells.count() => Ok(*index),
            Self::Index(index) => Err(EditError::OutOfRange {
                index: *index,
                last: cells.count().checked_sub(1),
                inserting: false,
            }),
            Self::Id(prefix) => resolve_id(cells, prefix),
            Self::ExactId(id) => resolve_exact_id(cells, id),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Id(id) | Self::ExactId(id) => write!(f, "id:{id}"),
        }
    }
}

fn resolve_exact_id(cells: &dyn Cells, id: &str) -> Result<usize, EditError> {
    let mut indexes = (0..cells.count()).filter(|index| cells.id(*index).as_deref() == Some(id));
    match (indexes.next(), indexes.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => resolve_id(cells, id),
        _ => Err(EditError::NoSuchId {
            id: id.to_owned(),
            ids: (0..cells.count())
                .filter_map(|index| Some(cells.id(index)?.into_owned()))
                .take(10)
                .collect(),
        }),
    }
}

fn resolve_id(cells: &dyn Cells, prefix: &str) -> Result<usize, EditError> {
    const SHOWN_LIMIT: usize = 10;
    let ids: Vec<(usize, String)> = (0..cells.count())
        .filter_map(|index| Some((index, cells.id(index)?.into_owned())))
        .collect();
    let whole: Vec<_> = ids.iter().filter(|(_, id)| id == prefix).collect();
    let found: Vec<_> = if whole.is_empty() {
        ids.iter()
            .filter(|(_, id)| id.starts_with(prefix))
            .collect()
    } else {
        whole
    };
    if let [(index, _)] = found[..] {
        return Ok(*index);
    }
    let shown: Vec<String> = if found.is_empty() {
        ids.iter().map(|(_, id)| id.clone()).collect()
    } else {
        let describe = |(index, id): &&(usize, String)| format!("{id} (cell {index})");
        found.iter().map(describe).collect()
    };
    Err(EditError::IdMatches {
        prefix: prefix.to_owned(),
        count: found.len(),
        ids: shown.into_iter().take(SHOWN_LIMIT).collect(),
    })
}

/// The position for an inserted or moved cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellPosition {
    /// At this index.
    At(usize),
    /// After another cell.
    After(Address),
    /// Before another cell.
    Before(Address),
    /// After the last cell.
    End,
}

/// A change to one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Replaces the source. Kind, outputs and everything else stay.
    Edit {
        /// The cell.
        cell: Address,
        /// The new source.
        source: String,
        /// The new tags; `None` keeps them.
        tags: Option<Vec<String>>,
    },
    /// Inserts a new cell.
    Insert {
        /// Its position.
        position: CellPosition,
        /// Its kind.
        kind: CellKind,
        /// Its source.
        source: String,
        /// Its tags.
        tags: Vec<String>,
    },
    /// Removes a cell.
    Delete {
        /// The cell.
        cell: Address,
    },
    /// Moves a cell.
    Move {
        /// The cell.
        cell: Address,
        /// The new position. [`CellPosition::At`] is the index after the move.
        position: CellPosition,
    },
    /// Changes a cell's kind.
    Type {
        /// The cell.
        cell: Address,
        /// The new kind.
        kind: CellKind,
    },
    /// Removes outputs and execution count of one code cell, or of all.
    Clear {
        /// The cell; `None` for all code cells.
        cell: Option<Address>,
    },
    /// Changes the metadata of a cell or of the notebook.
    Metadata {
        /// The cell; `None` for the notebook.
        cell: Option<Address>,
        /// The changes, in order.
        changes: Vec<MetadataChange>,
    },
}

/// A plan, with the facts that a report of the edit needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The cells of the result.
    pub plan: Plan,
    /// Index in the plan of the cell that the edit is about, if it remains.
    pub focus: Option<usize>,
    /// Old index of the removed cell.
    pub removed: Option<usize>,
    /// Old index of the cell next to which a cell is inserted or moved.
    pub anchor: Option<usize>,
    /// Notices about the edit.
    pub notices: Vec<Notice>,
}

impl Operation {
    /// The plan of the operation over `cells`.
    pub fn draft(&self, cells: &dyn Cells) -> Result<Draft, EditError> {
        let Plan {
            mut slots,
            mut metadata,
        } = Plan::keep_all(cells);
        let mut removed = None;
        let mut anchor = None;
        let focus = match self {
            Self::Edit { cell, source, tags } => {
                let index = cell.resolve(cells)?;
                if cells.source(index) != *source {
                    slots[index].source = Some(source.clone());
                }
                let tags = tags.as_deref().map(MetadataChange::set_tags);
                slots[index].metadata.extend(tags);
                Some(index)
            }
            Self::Insert {
                position,
                kind,
                source,
                tags,
            } => {
                let at = position.resolve(cells)?;
                anchor = position.anchor(cells)?;
                let mut slot = Slot::new(*kind, source.as_str());
                slot.metadata = tags.iter().cloned().map(MetadataChange::AddTag).collect();
                slots.insert(at, slot);
                Some(at)
            }
            Self::Delete { cell } => {
                let index = cell.resolve(cells)?;
                slots.remove(index);
                removed = Some(index);
                None
            }
            Self::Move { cell, position } => {
                let from = cell.resolve(cells)?;
                anchor = position.anchor(cells)?;
                let to = match position {
                    CellPosition::At(to) if *to < cells.count() => *to,
                    CellPosition::At(to) => Address::Index(*to).resolve(cells)?,
                    CellPosition::End => cells.count() - 1,
                    other => {
                        let at = other.resolve(cells)?;
                        if at > from { at - 1 } else { at }
                    }
                };
                let slot = slots.remove(from);
                slots.insert(to, slot);
                Some(to)
            }
            Self::Type { cell, kind } => {
                let index = cell.resolve(cells)?;
                slots[index].kind = *kind;
                Some(index)
            }
            Self::Clear { cell } => {
                let only = cell.as_ref().map(|cell| cell.resolve(cells)).transpose()?;
                for (index, slot) in slots.iter_mut().enumerate() {
                    if only.is_none_or(|only| only == index) && slot.kind == CellKind::Code {
                        slot.outputs = OutputAction::Clear;
                    }
                }
                only
            }
            Self::Metadata { cell, changes } => {
                let index = cell.as_ref().map(|cell| cell.resolve(cells)).transpose()?;
                match index {
                    Some(index) => slots[index].metadata.clone_from(changes),
                    None => metadata.clone_from(changes),
                }
                index
            }
        };
        Ok(Draft {
            plan: Plan { slots, metadata },
            focus,
            removed,
            anchor,
            notices: Vec::new(),
        })
    }
}

/// Several operations as one draft. Each applies to the result of the ones before it.
pub fn draft_sequence(cells: &dyn Cells, operations: &[Operation]) -> Result<Draft, EditError> {
    let mut whole = Draft {
        plan: Plan::keep_all(cells),
        focus: None,
        removed: None,
        anchor: None,
        notices: Vec::new(),
    };
    for operation in operations {
        let next = operation.draft(&PlannedCells {
            cells,
            plan: &whole.plan,
        })?;
        let origin = |index: usize| whole.plan.slots[index].origin;
        let removed = next.removed.and_then(origin);
        let anchor = next.anchor.and_then(origin);
        whole = Draft {
            focus: next.focus,
            removed: removed.or(whole.removed),
            anchor: anchor.or(whole.anchor),
            notices: [whole.notices, next.notices].concat(),
            plan: whole.plan.followed_by(next.plan),
        };
    }
    Ok(whole)
}

/// The cells that result from a plan.
struct PlannedCells<'p> {
    cells: &'p dyn Cells,
    plan: &'p Plan,
}

impl Cells for PlannedCells<'_> {
    fn count(&self) -> usize {
        self.plan.slots.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.plan.slots[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        let slot = &self.plan.slots[index];
        match (&slot.source, slot.origin) {
            (Some(source), _) => Cow::Borrowed(source),
            (None, Some(origin)) => self.cells.source(origin),
            (None, None) => Cow::Borrowed(""),
        }
    }

    /// New cells get their ids when the plan is applied.
    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.cells.id(self.plan.slots[index].origin?)
    }
}

impl CellPosition {
    /// The cell that the position refers to.
    fn anchor(&self, cells: &dyn Cells) -> Result<Option<usize>, EditError> {
        match self {
            Self::After(cell) | Self::Before(cell) => cell.resolve(cells).map(Some),
            Self::At(_) | Self::End => Ok(None),
        }
    }

    /// The index at which a new cell is inserted.
    fn resolve(&self, cells: &dyn Cells) -> Result<usize, EditError> {
        match self {
            Self::At(index) if *index <= cells.count() => Ok(*index),
            Self::At(index) => Err(EditError::OutOfRange {
                index: *index,
                last: Some(cells.count()),
                inserting: true,
            }),
            Self::After(cell) => Ok(cell.resolve(cells)? + 1),
            Self::Before(cell) => cell.resolve(cells),
            Self::End => Ok(cells.count()),
        }
    }
}
