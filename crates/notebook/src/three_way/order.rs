//! Which cells there are in the end, and in which order.

use std::collections::HashMap;

use super::Side;
use super::cell::{Cell, is_touched};
use crate::document::{Cells, Notebook};
use crate::lines::{Change, changes};
use crate::matched::{Matched, unique};

/// A cell of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// One of ours, and what it was and is elsewhere.
    Ours {
        base: Option<usize>,
        ours: usize,
        theirs: Option<usize>,
    },
    /// One that only they have, or have changed.
    Theirs(usize),
}

/// A cell of the result, and whether there is something wrong with its being there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) item: Item,
    /// Who deleted the cell, which the other side has changed.
    pub(super) deleted_by: Option<Side>,
    /// Whether both moved it, to different places.
    pub(super) torn: bool,
}

/// Puts the cells of both sides in order: ours, with what they added or moved behind the cell that it
/// stands behind there, and behind what we added at the same place.
pub(super) fn arrange(base: &Notebook, ours: &Notebook, theirs: &Notebook) -> Vec<Placed> {
    let sides = Sides {
        base,
        ours,
        theirs,
        our: Matched::likely(base, ours),
        their: Matched::likely(base, theirs),
    };
    let twins = sides.twins();
    let mut placed: Vec<Option<Placed>> = (0..ours.count())
        .map(|cell| sides.our_cell(cell, twins.our_twin.get(&cell).copied()))
        .collect();
    let their_nodes: Vec<Option<usize>> = (0..theirs.count())
        .map(|cell| match twins.their_twin.get(&cell) {
            Some(twin) => Some(*twin),
            None => sides.their_cell(cell, &mut placed),
        })
        .collect();
    sides.mark_torn(&mut placed);
    let mut chain = Chain::new(placed.len());
    let (our_moves, their_moves) = (sides.our.moved(), sides.their.moved());
    for cell in 0..ours.count() {
        let moved_by_them = placed[cell].is_some_and(|placed| match placed.item {
            Item::Ours {
                theirs: Some(their),
                ..
            } => their_moves[their] && !our_moves[cell],
            _ => false,
        });
        if placed[cell].is_some() && !moved_by_them {
            chain.push(cell);
        }
    }
    let is_our_own = |node: usize| {
        placed[node].is_some_and(|placed| {
            let Item::Ours { base, theirs, .. } = placed.item else {
                return false;
            };
            base.is_none() && theirs.is_none()
        })
    };
    // New cells go along with the cell before them; moved ones stay where it was, if we moved it.
    let (mut anchor, mut steady) = (None, None);
    for node in their_nodes.into_iter().flatten() {
        let is_ours = node < ours.count();
        if !chain.has(node) {
            let mut behind = if is_ours { steady } else { anchor };
            while let Some(next) = chain.next(behind).filter(|&next| is_our_own(next)) {
                behind = Some(next);
            }
            chain.insert(behind, node);
        }
        anchor = Some(node);
        if !is_ours || !our_moves[node] {
            steady = anchor;
        }
    }
    chain.nodes().filter_map(|node| placed[node]).collect()
}

struct Sides<'n> {
    base: &'n Notebook,
    ours: &'n Notebook,
    theirs: &'n Notebook,
    our: Matched,
    their: Matched,
}

/// Cells that both added.
#[derive(Default)]
struct Twins {
    our_twin: HashMap<usize, usize>,
    their_twin: HashMap<usize, usize>,
}

