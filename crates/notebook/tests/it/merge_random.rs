//! Two sides change one notebook at random: either both changes are in it, or the second is refused.

use cellwright_notebook::edit::Draft;
use cellwright_notebook::{Cells, NotebookError, Plan, Slot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::merge::Scene;
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

/// A cell as one side wants it.
#[derive(Clone, Debug)]
struct Cell {
    origin: Option<usize>,
    /// `None` keeps what is there.
    source: Option<String>,
}

/// What one side wants the notebook to be.
#[derive(Clone, Debug)]
struct Side(Vec<Cell>);

impl Side {
    fn of(name: &str, count: usize, actions: &[Action]) -> Self {
        let mut cells: Vec<Cell> = (0..count)
            .map(|cell| Cell {
                origin: Some(cell),
                source: None,
            })
            .collect();
        for (number, action) in actions.iter().enumerate() {
            if let Action::Insert(at) = action {
                let cell = Cell {
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

    fn fate(&self, origin: usize) -> Fate<'_> {
        match self.0.iter().find(|cell| cell.origin == Some(origin)) {
            None => Fate::Deleted,
            Some(cell) => cell.source.as_deref().map_or(Fate::Kept, Fate::Edited),
        }
    }

    fn new_sources(&self) -> impl Iterator<Item = String> {
        let new = self.0.iter().filter(|cell| cell.origin.is_none());
        new.filter_map(|cell| cell.source.clone())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate<'s> {
    Kept,
    Edited(&'s str),
    Deleted,
}

const BASE: [&str; 6] = ["zero", "one", "two", "three", "four", "five"];

/// The source that a cell must have in the end, or none; `Err` if the sides cannot agree.
fn outcome(ours: Fate<'_>, theirs: Fate<'_>, base: &str) -> Result<Option<String>, ()> {
    match (ours, theirs) {
        (Fate::Kept, Fate::Kept) => Ok(Some(base.to_owned())),
        (Fate::Edited(new), Fate::Kept) | (Fate::Kept, Fate::Edited(new)) => Ok(Some(new.into())),
        (Fate::Deleted, Fate::Kept | Fate::Deleted) | (Fate::Kept, Fate::Deleted) => Ok(None),
        (Fate::Edited(_), _) | (Fate::Deleted, Fate::Edited(_)) => Err(()),
    }
}

/// The sources of one side that are in the result, in its order.
fn in_order(side: &Side, agreed: &[Option<String>], result: &[String]) -> Vec<String> {
    let wanted = side.0.iter().filter_map(|cell| match cell.origin {
        Some(origin) => agreed[origin].clone(),
        None => cell.source.clone(),
    });
    wanted.filter(|source| result.contains(source)).collect()
}

fn check(count: usize, ids: bool, ours: &Side, theirs: &Side) {
    let scene = Scene::new(&BASE[..count], ids);
    scene.they(&|cells| Ok(theirs.draft(cells)));
    let before = scene.bytes();
    let outcomes: Vec<_> = (0..count)
        .map(|cell| outcome(ours.fate(cell), theirs.fate(cell), BASE[cell]))
        .collect();
    let agree = outcomes.iter().all(Result::is_ok);
    match scene.we(&|cells| Ok(ours.draft(cells))) {
        Ok(_) => {
            if !ids && !agree {
                // Without ids a cell that was edited and moved cannot be told from a new one, so a
                // deletion may miss it. What they wrote must still be there.
                assert_nothing_lost(&scene, ours, theirs, count);
                return;
            }
            assert!(agree, "both changed a cell, but there was no conflict");
            let agreed: Vec<Option<String>> = outcomes.into_iter().map(Result::unwrap).collect();
            let result = scene.sources();
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
                    let wanted = in_order(side, &agreed, &result);
                    let mut found = result.clone();
                    found.retain(|source| wanted.contains(source));
                    assert_eq!(found, wanted);
                }
            }
        }
        Err(NotebookError::Conflict { why, .. }) => {
            assert_eq!(scene.bytes(), before, "written in spite of a conflict");
            // Where everything around is gone, there is no place left to put our change.
            let uprooted = why.contains("shares no cell") || why.contains("around a new cell");
            let needless = ids && agree && !(ours.has_moved() && theirs.has_moved()) && !uprooted;
            assert!(!needless, "needless conflict: {why}");
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn assert_nothing_lost(scene: &Scene, ours: &Side, theirs: &Side, count: usize) {
    let result = scene.sources();
    let edited = (0..count).flat_map(|cell| [ours.fate(cell), theirs.fate(cell)]);
    let mut written: Vec<String> = ours.new_sources().chain(theirs.new_sources()).collect();
    written.extend(edited.filter_map(|fate| match fate {
        Fate::Edited(new) => Some(new.to_owned()),
        _ => None,
    }));
    for source in written {
        assert!(result.contains(&source), "{source} is not in {result:?}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn both_changes_are_there_or_the_second_is_refused(
        count in 1..=BASE.len(),
        ids in any::<bool>(),
        ours in vec(action(), 0..4),
        theirs in vec(action(), 0..4),
    ) {
        let ours = Side::of("us", count, &ours);
        let theirs = Side::of("them", count, &theirs);
        check(count, ids, &ours, &theirs);
    }
}
