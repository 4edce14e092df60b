//! An edit made for an older revision, carried over to the file as it is now.
//!
//! It goes through when the cells it touches are as they were. Nothing is guessed: what cannot be
//! carried over is a conflict, and the caller reads again.

use std::collections::HashMap;

use crate::baseline::Baseline;
use crate::document::{Cells, Notebook};
use crate::edit::Draft;
use crate::json::object;
use crate::matched::Matched;
use crate::plan::{Outputs, Plan, Slot};

/// Carries `draft`, made for `base`, over to `now`; the error says why that cannot be.
pub(crate) fn merge(base: &Baseline, draft: Draft, now: &Notebook) -> Result<Draft, String> {
    let matched = Matched::of(base, now);
    if base.count() > 0 && matched.sure == 0 {
        return Err("it shares no cell with that revision".to_owned());
    }
    let ours = touched(base, draft, now, &matched)?;
    let their_order_is_old = matched.base_of.iter().flatten().is_sorted();
    let our_origins = ours.slots.iter().filter_map(|slot| slot.base);
    let our_order_is_old = our_origins.is_sorted();
    let merged = if their_order_is_old {
        in_our_order(&ours, &matched, now)
    } else if our_order_is_old {
        in_their_order(&ours, &matched)
    } else {
        return Err("cells were moved both in the file and by this edit".to_owned());
    };
    let focus = merged
        .iter()
        .position(|&index| Some(index) == ours.focus.map(Item::Ours));
    let slots = merged
        .into_iter()
        .map(|item| match item {
            Item::Ours(index) => ours.slots[index].slot.clone(),
            Item::Theirs(index) => Slot::keep(now, index),
        })
        .collect();
    Ok(Draft {
        plan: Plan { slots },
        focus,
        removed: ours.removed.and_then(|cell| matched.now_of[cell]),
        anchor: None,
        notices: ours.notices,
    })
}

/// Our edit in terms of the current cells.
struct Ours {
    slots: Vec<OurSlot>,
    focus: Option<usize>,
    removed: Option<usize>,
    notices: Vec<crate::Notice>,
}

struct OurSlot {
    /// The cell it was in the base.
    base: Option<usize>,
    /// With `origin` naming a current cell.
    slot: Slot,
}

/// A cell of the result: one of our slots, or a cell that only the file has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Ours(usize),
    Theirs(usize),
}

/// Checks every cell that the edit touches and drops those that are gone anyway.
fn touched(
    base: &Baseline,
    draft: Draft,
    now: &Notebook,
    matched: &Matched,
) -> Result<Ours, String> {
    check_places(&draft, matched)?;
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
        let Some(current) = matched.now_of[origin] else {
            if kept {
                continue;
            }
            return Err(format!("cell {origin} is no longer in the file as it was"));
        };
        let mut slot = slot;
        slot.origin = Some(current);
        if kept {
            slot = Slot::keep(now, current);
        } else {
            check(base, origin, &mut slot, now, current)?;
        }
        if draft.focus == Some(index) {
            focus = Some(slots.len());
        }
        slots.push(OurSlot {
            base: Some(origin),
            slot,
        });
    }
    let has_new_nameless = (0..now.count())
        .any(|current| matched.base_of[current].is_none() && now.id(current).is_none());
    for origin in (0..base.count()).filter(|&origin| !used[origin]) {
        let unchanged = match matched.now_of[origin] {
            Some(current) => is_same(base, origin, now, current),
            // Deleted by them, too. But where nameless cells are new, one of them may be this one.
            None => base.id(origin).is_some() || !has_new_nameless,
        };
        if !unchanged {
            return Err(format!(
                "cell {origin}, which this edit deletes, was changed in the file"
            ));
        }
    }
    Ok(Ours {
        slots,
        focus,
        removed: draft.removed,
        notices: draft.notices,
    })
}

/// Places must still exist: of the cell the edit is about, of the one it is put next to, and of the
/// neighbours of new cells.
fn check_places(draft: &Draft, matched: &Matched) -> Result<(), String> {
    let origins: Vec<Option<usize>> = draft.plan.slots.iter().map(|slot| slot.origin).collect();
    let gone = |origin: usize| matched.now_of[origin].is_none();
    let focus = draft.focus.and_then(|focus| origins[focus]);
    if let Some(origin) = focus
        .into_iter()
        .chain(draft.anchor)
        .find(|&origin| gone(origin))
    {
        return Err(format!("cell {origin} is no longer in the file as it was"));
    }
    for (index, _) in origins
        .iter()
        .enumerate()
        .filter(|(_, origin)| origin.is_none())
    {
        let before = origins[..index].iter().rev().find_map(|origin| *origin);
        let after = origins[index..].iter().find_map(|origin| *origin);
        let neighbours: Vec<usize> = before.into_iter().chain(after).collect();
        if !neighbours.is_empty() && neighbours.iter().all(|&origin| gone(origin)) {
            return Err("the cells around a new cell are no longer in the file".to_owned());
        }
    }
    Ok(())
}

