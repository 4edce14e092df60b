//! Two notebooks side by side: what changed, cell by cell.

mod members;
mod outputs;

pub use self::members::MemberDifference;
pub use self::outputs::OutputDifference;

use crate::cell::CellKind;
use crate::diff::{self, Hunk};
use crate::document::{Cells, Notebook};
use crate::json::alter::Object;
use crate::matched::Matched;
use crate::outputs::{execution_count, whole_text};

/// What changed from one notebook to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Cells that are not the same, in the order of the new notebook; those that are gone stand behind
    /// the cell they stood behind.
    pub cells: Vec<CellDifference>,
    /// The notebook's own members: metadata and the format.
    pub members: Vec<MemberDifference>,
}

/// What changed in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellDifference {
    /// Its index in the old notebook, if it is there.
    pub old: Option<usize>,
    /// Its index in the new notebook, if it is there.
    pub new: Option<usize>,
    /// Its id; the new one, if it has another.
    pub id: Option<String>,
    /// Its kind.
    pub kind: CellKind,
    /// The kind it had, if that was another.
    pub old_kind: Option<CellKind>,
    /// Whether it stands in another order.
    pub moved: bool,
    /// How its source changed. The whole source of a cell that is only in one of them.
    pub source: Vec<Hunk>,
    /// How its outputs changed, in short.
    pub outputs: Vec<OutputDifference>,
    /// How what its outputs say changed.
    pub output_text: Vec<Hunk>,
    /// Its execution counts, if they differ.
    pub execution_counts: Option<[Option<u64>; 2]>,
    /// What else is different in it.
    pub members: Vec<MemberDifference>,
}

/// What to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// What a person writes: kinds, sources and their order.
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
    let matched = Matched::likely(old, new);
    let moved = matched.moved();
    let mut gone = gone(&matched);
    let mut cells: Vec<CellDifference> = Vec::new();
    let removed = |cells: Vec<usize>| cells.into_iter().map(|cell| one_sided(old, cell, true));
    cells.extend(removed(gone.remove(0)));
    for (index, behind) in gone.into_iter().enumerate() {
        match matched.base_of[index] {
            Some(origin) => {
                cells.extend(cell(old, origin, new, index, moved[index], scope));
            }
            None => cells.push(one_sided(new, index, false)),
        }
        cells.extend(removed(behind));
    }
    let members = match scope {
        Scope::All => top_members(old, new),
        Scope::Sources => Vec::new(),
    };
    Comparison { cells, members }
}

/// Cells of the old notebook that are gone: at the start, then behind each cell of the new one.
fn gone(matched: &Matched) -> Vec<Vec<usize>> {
    let mut gone = vec![Vec::new(); matched.base_of.len() + 1];
    let mut place = 0;
    for (cell, now) in matched.now_of.iter().enumerate() {
        match now {
            Some(now) => place = now + 1,
            None => gone[place].push(cell),
        }
    }
    gone
}

/// A cell that only one of them has.
fn one_sided(notebook: &Notebook, cell: usize, is_old: bool) -> CellDifference {
    let text = ended(&notebook.source(cell));
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
        source: diff::hunks(old, new, 0),
        outputs: Vec::new(),
        output_text: Vec::new(),
        execution_counts: None,
        members: Vec::new(),
    }
}

/// A cell that both have; `None` if it is the same.
fn cell(
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
        source: diff::hunks(&ended(&old.source(origin)), &ended(&new.source(index)), 0),
        outputs: Vec::new(),
        output_text: Vec::new(),
        execution_counts: None,
        members: Vec::new(),
    };
    if scope == Scope::All {
        difference.outputs = outputs::compare(old, origin, new, index);
        if !difference.outputs.is_empty() {
            let texts = [whole_text(old, origin), whole_text(new, index)];
            difference.output_text = diff::hunks(&ended(&texts[0]), &ended(&texts[1]), 0);
        }
        let counts = [execution_count(old, origin), execution_count(new, index)];
        difference.execution_counts = (counts[0] != counts[1]).then_some(counts);
        difference.members = cell_members(old, origin, new, index);
    }
    let is_same = !moved
        && difference.old_kind.is_none()
        && difference.source.is_empty()
        && difference.outputs.is_empty()
        && difference.execution_counts.is_none()
        && difference.members.is_empty();
    (!is_same).then_some(difference)
}

/// Members of a cell that are not told of otherwise.
fn cell_members(
    old: &Notebook,
    origin: usize,
    new: &Notebook,
    index: usize,
) -> Vec<MemberDifference> {
    let (Some(one), Some(two)) = (
        Object::at(old.bytes(), old.cell(origin).span),
        Object::at(new.bytes(), new.cell(index).span),
    ) else {
        return Vec::new();
    };
    members::compare(
        &one,
        &two,
        &["cell_type", "execution_count", "outputs", "source"],
    )
}

fn top_members(old: &Notebook, new: &Notebook) -> Vec<MemberDifference> {
    let (Some(one), Some(two)) = (
        Object::at(old.bytes(), old.frame().top),
        Object::at(new.bytes(), new.frame().top),
    ) else {
        return Vec::new();
    };
    members::compare(&one, &two, &["cells"])
}

/// Text as it is printed: lines that all end.
fn ended(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{text}\n")
}
