//! Locates executed cells in a file that another program may have changed.

use std::collections::HashMap;

use similar::DiffOp;

use super::{CellConflict, CellUpdates};
use crate::cell::CellKind;
use crate::cell_matching::unique_ids;
use crate::document::Cells;
use crate::file::survey::Survey;

/// The current index of each updated cell, and the updates that cannot be written.
pub(super) fn locate_cells(
    base: &dyn Cells,
    updates: &dyn CellUpdates,
    now: &Survey,
) -> (Vec<Option<usize>>, Vec<(usize, CellConflict)>) {
    let matching = match_cells(base, now);
    let mut conflicts = Vec::new();
    let mut indexes = Vec::with_capacity(updates.count());
    for at in 0..updates.count() {
        let cell = updates.cell(at);
        let index = matching.index(cell);
        let conflict = match index {
            None => Some(CellConflict::Missing),
            Some(index) => {
                let same =
                    now.kind(index) == CellKind::Code && now.source(index) == base.source(cell);
                (!same).then_some(CellConflict::Changed)
            }
        };
        conflicts.extend(conflict.map(|conflict| (at, conflict)));
        indexes.push(index.filter(|_| conflict.is_none()));
    }
    (indexes, conflicts)
}

/// For each cell of one notebook, its index in another.
enum CellMatching {
    /// Both have the same cells.
    Same {
        count: usize,
    },
    Indexes(Vec<Option<usize>>),
}

impl CellMatching {
    fn index(&self, cell: usize) -> Option<usize> {
        match self {
            Self::Same { count } => (cell < *count).then_some(cell),
            Self::Indexes(indexes) => indexes.get(cell).copied().flatten(),
        }
    }
}

/// Whether two notebooks differ only in outputs and metadata, as before and after a save.
fn have_same_cells(base: &dyn Cells, now: &Survey) -> bool {
    base.count() == now.count()
        && (0..base.count()).all(|index| {
            base.kind(index) == now.kind(index)
                && base.id(index) == now.id(index)
                && base.source(index) == now.source(index)
        })
}

/// For each cell of `base`, its index in `now`: by id if ids are unique, otherwise by equal
/// sources in equal order. Some tools remove ids, others assign new ones.
fn match_cells(base: &dyn Cells, now: &Survey) -> CellMatching {
    if have_same_cells(base, now) {
        return CellMatching::Same {
            count: base.count(),
        };
    }
    let mut matching = vec![None; base.count()];
    let mut taken = vec![false; now.count()];
    let (old_ids, new_ids) = (unique_ids(base), unique_ids(now));
    for (id, old) in &old_ids {
        if let Some(new) = new_ids.get(id) {
            matching[*old] = Some(*new);
            taken[*new] = true;
        }
    }
    let old: Vec<usize> = (0..base.count())
        .filter(|&index| matching[index].is_none())
        .collect();
    let new: Vec<usize> = (0..now.count()).filter(|&index| !taken[index]).collect();
    let key =
        |cells: &dyn Cells, index: usize| format!("{} {}", cells.kind(index), cells.source(index));
    let old_keys: Vec<String> = old.iter().map(|&index| key(base, index)).collect();
    let new_keys: Vec<String> = new.iter().map(|&index| key(now, index)).collect();
    let named = |ids: &HashMap<String, usize>, cells: &dyn Cells, index: usize| {
        let id = cells.id(index);
        id.is_some_and(|id| ids.contains_key(id.as_ref()))
    };
    let algorithm = similar::Algorithm::Myers;
    for op in similar::capture_diff_slices(algorithm, &old_keys, &new_keys) {
        if op.old_range().len() != op.new_range().len() {
            continue;
        }
        let equal = matches!(op, DiffOp::Equal { .. });
        for (from, to) in op.old_range().zip(op.new_range()) {
            let (from, to) = (old[from], new[to]);
            // One for one: changed in place, unless an id shows that it is another cell.
            if equal || !(named(&old_ids, base, from) || named(&new_ids, now, to)) {
                matching[from] = Some(to);
            }
        }
    }
    CellMatching::Indexes(matching)
}
