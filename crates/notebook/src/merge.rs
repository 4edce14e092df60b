//! Merges an edit made for an older revision into the current file.
//!
//! The merge succeeds if the cells that the edit changes are unchanged in the file. Nothing is
//! guessed: anything else is a conflict, and the caller reads again.

use std::collections::HashMap;

use crate::baseline::Baseline;
use crate::cell_matching::CellMatching;
use crate::document::{Cells, Notebook};
use crate::edit::Draft;
use crate::json::object;
use crate::metadata::MetadataChange;
use crate::plan::{OutputAction, Plan, Slot};

/// Merges `draft`, made for `base`, into `now`. The error is the reason of the conflict.
pub(crate) fn merge_draft(base: &Baseline, draft: Draft, now: &Notebook) -> Result<Draft, String> {
    let matching = CellMatching::strict(base, now);
    if base.count() > 0 && matching.certain == 0 {
        return Err("it shares no cell with that revision".to_owned());
    }
    let ours = map_to_current(base, draft, now, &matching)?;
    let they_kept_order = matching.to_base.iter().flatten().is_sorted();
    let our_origins = ours.slots.iter().filter_map(|slot| slot.base);
    let we_kept_order = our_origins.is_sorted();
    let merged = if they_kept_order {
        in_our_order(&ours, &matching, now)
    } else if we_kept_order {
        in_their_order(&ours, &matching)
    } else {
        return Err("cells were moved both in the file and by this edit".to_owned());
    };
    let focus = merged
        .iter()
        .position(|&index| Some(index) == ours.focus.map(MergedItem::Ours));
    let slots = merged
        .into_iter()
        .map(|item| match item {
            MergedItem::Ours(index) => ours.slots[index].slot.clone(),
            MergedItem::Theirs(index) => Slot::keep(now, index),
        })
        .collect();
    Ok(Draft {
        plan: Plan {
            slots,
            metadata: ours.metadata,
        },
        focus,
        removed: ours.removed.and_then(|cell| matching.to_new[cell]),
        anchor: None,
        notices: ours.notices,
    })
}

/// Our edit in terms of the current cells.
struct OurEdit {
    slots: Vec<OurSlot>,
    metadata: Vec<MetadataChange>,
    focus: Option<usize>,
    removed: Option<usize>,
    notices: Vec<crate::Notice>,
}

struct OurSlot {
    /// Index of the cell in the base.
    base: Option<usize>,
    /// The slot; `origin` is an index in the current notebook.
    slot: Slot,
}

/// A cell of the result: one of our slots, or a cell that only the file has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergedItem {
    Ours(usize),
    Theirs(usize),
}

/// Checks every cell that the edit changes, and drops unchanged cells that the file no longer
/// has.
fn map_to_current(
    base: &Baseline,
    draft: Draft,
    now: &Notebook,
    matching: &CellMatching,
) -> Result<OurEdit, String> {
    check_positions(&draft, matching)?;
    if !draft.plan.metadata.is_empty() {
        return Err("the metadata of the notebook may have changed in the file".to_owned());
    }
    let mut focus = None;
    let mut used = vec![false; base.count()];
    let mut slots = Vec::new();
    for (index, slot) in draft.plan.slots.into_iter().enumerate() {
        let Some(origin) = slot.origin else {
            if draft.focus == Some(index) {
                focus = Some(slots.len());
            }
            slots.push(OurSlot { base: None, slot });
            continue;
        };
        used[origin] = true;
        let kept = slot.is_kept(base);
        let Some(current) = matching.to_new[origin] else {
            if kept {
                continue;
            }
            return Err(format!("cell {origin} was changed or removed in the file"));
        };
        let mut slot = slot;
        slot.origin = Some(current);
        if kept {
            slot = Slot::keep(now, current);
        } else {
            check_cell(base, origin, &mut slot, now, current)?;
        }
        if draft.focus == Some(index) {
            focus = Some(slots.len());
        }
        slots.push(OurSlot {
            base: Some(origin),
            slot,
        });
    }
    let has_new_without_id = (0..now.count())
        .any(|current| matching.to_base[current].is_none() && now.id(current).is_none());
    for origin in (0..base.count()).filter(|&origin| !used[origin]) {
        let unchanged = match matching.to_new[origin] {
            Some(current) => is_unchanged(base, origin, now, current),
            // The file no longer has the cell either. But if it has new cells without ids, one of
            // them may be this cell.
            None => base.id(origin).is_some() || !has_new_without_id,
        };
        if !unchanged {
            return Err(format!(
                "cell {origin}, which this edit deletes, was changed in the file"
            ));
        }
    }
    Ok(OurEdit {
        slots,
        metadata: draft.plan.metadata,
        focus,
        removed: draft.removed,
        notices: draft.notices,
    })
}