impl Sides<'_> {
    /// What becomes of one of our cells; `None` if they deleted it.
    fn our_cell(&self, cell: usize, twin: Option<usize>) -> Option<Placed> {
        let base = self.our.base_of[cell];
        let theirs = match base {
            Some(base) => self.their.now_of[base],
            None => twin,
        };
        let is_deleted = base.is_some() && theirs.is_none();
        if is_deleted && !self.is_touched(base, self.ours, cell) {
            return None;
        }
        Some(Placed {
            item: Item::Ours {
                base,
                ours: cell,
                theirs,
            },
            deleted_by: is_deleted.then_some(Side::Theirs),
            torn: false,
        })
    }

    fn is_touched(&self, base: Option<usize>, notebook: &Notebook, index: usize) -> bool {
        base.is_some_and(|base| {
            let old = Cell {
                notebook: self.base,
                index: base,
            };
            is_touched(old, Cell { notebook, index })
        })
    }

    /// The place in `placed` of one of their cells; `None` if we deleted it.
    fn their_cell(&self, cell: usize, placed: &mut Vec<Option<Placed>>) -> Option<usize> {
        let base = self.their.base_of[cell];
        if let Some(ours) = base.and_then(|base| self.our.now_of[base]) {
            return Some(ours);
        }
        if base.is_some() && !self.is_touched(base, self.theirs, cell) {
            return None;
        }
        placed.push(Some(Placed {
            item: Item::Theirs(cell),
            deleted_by: base.map(|_| Side::Ours),
            torn: false,
        }));
        Some(placed.len() - 1)
    }

    /// Cells that both added: those with the same id, and equal ones at the same place.
    fn twins(&self) -> Twins {
        let mut twins = Twins::default();
        let our_gaps = gaps(&self.our);
        let their_gaps = gaps(&self.their);
        let mut their_ids = ids_of(self.theirs, their_gaps.values().flatten());
        for (id, cell) in ids_of(self.ours, our_gaps.values().flatten()) {
            if let Some(twin) = their_ids.remove(&id)
                && self.ours.kind(cell) == self.theirs.kind(twin)
            {
                twins.add(cell, twin);
            }
        }
        for (place, ours) in &our_gaps {
            if let Some(theirs) = their_gaps.get(place) {
                self.equal_twins(ours, theirs, &mut twins);
            }
        }
        twins
    }

    fn equal_twins(&self, ours: &[usize], theirs: &[usize], twins: &mut Twins) {
        let free = |cells: &[usize], taken: &HashMap<usize, usize>| -> Vec<usize> {
            let cells = cells.iter().copied();
            cells.filter(|cell| !taken.contains_key(cell)).collect()
        };
        let ours = free(ours, &twins.our_twin);
        let theirs = free(theirs, &twins.their_twin);
        let key = |notebook: &Notebook, cell: usize| {
            let id = notebook.id(cell).unwrap_or_default();
            format!("{} {id} {}", notebook.kind(cell), notebook.source(cell))
        };
        let our_keys: Vec<String> = ours.iter().map(|&cell| key(self.ours, cell)).collect();
        let their_keys: Vec<String> = theirs.iter().map(|&cell| key(self.theirs, cell)).collect();
        let our_keys: Vec<&str> = our_keys.iter().map(String::as_str).collect();
        let their_keys: Vec<&str> = their_keys.iter().map(String::as_str).collect();
        let mut place = 0;
        for change in changes(&our_keys, &their_keys) {
            match change {
                Change::Keep(range) => {
                    for index in range {
                        twins.add(ours[index], theirs[place]);
                        place += 1;
                    }
                }
                Change::Replace { new, .. } => place = new.end,
            }
        }
    }

    /// Marks cells that both moved, unless they stand next to the same cell now.
    fn mark_torn(&self, placed: &mut [Option<Placed>]) {
        let (our_moves, their_moves) = (self.our.moved(), self.their.moved());
        if !our_moves.contains(&true) || !their_moves.contains(&true) {
            return;
        }
        let our_order = self.common(&self.our, &self.their);
        let their_order = self.common(&self.their, &self.our);
        let their_place: HashMap<usize, usize> = places(&their_order);
        for (at, &base) in our_order.iter().enumerate() {
            let (Some(ours), Some(theirs)) = (self.our.now_of[base], self.their.now_of[base])
            else {
                continue;
            };
            if !our_moves[ours] || !their_moves[theirs] {
                continue;
            }
            let there = their_place[&base];
            let before = |order: &[usize], at: usize| at.checked_sub(1).map(|at| order[at]);
            let same = before(&our_order, at) == before(&their_order, there)
                || our_order.get(at + 1) == their_order.get(there + 1);
            if let Some(placed) = &mut placed[ours] {
                placed.torn = !same;
            }
        }
    }

    /// The cells of the base that both have, in the order of one of them.
    fn common(&self, side: &Matched, other: &Matched) -> Vec<usize> {
        let cells = side.base_of.iter().flatten().copied();
        cells.filter(|&base| other.now_of[base].is_some()).collect()
    }
}

impl Twins {
    fn add(&mut self, ours: usize, theirs: usize) {
        if !self.their_twin.contains_key(&theirs) {
            self.our_twin.insert(ours, theirs);
            self.their_twin.insert(theirs, ours);
        }
    }
}

/// The ids that only one of these cells has.
fn ids_of<'c>(
    notebook: &Notebook,
    cells: impl Iterator<Item = &'c usize>,
) -> HashMap<String, usize> {
    let ids = cells.filter_map(|&cell| Some((notebook.id(cell)?.into_owned(), cell)));
    unique(ids)
}

fn places(order: &[usize]) -> HashMap<usize, usize> {
    order
        .iter()
        .enumerate()
        .map(|(at, &cell)| (cell, at))
        .collect()
}

/// New cells by the cell of the base that they stand behind.
fn gaps(matched: &Matched) -> HashMap<Option<usize>, Vec<usize>> {
    let mut gaps: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut place = None;
    for (cell, base) in matched.base_of.iter().enumerate() {
        match base {
            Some(base) => place = Some(*base),
            None => gaps.entry(place).or_default().push(cell),
        }
    }
    gaps
}

/// Nodes one behind the other, so that putting one in moves none.
struct Chain {
    first: Option<usize>,
    last: Option<usize>,
    next: Vec<Option<usize>>,
    has: Vec<bool>,
}

impl Chain {
    fn new(count: usize) -> Self {
        Self {
            first: None,
            last: None,
            next: vec![None; count],
            has: vec![false; count],
        }
    }

    fn has(&self, node: usize) -> bool {
        self.has[node]
    }

    /// What stands behind `node`, or at the start.
    fn next(&self, node: Option<usize>) -> Option<usize> {
        node.map_or(self.first, |node| self.next[node])
    }

    fn push(&mut self, node: usize) {
        self.insert(self.last, node);
    }

    fn insert(&mut self, behind: Option<usize>, node: usize) {
        let next = self.next(behind);
        match behind {
            Some(behind) => self.next[behind] = Some(node),
            None => self.first = Some(node),
        }
        self.next[node] = next;
        self.has[node] = true;
        if next.is_none() {
            self.last = Some(node);
        }
    }

    fn nodes(&self) -> impl Iterator<Item = usize> {
        std::iter::successors(self.first, |&node| self.next[node])
    }
}
