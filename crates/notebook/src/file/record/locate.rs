//! Locates executed cells in a file that another program may have changed.

use std::collections::HashMap;

use similar::DiffOp;

use super::{CellConflict, CellUpdate};
use crate::cell::CellKind;
use crate::cell_matching::unique_ids;
use crate::document::Cells;
use crate::file::survey::Survey;

/// The current index of each updated cell, and the updates that cannot be written.
pub(super) fn locate_cells(
    base: &Survey,
    updates: &[CellUpdate],
    now: &Survey,
) -> (Vec<Option<usize>>, Vec<(usize, CellConflict)>) {
    let matching = match_cells(base, now);
    let mut conflicts = Vec::new();
    let mut indexes = Vec::with_capacity(updates.len());
    for (at, update) in updates.iter().enumerate() {
        let index = matching.get(update.cell).copied().flatten();
        let conflict = match index {
            None => Some(CellConflict::Missing),
            Some(index) => {
                let same = now.kind(index) == CellKind::Code
                    && now.source(index) == base.source(update.cell);
                (!same).then_some(CellConflict::Changed)
            }
        };
        conflicts.extend(conflict.map(|conflict| (at, conflict)));
        indexes.push(index.filter(|_| conflict.is_none()));
    }
    (indexes, conflicts)
}

/// For each cell of `base`, its index in `now`: by id if ids are unique, otherwise by equal
/// sources in equal order. Some tools remove ids, others assign new ones.
fn match_cells(base: &Survey, now: &Survey) -> Vec<Option<usize>> {
    if base.revision() == now.revision() {
        return (0..base.count()).map(Some).collect();
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
        |cells: &Survey, index: usize| format!("{} {}", cells.kind(index), cells.source(index));
    let old_keys: Vec<String> = old.iter().map(|&index| key(base, index)).collect();
    let new_keys: Vec<String> = new.iter().map(|&index| key(now, index)).collect();
    let named = |ids: &HashMap<String, usize>, cells: &Survey, index: usize| {
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
    matching
}