/// Cells that the edit refers to must still exist: the edited cell, the cell next to an insert
/// position, and the neighbours of new cells.
fn check_positions(draft: &Draft, matching: &CellMatching) -> Result<(), String> {
    let origins: Vec<Option<usize>> = draft.plan.slots.iter().map(|slot| slot.origin).collect();
    let is_missing = |origin: usize| matching.to_new[origin].is_none();
    let focus = draft.focus.and_then(|focus| origins[focus]);
    if let Some(origin) = focus
        .into_iter()
        .chain(draft.anchor)
        .find(|&origin| is_missing(origin))
    {
        return Err(format!("cell {origin} was changed or removed in the file"));
    }
    for (index, _) in origins
        .iter()
        .enumerate()
        .filter(|(_, origin)| origin.is_none())
    {
        let before = origins[..index].iter().rev().find_map(|origin| *origin);
        let after = origins[index..].iter().find_map(|origin| *origin);
        let neighbours: Vec<usize> = before.into_iter().chain(after).collect();
        if !neighbours.is_empty() && neighbours.iter().all(|&origin| is_missing(origin)) {
            return Err("the cells around a new cell are no longer in the file".to_owned());
        }
    }
    Ok(())
}

/// A cell that the edit changes must be unchanged in the file. If only its outputs changed, a new
/// source is allowed.
fn check_cell(
    base: &Baseline,
    origin: usize,
    slot: &mut Slot,
    now: &Notebook,
    current: usize,
) -> Result<(), String> {
    if slot.outputs == OutputAction::Clear && has_no_outputs(now, current) {
        slot.outputs = OutputAction::Keep;
    }
    let same = is_unchanged(base, origin, now, current);
    // Adding and removing a tag fits to every other change of the cell.
    let is_independent = slot.metadata.iter().all(MetadataChange::is_independent);
    let only_source =
        slot.kind == base.kind(origin) && slot.outputs == OutputAction::Keep && is_independent;
    if only_source && slot.source.is_none() && !slot.metadata.is_empty() {
        slot.kind = now.kind(current);
        return Ok(());
    }
    let text_same =
        base.kind(origin) == now.kind(current) && base.source(origin) == now.source(current);
    if same || (only_source && text_same) {
        return Ok(());
    }
    // Both sides made the same change.
    let source = slot
        .source
        .clone()
        .unwrap_or_else(|| base.source(origin).into_owned());
    if slot.outputs == OutputAction::Keep
        && is_independent
        && slot.kind == now.kind(current)
        && source == now.source(current)
    {
        slot.source = None;
        return Ok(());
    }
    Err(format!("cell {origin} was also changed in the file"))
}

/// Whether there is nothing to clear, because the other side already did.
fn has_no_outputs(now: &Notebook, current: usize) -> bool {
    let members = now.members(current);
    [("execution_count", "null"), ("outputs", "[]")]
        .iter()
        .all(|(name, empty)| {
            object::find_member(&members, name)
                .is_none_or(|member| now.slice(member.value) == empty.as_bytes())
        })
}

fn is_unchanged(base: &Baseline, origin: usize, now: &Notebook, current: usize) -> bool {
    base.cells[origin].hash == now.cell_hash(current)
}

/// Our order; each new cell of the file follows its predecessor there.
fn in_our_order(ours: &OurEdit, matching: &CellMatching, now: &Notebook) -> Vec<MergedItem> {
    let mut position_of: HashMap<usize, usize> = HashMap::new();
    for (index, slot) in ours.slots.iter().enumerate() {
        if let Some(origin) = slot.slot.origin {
            position_of.insert(origin, index);
        }
    }
    let mut at_start = Vec::new();
    let mut followers: HashMap<usize, Vec<MergedItem>> = HashMap::new();
    let mut anchor = None;
    for index in 0..now.count() {
        if let Some(position) = position_of.get(&index) {
            anchor = Some(*position);
        } else if matching.to_base[index].is_none() {
            match anchor {
                Some(position) => followers
                    .entry(position)
                    .or_default()
                    .push(MergedItem::Theirs(index)),
                None => at_start.push(MergedItem::Theirs(index)),
            }
        }
    }
    let mut merged = at_start;
    for index in 0..ours.slots.len() {
        merged.push(MergedItem::Ours(index));
        merged.extend(followers.remove(&index).unwrap_or_default());
    }
    merged
}

/// Their order; each of our new cells follows its predecessor in our edit.
fn in_their_order(ours: &OurEdit, matching: &CellMatching) -> Vec<MergedItem> {
    let mut at_start = Vec::new();
    let mut followers: HashMap<usize, Vec<MergedItem>> = HashMap::new();
    let mut kept: HashMap<usize, usize> = HashMap::new();
    let mut anchor = None;
    for (index, slot) in ours.slots.iter().enumerate() {
        if let Some(origin) = slot.slot.origin {
            kept.insert(origin, index);
            anchor = Some(origin);
        } else {
            match anchor {
                Some(origin) => followers
                    .entry(origin)
                    .or_default()
                    .push(MergedItem::Ours(index)),
                None => at_start.push(MergedItem::Ours(index)),
            }
        }
    }
    let mut merged = at_start;
    for index in 0..matching.to_base.len() {
        match (kept.get(&index), matching.to_base[index]) {
            (Some(slot), _) => merged.push(MergedItem::Ours(*slot)),
            (None, None) => merged.push(MergedItem::Theirs(index)),
            // We deleted it.
            (None, Some(_)) => {}
        }
        merged.extend(followers.remove(&index).unwrap_or_default());
    }
    merged
}
