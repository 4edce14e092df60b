//! Two sides change one notebook at random: either the file has both changes, or the second is
//! rejected.

use cellwright_notebook::edit::Draft;
use cellwright_notebook::{Cells, NotebookError, Plan, Slot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::merge::MergeFixture;
use crate::support::cases;

#[derive(Clone, Debug)]
enum Action {
    Edit(Index),
    Delete(Index),
    Move(Index, Index),
    Insert(Index),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => any::<Index>().prop_map(Action::Edit),
        2 => any::<Index>().prop_map(Action::Delete),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Action::Move(from, to)),
        2 => any::<Index>().prop_map(Action::Insert),
    ]
}

/// A cell as one side edited it.
#[derive(Clone, Debug)]
struct EditedCell {
    origin: Option<usize>,
    /// `None` keeps the old source.
    source: Option<String>,
}

/// The notebook as one side edited it.
#[derive(Clone, Debug)]
struct EditedSide(Vec<EditedCell>);

impl EditedSide {
    fn after(name: &str, count: usize, actions: &[Action]) -> Self {
        let mut cells: Vec<EditedCell> = (0..count)
            .map(|cell| EditedCell {
                origin: Some(cell),
                source: None,
            })
            .collect();
        for (number, action) in actions.iter().enumerate() {
            if let Action::Insert(at) = action {
                let cell = EditedCell {
                    origin: None,
                    source: Some(format!("new {number} by {name}")),
                };
                cells.insert(at.index(cells.len() + 1), cell);
                continue;
            }
            if cells.is_empty() {
                continue;
            }
            let count = cells.len();
            match action {
                Action::Edit(at) => {
                    let cell = &mut cells[at.index(count)];
                    let was = cell.origin.map_or("new".to_owned(), |n| n.to_string());
                    cell.source = Some(format!("{was} edited in {number} by {name}"));
                }
                Action::Delete(at) => {
                    cells.remove(at.index(count));
                }
                Action::Move(from, to) => {
                    let cell = cells.remove(from.index(count));
                    cells.insert(to.index(count), cell);
                }
                Action::Insert(_) => {}
            }
        }
        Self(cells)
    }

    fn draft(&self, cells: &dyn Cells) -> Draft {
        let slots = self.0.iter().map(|cell| {
            let mut slot = match cell.origin {
                Some(origin) => Slot::keep(cells, origin),
                None => Slot::new(cellwright_notebook::CellKind::Code, ""),
            };
            slot.source.clone_from(&cell.source);
            slot
        });
        Draft {
            plan: Plan {
                slots: slots.collect(),
                metadata: Vec::new(),
            },
            focus: None,
            removed: None,
            anchor: None,
            notices: Vec::new(),
        }
    }

    fn has_moved(&self) -> bool {
        !self.0.iter().filter_map(|cell| cell.origin).is_sorted()
    }

