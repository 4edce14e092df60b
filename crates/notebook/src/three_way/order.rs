//! Decides which cells the merged notebook has, and in which order.

use std::collections::HashMap;

use super::Side;
use super::cell::{CellRef, is_changed_by_user};
use crate::cell_matching::{CellMatching, unique_names};
use crate::document::{Cells, Notebook};
use crate::lines::{LineChange, diff_lines};

/// Where a cell of the result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellOrigin {
    /// One of our cells, with its indexes in base and theirs.
    Ours {
        base: Option<usize>,
        ours: usize,
        theirs: Option<usize>,
    },
    /// A cell that only they have, or that only they changed.
    Theirs(usize),
}

/// A cell of the result, and whether its presence or position is a conflict.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedCell {
    pub(super) origin: CellOrigin,
    /// The side that deleted the cell, if the other side changed it.
    pub(super) deleted_by: Option<Side>,
    /// Whether both sides moved it to different positions.
    pub(super) moved_by_both: bool,
}

/// Orders the cells of both sides. Our order is kept. A cell that they added or moved follows its
/// predecessor in their notebook, after cells that we added at the same position.
pub(super) fn order_cells(base: &Notebook, ours: &Notebook, theirs: &Notebook) -> Vec<PlacedCell> {
    let sides = Sides {
        base,
        ours,
        theirs,
        our_matching: CellMatching::heuristic(base, ours),
        their_matching: CellMatching::heuristic(base, theirs),
    };
    let duplicates = sides.duplicate_inserts();
    let mut placed: Vec<Option<PlacedCell>> = (0..ours.count())
        .map(|cell| sides.our_cell(cell, duplicates.by_ours.get(&cell).copied()))
        .collect();
    let their_nodes: Vec<Option<usize>> = (0..theirs.count())
        .map(|cell| match duplicates.by_theirs.get(&cell) {
            Some(duplicate) => Some(*duplicate),
            None => sides.their_cell(cell, &mut placed),
        })
        .collect();
    sides.mark_moved_by_both(&mut placed);
    let mut linked = LinkedOrder::new(placed.len());
    let (our_moves, their_moves) = (
        sides.our_matching.moved_cells(),
        sides.their_matching.moved_cells(),
    );
    for cell in 0..ours.count() {
        let moved_by_them = placed[cell].is_some_and(|placed| match placed.origin {
            CellOrigin::Ours {
                theirs: Some(their),
                ..
            } => their_moves[their] && !our_moves[cell],
            _ => false,
        });
        if placed[cell].is_some() && !moved_by_them {
            linked.push(cell);
        }
    }
    let is_our_insert = |node: usize| {
        placed[node].is_some_and(|placed| {
            let CellOrigin::Ours { base, theirs, .. } = placed.origin else {
                return false;
            };
            base.is_none() && theirs.is_none()
        })
    };
    // Inserted cells follow their predecessor even if we moved it. Moved cells keep to
    // predecessors that we did not move.
    let (mut anchor, mut unmoved_anchor) = (None, None);
    for node in their_nodes.into_iter().flatten() {
        let is_ours = node < ours.count();
        if !linked.has(node) {
            let mut predecessor = if is_ours { unmoved_anchor } else { anchor };
            while let Some(next) = linked.next(predecessor).filter(|&next| is_our_insert(next)) {
                predecessor = Some(next);
            }
            linked.insert(predecessor, node);
        }
        anchor = Some(node);
        if !is_ours || !our_moves[node] {
            unmoved_anchor = anchor;
        }
    }
    linked.nodes().filter_map(|node| placed[node]).collect()
}

struct Sides<'n> {
    base: &'n Notebook,
    ours: &'n Notebook,
    theirs: &'n Notebook,
    our_matching: CellMatching,
    their_matching: CellMatching,
}

/// Cells that both sides added, matched by index.
#[derive(Default)]
struct DuplicateInserts {
    by_ours: HashMap<usize, usize>,
    by_theirs: HashMap<usize, usize>,
}

