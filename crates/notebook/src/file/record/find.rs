//! Where the cells that ran are in a file that somebody else may have changed.

use std::collections::HashMap;

use similar::DiffOp;

use super::{Conflict, Entry};
use crate::cell::CellKind;
use crate::document::Cells;
use crate::file::survey::Survey;

/// Where the cells are that ran, and which cannot be given anything.
pub(super) fn find(
    ran: &Survey,
    entries: &[Entry],
    now: &Survey,
) -> (Vec<Option<usize>>, Vec<(usize, Conflict)>) {
    let matched = matched(ran, now);
    let mut conflicts = Vec::new();
    let mut places = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let place = matched.get(entry.cell).copied().flatten();
        let conflict = match place {
            None => Some(Conflict::Gone),
            Some(place) => {
                let same = now.kind(place) == CellKind::Code
                    && now.source(place) == ran.source(entry.cell);
                (!same).then_some(Conflict::Changed)
            }
        };
        conflicts.extend(conflict.map(|conflict| (at, conflict)));
        places.push(place.filter(|_| conflict.is_none()));
    }
    (places, conflicts)
}

/// For each cell of a notebook, which it is in a later state of it: by id where ids are unique, and of the
/// rest by equal sources in equal order. Tools that know of no ids take them away, and others give new ones.
fn matched(ran: &Survey, now: &Survey) -> Vec<Option<usize>> {
    if ran.revision() == now.revision() {
        return (0..ran.count()).map(Some).collect();
    }
    let mut matched = vec![None; ran.count()];
    let mut taken = vec![false; now.count()];
    let (old_ids, new_ids) = (unique_ids(ran), unique_ids(now));
    for (id, old) in &old_ids {
        if let Some(new) = new_ids.get(id) {
            matched[*old] = Some(*new);
            taken[*new] = true;
        }
    }
    let old: Vec<usize> = (0..ran.count())
        .filter(|&index| matched[index].is_none())
        .collect();
    let new: Vec<usize> = (0..now.count()).filter(|&index| !taken[index]).collect();
    let key =
        |cells: &Survey, index: usize| format!("{} {}", cells.kind(index), cells.source(index));
    let old_keys: Vec<String> = old.iter().map(|&index| key(ran, index)).collect();
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
            // One for one: changed where it stands, unless its id says that it is another.
            if equal || !(named(&old_ids, ran, from) || named(&new_ids, now, to)) {
                matched[from] = Some(to);
            }
        }
    }
    matched
}

fn unique_ids(cells: &Survey) -> HashMap<String, usize> {
    let mut seen: HashMap<String, Option<usize>> = HashMap::new();
    for index in 0..cells.count() {
        if let Some(id) = cells.id(index) {
            seen.entry(id.into_owned())
                .and_modify(|place| *place = None)
                .or_insert(Some(index));
        }
    }
    seen.into_iter()
        .filter_map(|(id, index)| Some((id, index?)))
        .collect()
}