/// A cell that the edit changes must be as it was. If only its outputs are new, a new source does
/// no harm to them.
fn check(
    base: &Baseline,
    origin: usize,
    slot: &mut Slot,
    now: &Notebook,
    current: usize,
) -> Result<(), String> {
    if slot.outputs == Outputs::Clear && is_clear(now, current) {
        slot.outputs = Outputs::Keep;
    }
    let same = is_same(base, origin, now, current);
    let only_source = slot.kind == base.kind(origin) && slot.outputs == Outputs::Keep;
    let text_same =
        base.kind(origin) == now.kind(current) && base.source(origin) == now.source(current);
    if same || (only_source && text_same) {
        return Ok(());
    }
    // Both made the same change.
    let wanted = slot
        .source
        .clone()
        .unwrap_or_else(|| base.source(origin).into_owned());
    if slot.outputs == Outputs::Keep
        && slot.kind == now.kind(current)
        && wanted == now.source(current)
    {
        slot.source = None;
        return Ok(());
    }
    Err(format!("cell {origin} was changed in the file, too"))
}

/// Whether there is nothing left to clear, because somebody else did.
fn is_clear(now: &Notebook, current: usize) -> bool {
    let members = now.members(current);
    [("execution_count", "null"), ("outputs", "[]")]
        .iter()
        .all(|(name, empty)| {
            object::member(&members, name)
                .is_none_or(|member| now.slice(member.value) == empty.as_bytes())
        })
}

fn is_same(base: &Baseline, origin: usize, now: &Notebook, current: usize) -> bool {
    base.cells[origin].hash == now.cell_hash(current)
}

/// Our order, with the cells that are new in the file behind the cell they stand behind there.
fn in_our_order(ours: &Ours, matched: &Matched, now: &Notebook) -> Vec<Item> {
    let mut place_of: HashMap<usize, usize> = HashMap::new();
    for (index, slot) in ours.slots.iter().enumerate() {
        if let Some(origin) = slot.slot.origin {
            place_of.insert(origin, index);
        }
    }
    let mut at_start = Vec::new();
    let mut behind: HashMap<usize, Vec<Item>> = HashMap::new();
    let mut anchor = None;
    for index in 0..now.count() {
        if let Some(place) = place_of.get(&index) {
            anchor = Some(*place);
        } else if matched.base_of[index].is_none() {
            match anchor {
                Some(place) => behind.entry(place).or_default().push(Item::Theirs(index)),
                None => at_start.push(Item::Theirs(index)),
            }
        }
    }
    let mut merged = at_start;
    for index in 0..ours.slots.len() {
        merged.push(Item::Ours(index));
        merged.extend(behind.remove(&index).unwrap_or_default());
    }
    merged
}

/// Their order, with our new cells behind the cell we put them behind.
fn in_their_order(ours: &Ours, matched: &Matched) -> Vec<Item> {
    let mut at_start = Vec::new();
    let mut behind: HashMap<usize, Vec<Item>> = HashMap::new();
    let mut kept: HashMap<usize, usize> = HashMap::new();
    let mut anchor = None;
    for (index, slot) in ours.slots.iter().enumerate() {
        if let Some(origin) = slot.slot.origin {
            kept.insert(origin, index);
            anchor = Some(origin);
        } else {
            match anchor {
                Some(origin) => behind.entry(origin).or_default().push(Item::Ours(index)),
                None => at_start.push(Item::Ours(index)),
            }
        }
    }
    let mut merged = at_start;
    for index in 0..matched.base_of.len() {
        match (kept.get(&index), matched.base_of[index]) {
            (Some(slot), _) => merged.push(Item::Ours(*slot)),
            (None, None) => merged.push(Item::Theirs(index)),
            // We deleted it.
            (None, Some(_)) => {}
        }
        merged.extend(behind.remove(&index).unwrap_or_default());
    }
    merged
}