impl Sides<'_> {
    /// Our cell in the result; `None` if they deleted it.
    fn our_cell(&self, cell: usize, duplicate: Option<usize>) -> Option<PlacedCell> {
        let base = self.our_matching.to_base[cell];
        let theirs = match base {
            Some(base) => self.their_matching.to_new[base],
            None => duplicate,
        };
        let is_deleted = base.is_some() && theirs.is_none();
        if is_deleted && !self.is_touched(base, self.ours, cell) {
            return None;
        }
        Some(PlacedCell {
            origin: CellOrigin::Ours {
                base,
                ours: cell,
                theirs,
            },
            deleted_by: is_deleted.then_some(Side::Theirs),
            moved_by_both: false,
        })
    }

    fn is_touched(&self, base: Option<usize>, notebook: &Notebook, index: usize) -> bool {
        base.is_some_and(|base| {
            let old = CellRef {
                notebook: self.base,
                index: base,
            };
            is_changed_by_user(old, CellRef { notebook, index })
        })
    }

    /// The index in `placed` of one of their cells; `None` if we deleted it.
    fn their_cell(&self, cell: usize, placed: &mut Vec<Option<PlacedCell>>) -> Option<usize> {
        let base = self.their_matching.to_base[cell];
        if let Some(ours) = base.and_then(|base| self.our_matching.to_new[base]) {
            return Some(ours);
        }
        if base.is_some() && !self.is_touched(base, self.theirs, cell) {
            return None;
        }
        placed.push(Some(PlacedCell {
            origin: CellOrigin::Theirs(cell),
            deleted_by: base.map(|_| Side::Ours),
            moved_by_both: false,
        }));
        Some(placed.len() - 1)
    }

    /// Matches cells that both sides added: those with the same id, and equal ones at the same
    /// position.
    fn duplicate_inserts(&self) -> DuplicateInserts {
        let mut duplicates = DuplicateInserts::default();
        let our_gaps = inserted_after(&self.our_matching);
        let their_gaps = inserted_after(&self.their_matching);
        let mut their_ids = ids_of(self.theirs, their_gaps.values().flatten());
        for (id, cell) in ids_of(self.ours, our_gaps.values().flatten()) {
            if let Some(duplicate) = their_ids.remove(&id)
                && self.ours.kind(cell) == self.theirs.kind(duplicate)
            {
                duplicates.add(cell, duplicate);
            }
        }
        for (position, ours) in &our_gaps {
            if let Some(theirs) = their_gaps.get(position) {
                self.equal_inserts(ours, theirs, &mut duplicates);
            }
        }
        duplicates
    }

    fn equal_inserts(&self, ours: &[usize], theirs: &[usize], duplicates: &mut DuplicateInserts) {
        let free = |cells: &[usize], taken: &HashMap<usize, usize>| -> Vec<usize> {
            let cells = cells.iter().copied();
            cells.filter(|cell| !taken.contains_key(cell)).collect()
        };
        let ours = free(ours, &duplicates.by_ours);
        let theirs = free(theirs, &duplicates.by_theirs);
        let key = |notebook: &Notebook, cell: usize| {
            let id = notebook.id(cell).unwrap_or_default();
            format!("{} {id} {}", notebook.kind(cell), notebook.source(cell))
        };
        let our_keys: Vec<String> = ours.iter().map(|&cell| key(self.ours, cell)).collect();
        let their_keys: Vec<String> = theirs.iter().map(|&cell| key(self.theirs, cell)).collect();
        let our_keys: Vec<&str> = our_keys.iter().map(String::as_str).collect();
        let their_keys: Vec<&str> = their_keys.iter().map(String::as_str).collect();
        let mut position = 0;
        for change in diff_lines(&our_keys, &their_keys) {
            match change {
                LineChange::Keep(range) => {
                    for index in range {
                        duplicates.add(ours[index], theirs[position]);
                        position += 1;
                    }
                }
                LineChange::Replace { new, .. } => position = new.end,
            }
        }
    }

    /// Marks cells that both sides moved, unless they have a common neighbour now.
    fn mark_moved_by_both(&self, placed: &mut [Option<PlacedCell>]) {
        let (our_moves, their_moves) = (
            self.our_matching.moved_cells(),
            self.their_matching.moved_cells(),
        );
        if !our_moves.contains(&true) || !their_moves.contains(&true) {
            return;
        }
        let our_order = self.common_cells(&self.our_matching, &self.their_matching);
        let their_order = self.common_cells(&self.their_matching, &self.our_matching);
        let their_position: HashMap<usize, usize> = position_by_cell(&their_order);
        for (at, &base) in our_order.iter().enumerate() {
            let (Some(ours), Some(theirs)) = (
                self.our_matching.to_new[base],
                self.their_matching.to_new[base],
            ) else {
                continue;
            };
            if !our_moves[ours] || !their_moves[theirs] {
                continue;
            }
            let their_index = their_position[&base];
            let before = |order: &[usize], at: usize| at.checked_sub(1).map(|at| order[at]);
            let same = before(&our_order, at) == before(&their_order, their_index)
                || our_order.get(at + 1) == their_order.get(their_index + 1);
            if let Some(placed) = &mut placed[ours] {
                placed.moved_by_both = !same;
            }
        }
    }

    /// The base cells that both sides have, in the order of `side`.
    fn common_cells(&self, side: &CellMatching, other: &CellMatching) -> Vec<usize> {
        let cells = side.to_base.iter().flatten().copied();
        cells.filter(|&base| other.to_new[base].is_some()).collect()
    }
}