    fn change_to(&self, origin: usize) -> CellChange<'_> {
        match self.0.iter().find(|cell| cell.origin == Some(origin)) {
            None => CellChange::Deleted,
            Some(cell) => cell
                .source
                .as_deref()
                .map_or(CellChange::Kept, CellChange::Edited),
        }
    }

    fn new_sources(&self) -> impl Iterator<Item = String> {
        let new = self.0.iter().filter(|cell| cell.origin.is_none());
        new.filter_map(|cell| cell.source.clone())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellChange<'s> {
    Kept,
    Edited(&'s str),
    Deleted,
}

const BASE: [&str; 6] = ["zero", "one", "two", "three", "four", "five"];

/// The source that a cell must have in the result (`None` if deleted); `Err` if the sides
/// conflict.
fn outcome(ours: CellChange<'_>, theirs: CellChange<'_>, base: &str) -> Result<Option<String>, ()> {
    match (ours, theirs) {
        (CellChange::Kept, CellChange::Kept) => Ok(Some(base.to_owned())),
        (CellChange::Edited(new), CellChange::Kept)
        | (CellChange::Kept, CellChange::Edited(new)) => Ok(Some(new.into())),
        (CellChange::Deleted, CellChange::Kept | CellChange::Deleted)
        | (CellChange::Kept, CellChange::Deleted) => Ok(None),
        (CellChange::Edited(_), _) | (CellChange::Deleted, CellChange::Edited(_)) => Err(()),
    }
}

/// The sources of one side that are in the result, in that side's order.
fn in_order(side: &EditedSide, agreed: &[Option<String>], result: &[String]) -> Vec<String> {
    let in_side_order = side.0.iter().filter_map(|cell| match cell.origin {
        Some(origin) => agreed[origin].clone(),
        None => cell.source.clone(),
    });
    in_side_order
        .filter(|source| result.contains(source))
        .collect()
}

fn check(count: usize, ids: bool, ours: &EditedSide, theirs: &EditedSide) {
    let fixture = MergeFixture::new(&BASE[..count], ids);
    fixture.apply_theirs(&|cells| Ok(theirs.draft(cells)));
    let before = fixture.bytes();
    let outcomes: Vec<_> = (0..count)
        .map(|cell| outcome(ours.change_to(cell), theirs.change_to(cell), BASE[cell]))
        .collect();
    let agree = outcomes.iter().all(Result::is_ok);
    match fixture.apply_ours(&|cells| Ok(ours.draft(cells))) {
        Ok(_) => {
            if !ids && !agree {
                // Without ids, a cell that was edited and moved cannot be distinguished from a
                // new one, so a deletion may miss it. The edited text must still be there.
                assert_nothing_lost(&fixture, ours, theirs, count);
                return;
            }
            assert!(agree, "both changed a cell, but there was no conflict");
            let agreed: Vec<Option<String>> = outcomes.into_iter().map(Result::unwrap).collect();
            let result = fixture.sources();
            let mut expected: Vec<String> = agreed.iter().flatten().cloned().collect();
            expected.extend(ours.new_sources().chain(theirs.new_sources()));
            expected.sort();
            let mut found = result.clone();
            found.sort();
            assert_eq!(found, expected);
            if !ids {
                return;
            }
            for (side, other) in [(ours, theirs), (theirs, ours)] {
                if !other.has_moved() {
                    let in_side_order = in_order(side, &agreed, &result);
                    let mut found = result.clone();
                    found.retain(|source| in_side_order.contains(source));
                    assert_eq!(found, in_side_order);
                }
            }
        }
        Err(NotebookError::Conflict { reason: why, .. }) => {
            assert_eq!(fixture.bytes(), before, "written in spite of a conflict");
            // If all neighbours are gone, our change has no position left.
            let has_no_position =
                why.contains("shares no cell") || why.contains("around a new cell");
            let needless =
                ids && agree && !(ours.has_moved() && theirs.has_moved()) && !has_no_position;
            assert!(!needless, "needless conflict: {why}");
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn assert_nothing_lost(
    fixture: &MergeFixture,
    ours: &EditedSide,
    theirs: &EditedSide,
    count: usize,
) {
    let result = fixture.sources();
    let edited = (0..count).flat_map(|cell| [ours.change_to(cell), theirs.change_to(cell)]);
    let mut written: Vec<String> = ours.new_sources().chain(theirs.new_sources()).collect();
    written.extend(edited.filter_map(|change| match change {
        CellChange::Edited(new) => Some(new.to_owned()),
        _ => None,
    }));
    for source in written {
        assert!(result.contains(&source), "{source} is not in {result:?}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn both_changes_are_kept_or_second_is_rejected(
        count in 1..=BASE.len(),
        ids in any::<bool>(),
        ours in vec(action(), 0..4),
        theirs in vec(action(), 0..4),
    ) {
        let ours = EditedSide::after("us", count, &ours);
        let theirs = EditedSide::after("them", count, &theirs);
        check(count, ids, &ours, &theirs);
    }
}
