//! One-cell operations and text replacement, as plans.

use std::borrow::Cow;
use std::fmt;

use crate::cell::CellKind;
use crate::document::Cells;
use crate::error::{EditError, Notice};
use crate::plan::{Outputs, Plan, Slot};
use crate::rewrite::rewrite;
use crate::text::marker::{self, Line};
use crate::text::{Markers, parse, render};

/// Which cell is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By place, from 0.
    Index(usize),
    /// By id, or the beginning of one.
    Id(String),
}

impl Address {
    /// Reads `3` or `id:ab12`.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(id) = text.strip_prefix("id:") {
            return (!id.is_empty()).then(|| Self::Id(id.to_owned()));
        }
        let digits = text.strip_prefix("cell:").unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self::Index(digits.parse().unwrap_or(usize::MAX)))
    }

    /// The index of the cell that is meant. A whole id wins over a longer one it begins.
    pub fn find(&self, cells: &dyn Cells) -> Result<usize, EditError> {
        match self {
            Self::Index(index) if *index < cells.count() => Ok(*index),
            Self::Index(index) => Err(EditError::OutOfRange {
                index: *index,
                last: cells.count().checked_sub(1),
                inserting: false,
            }),
            Self::Id(prefix) => find_id(cells, prefix),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Id(id) => write!(f, "id:{id}"),
        }
    }
}

fn find_id(cells: &dyn Cells, prefix: &str) -> Result<usize, EditError> {
    const MOST_SHOWN: usize = 10;
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
        let place = |(index, id): &&(usize, String)| format!("{id} (cell {index})");
        found.iter().map(place).collect()
    };
    Err(EditError::IdMatches {
        prefix: prefix.to_owned(),
        count: found.len(),
        ids: shown.into_iter().take(MOST_SHOWN).collect(),
    })
}

/// Where a cell goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// So that it becomes the cell with this index.
    At(usize),
    /// Behind another.
    After(Address),
    /// Before another.
    Before(Address),
    /// Behind all others.
    End,
}

/// A change to one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Replaces the source; kind, outputs and everything else stay.
    Edit {
        /// Which cell.
        cell: Address,
        /// The new source.
        source: String,
    },
    /// Puts in a new cell.
    Insert {
        /// Where.
        place: Place,
        /// Of which kind.
        kind: CellKind,
        /// With which source.
        source: String,
        /// With which tags.
        tags: Vec<String>,
    },
    /// Takes a cell out.
    Delete {
        /// Which cell.
        cell: Address,
    },
    /// Moves a cell.
    Move {
        /// Which cell.
        cell: Address,
        /// Where to; [`Place::At`] is the index it shall have afterwards.
        place: Place,
    },
    /// Changes a cell's kind.
    Type {
        /// Which cell.
        cell: Address,
        /// The new kind.
        kind: CellKind,
    },
    /// Empties outputs and execution count of one code cell, or of all.
    Clear {
        /// Which cell; `None` for all.
        cell: Option<Address>,
    },
}

/// A plan, and what to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What the cells shall be.
    pub plan: Plan,
    /// The slot of the plan that the edit is about, if it is about one that remains.
    pub focus: Option<usize>,
    /// The cell that was taken out, by its old index.
    pub removed: Option<usize>,
    /// The cell that something is put next to, by its old index.
    pub anchor: Option<usize>,
    /// Things worth telling.
    pub notices: Vec<Notice>,
}

impl Operation {
    /// Works out what the operation does to `cells`.
    pub fn draft(&self, cells: &dyn Cells) -> Result<Draft, EditError> {
        let mut slots = Plan::keep_all(cells).slots;
        let mut removed = None;
        let mut anchor = None;
        let focus = match self {
            Self::Edit { cell, source } => {
                let index = cell.find(cells)?;
                if cells.source(index) != *source {
                    slots[index].source = Some(source.clone());
                }
                Some(index)
            }
            Self::Insert {
                place,
                kind,
                source,
                tags,
            } => {
                let at = place.resolve(cells)?;
                anchor = place.anchor(cells)?;
                let mut slot = Slot::new(*kind, source.as_str());
                slot.tags.clone_from(tags);
                slots.insert(at, slot);
                Some(at)
            }
            Self::Delete { cell } => {
                let index = cell.find(cells)?;
                slots.remove(index);
                removed = Some(index);
                None
            }
            Self::Move { cell, place } => {
                let from = cell.find(cells)?;
                anchor = place.anchor(cells)?;
                let to = match place {
                    Place::At(to) if *to < cells.count() => *to,
                    Place::At(to) => Address::Index(*to).find(cells)?,
                    Place::End => cells.count() - 1,
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
                let index = cell.find(cells)?;
                slots[index].kind = *kind;
                Some(index)
            }
            Self::Clear { cell } => {
                let only = cell.as_ref().map(|cell| cell.find(cells)).transpose()?;
                for (index, slot) in slots.iter_mut().enumerate() {
                    if only.is_none_or(|only| only == index) && slot.kind == CellKind::Code {
                        slot.outputs = Outputs::Clear;
                    }
                }
                only
            }
        };
        Ok(Draft {
            plan: Plan { slots },
            focus,
            removed,
            anchor,
            notices: Vec::new(),
        })
    }
}

/// Several operations, each on what the ones before it left, as one draft.
pub fn sequence(cells: &dyn Cells, operations: &[Operation]) -> Result<Draft, EditError> {
    let mut whole = Draft {
        plan: Plan::keep_all(cells),
        focus: None,
        removed: None,
        anchor: None,
        notices: Vec::new(),
    };
    for operation in operations {
        let next = operation.draft(&Planned {
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
            plan: whole.plan.then(next.plan),
        };
    }
    Ok(whole)
}

/// Cells as a plan leaves them.
struct Planned<'p> {
    cells: &'p dyn Cells,
    plan: &'p Plan,
}

impl Cells for Planned<'_> {
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

