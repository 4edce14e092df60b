//! Compares two notebooks cell by cell.

pub(crate) mod members;
mod outputs;

pub use self::members::MemberDifference;
pub use self::outputs::OutputDifference;

use crate::cell::CellKind;
use crate::cell_matching::CellMatching;
use crate::diff::{self, Hunk};
use crate::document::{Cells, Notebook};
use crate::json::object_edit::Object;
use crate::outputs::{execution_count, full_text};

/// The differences between two notebooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Cells that differ, in the order of the new notebook. A removed cell comes after the cell
    /// that it followed.
    pub cells: Vec<CellDifference>,
    /// Differences of the top-level members: metadata and format numbers.
    pub members: Vec<MemberDifference>,
}

/// The differences of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellDifference {
    /// Its index in the old notebook, if present there.
    pub old: Option<usize>,
    /// Its index in the new notebook, if present there.
    pub new: Option<usize>,
    /// Its id; the new one if the id changed.
    pub id: Option<String>,
    /// Its kind.
    pub kind: CellKind,
    /// The previous kind, if it changed.
    pub old_kind: Option<CellKind>,
    /// Whether its order relative to the other cells changed.
    pub moved: bool,
    /// The source difference. For a cell that only one notebook has, the whole source.
    pub source: Vec<Hunk>,
    /// The output differences, summarised.
    pub outputs: Vec<OutputDifference>,
    /// The difference of the outputs' text.
    pub output_text: Vec<Hunk>,
    /// The old and new execution counts, if they differ.
    pub execution_counts: Option<[Option<u64>; 2]>,
    /// Differences of all other members.
    pub members: Vec<MemberDifference>,
}

/// Which parts of a notebook are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// Kinds, sources and order of the cells.
    Sources,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.cells.is_empty() && self.members.is_empty()
    }
}

/// Compares two notebooks.
pub fn compare(old: &Notebook, new: &Notebook, scope: Scope) -> Comparison {
    if old.bytes() == new.bytes() {
        return Comparison::default();
    }
    let matching = CellMatching::heuristic(old, new);
    let moved = matching.moved_cells();
    let mut removed_cells = removed_after(&matching);
    let mut cells: Vec<CellDifference> = Vec::new();
    let removed = |cells: Vec<usize>| {
        cells
            .into_iter()
            .map(|cell| unmatched_cell(old, cell, true))
    };
    cells.extend(removed(removed_cells.remove(0)));
    for (index, after) in removed_cells.into_iter().enumerate() {
        match matching.to_base[index] {
            Some(origin) => {
                cells.extend(compare_cell(old, origin, new, index, moved[index], scope));
            }
            None => cells.push(unmatched_cell(new, index, false)),
        }
        cells.extend(removed(after));
    }
    let members = match scope {
        Scope::All => compare_top_members(old, new),
        Scope::Sources => Vec::new(),
    };
    Comparison { cells, members }
}

/// Indexes of the removed cells: those before the first cell of the new notebook, then those
/// after each of its cells.
fn removed_after(matching: &CellMatching) -> Vec<Vec<usize>> {
    let mut removed_cells = vec![Vec::new(); matching.to_base.len() + 1];
    let mut position = 0;
    for (cell, now) in matching.to_new.iter().enumerate() {
        match now {
            Some(now) => position = now + 1,
            None => removed_cells[position].push(cell),
        }
    }
    removed_cells
}

/// The difference for a cell that only one notebook has.
fn unmatched_cell(notebook: &Notebook, cell: usize, is_old: bool) -> CellDifference {
    let text = with_final_newline(&notebook.source(cell));
    let (old, new) = if is_old {
        (text.as_str(), "")
    } else {
        ("", text.as_str())
    };
    CellDifference {
        old: is_old.then_some(cell),
        new: (!is_old).then_some(cell),
        id: notebook.id(cell).map(String::from),
        kind: notebook.kind(cell),
        old_kind: None,
        moved: false,
        source: diff::text_hunks(old, new, 0),
        outputs: Vec::new(),
        output_text: Vec::new(),
        execution_counts: None,
        members: Vec::new(),
    }
}

/// The difference of a cell that both notebooks have; `None` if it is the same.
fn compare_cell(
    old: &Notebook,
    origin: usize,
    new: &Notebook,
    index: usize,
    moved: bool,
    scope: Scope,
) -> Option<CellDifference> {
    let same_bytes = old.slice(old.cell(origin).span) == new.slice(new.cell(index).span);
    if !moved && same_bytes {
        return None;
    }
    let (old_kind, kind) = (old.kind(origin), new.kind(index));
    let mut difference = CellDifference {
        old: Some(origin),
        new: Some(index),
        id: new.id(index).or_else(|| old.id(origin)).map(String::from),
        kind,
        old_kind: (old_kind != kind).then_some(old_kind),
        moved,
        source: diff::text_hunks(
            &with_final_newline(&old.source(origin)),
            &with_final_newline(&new.source(index)),
            0,
        ),
        outputs: Vec::new(),
        output_text: Vec::new(),
        execution_counts: None,
        members: Vec::new(),
    };
    if scope == Scope::All {
        difference.outputs = outputs::compare(old, origin, new, index);
        if !difference.outputs.is_empty() {
            let texts = [full_text(old, origin), full_text(new, index)];
            difference.output_text = diff::text_hunks(
                &with_final_newline(&texts[0]),
                &with_final_newline(&texts[1]),
                0,
            );
        }
        let counts = [execution_count(old, origin), execution_count(new, index)];
        difference.execution_counts = (counts[0] != counts[1]).then_some(counts);
        difference.members = compare_cell_members(old, origin, new, index);
    }
    let is_same = !moved
        && difference.old_kind.is_none()
        && difference.source.is_empty()
        && difference.outputs.is_empty()
        && difference.execution_counts.is_none()
        && difference.members.is_empty();
    (!is_same).then_some(difference)
}

/// Differences of the members that `CellDifference` has no field for.
fn compare_cell_members(
    old: &Notebook,
    origin: usize,
    new: &Notebook,
    index: usize,
) -> Vec<MemberDifference> {
    let (Some(one), Some(two)) = (
        Object::parse(old.bytes(), old.cell(origin).span),
        Object::parse(new.bytes(), new.cell(index).span),
    ) else {
        return Vec::new();
    };
    members::compare(
        &one,
        &two,
        &["cell_type", "execution_count", "outputs", "source"],
    )
}

fn compare_top_members(old: &Notebook, new: &Notebook) -> Vec<MemberDifference> {
    let (Some(one), Some(two)) = (
        Object::parse(old.bytes(), old.spans().top),
        Object::parse(new.bytes(), new.spans().top),
    ) else {
        return Vec::new();
    };
    members::compare(&one, &two, &["cells"])
}

/// The text as printed: with a newline after the last line.
fn with_final_newline(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{text}\n")
}