impl DuplicateInserts {
    fn add(&mut self, ours: usize, theirs: usize) {
        if !self.by_theirs.contains_key(&theirs) {
            self.by_ours.insert(ours, theirs);
            self.by_theirs.insert(theirs, ours);
        }
    }
}

/// The ids that only one of these cells has.
fn ids_of<'c>(
    notebook: &Notebook,
    cells: impl Iterator<Item = &'c usize>,
) -> HashMap<String, usize> {
    let ids = cells.filter_map(|&cell| Some((notebook.id(cell)?.into_owned(), cell)));
    unique_names(ids)
}

fn position_by_cell(order: &[usize]) -> HashMap<usize, usize> {
    order
        .iter()
        .enumerate()
        .map(|(at, &cell)| (cell, at))
        .collect()
}

/// Inserted cells, by the base cell that they follow.
fn inserted_after(matching: &CellMatching) -> HashMap<Option<usize>, Vec<usize>> {
    let mut gaps: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut position = None;
    for (cell, base) in matching.to_base.iter().enumerate() {
        match base {
            Some(base) => position = Some(*base),
            None => gaps.entry(position).or_default().push(cell),
        }
    }
    gaps
}

/// A linked list of cells: inserting one moves no other.
struct LinkedOrder {
    first: Option<usize>,
    last: Option<usize>,
    next: Vec<Option<usize>>,
    contains: Vec<bool>,
}

impl LinkedOrder {
    fn new(count: usize) -> Self {
        Self {
            first: None,
            last: None,
            next: vec![None; count],
            contains: vec![false; count],
        }
    }

    fn has(&self, node: usize) -> bool {
        self.contains[node]
    }

    /// The successor of `node`, or the first node.
    fn next(&self, node: Option<usize>) -> Option<usize> {
        node.map_or(self.first, |node| self.next[node])
    }

    fn push(&mut self, node: usize) {
        self.insert(self.last, node);
    }

    fn insert(&mut self, predecessor: Option<usize>, node: usize) {
        let next = self.next(predecessor);
        match predecessor {
            Some(predecessor) => self.next[predecessor] = Some(node),
            None => self.first = Some(node),
        }
        self.next[node] = next;
        self.contains[node] = true;
        if next.is_none() {
            self.last = Some(node);
        }
    }

    fn nodes(&self) -> impl Iterator<Item = usize> {
        std::iter::successors(self.first, |&node| self.next[node])
    }
}