    /// New cells get theirs when the plan is carried out.
    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.cells.id(self.plan.slots[index].origin?)
    }
}

impl Place {
    /// The cell that the place is next to.
    fn anchor(&self, cells: &dyn Cells) -> Result<Option<usize>, EditError> {
        match self {
            Self::After(cell) | Self::Before(cell) => cell.find(cells).map(Some),
            Self::At(_) | Self::End => Ok(None),
        }
    }

    /// The index before which a new cell goes.
    fn resolve(&self, cells: &dyn Cells) -> Result<usize, EditError> {
        match self {
            Self::At(index) if *index <= cells.count() => Ok(*index),
            Self::At(index) => Err(EditError::OutOfRange {
                index: *index,
                last: Some(cells.count()),
                inserting: true,
            }),
            Self::After(cell) => Ok(cell.find(cells)? + 1),
            Self::Before(cell) => cell.find(cells),
            Self::End => Ok(cells.count()),
        }
    }
}

/// How many places a replacement may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// Exactly one; anything else is an error.
    One,
    /// All there are, at least one.
    All,
}

/// Replaces text in the printed view.
pub fn replace_text(
    cells: &dyn Cells,
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> Result<Draft, EditError> {
    const MOST_SHOWN: usize = 10;
    if old.is_empty() || old == new {
        return Err(EditError::NothingToReplace);
    }
    // As printed, so that what a person copies from the screen is found.
    let mut view = render(cells, Markers::Indexes);
    view.push('\n');
    // A word that also occurs in markers is not meant there.
    let means_markers = old.contains("# %%");
    let places: Vec<usize> = view
        .match_indices(old)
        .map(|(at, _)| at)
        .filter(|&at| means_markers || !is_inside_marker(&view, at, old.len()))
        .collect();
    if places.is_empty() || (places.len() > 1 && occurrences == Occurrences::One) {
        let line_of = |at: &usize| 1 + view[..*at].matches('\n').count();
        let mut lines: Vec<usize> = places.iter().map(line_of).collect();
        lines.dedup();
        lines.truncate(MOST_SHOWN);
        return Err(EditError::Matches {
            count: places.len(),
            lines,
        });
    }
    let first_line = view[..places[0]].matches('\n').count() + 1;
    let mut edited = String::with_capacity(view.len());
    let mut done = 0;
    for at in places {
        edited.push_str(&view[done..at]);
        edited.push_str(new);
        done = at + old.len();
    }
    edited.push_str(&view[done..]);
    let draft = replace_all(cells, &edited)?;
    let focus = draft.cell_at_line(&edited, first_line);
    Ok(Draft { focus, ..draft })
}

/// Whether a match lies within one marker line.
fn is_inside_marker(view: &str, at: usize, length: usize) -> bool {
    let start = view[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = view[at..].find('\n').map_or(view.len(), |end| at + end);
    at + length <= end && matches!(marker::classify(&view[start..end]), Line::Marker(_))
}

/// Replaces the whole view by an edited one, as it was printed: one newline at the end is taken
/// off.
pub fn replace_all(cells: &dyn Cells, printed: &str) -> Result<Draft, EditError> {
    let crlf = first_line_is_crlf(printed);
    let text = printed
        .strip_suffix(if crlf { "\r\n" } else { "\n" })
        .unwrap_or(printed);
    let (plan, notices) = rewrite(cells, parse(text)?);
    Ok(Draft {
        plan,
        focus: None,
        removed: None,
        anchor: None,
        notices,
    })
}

fn first_line_is_crlf(text: &str) -> bool {
    text.split('\n')
        .next()
        .is_some_and(|line| line.ends_with('\r'))
}

impl Draft {
    /// The slot whose block covers a line of the edited text.
    fn cell_at_line(&self, text: &str, line: usize) -> Option<usize> {
        let parsed = parse(text).ok()?;
        let last = parsed.blocks.iter().rposition(|block| block.line <= line)?;
        (last < self.plan.slots.len()).then_some(last)
    }
}
