//! One-cell operations put things where they should, in the way the file writes them.

use cellwright_notebook::edit::{Address, Operation, Place};
use cellwright_notebook::{CellKind, Cells, EditError, Notebook, compose};

use crate::support::json::Document;
use crate::support::shown;

fn notebook(cells: &[&str]) -> Notebook {
    let cells: Vec<String> = cells
        .iter()
        .map(|name| {
            format!(
                r#"{{"source": "{name}", "metadata": {{}}, "id": "{name}", "cell_type": "raw"}}"#
            )
        })
        .collect();
    let cells = cells.join(",\n ");
    Notebook::parse(format!(
        r#"{{"nbformat": 4, "nbformat_minor": 5, "cells": [{cells}]}}"#
    ))
    .unwrap()
}

fn apply(notebook: &Notebook, operation: &Operation) -> Notebook {
    let draft = operation.draft(notebook).unwrap();
    Notebook::parse(compose(notebook, &draft.plan).to_bytes()).unwrap()
}

fn sources(notebook: &Notebook) -> String {
    (0..notebook.count())
        .map(|cell| notebook.source(cell).into_owned())
        .collect()
}

/// Every way to name a place among four cells, and before which cell of the old order it is.
fn places() -> Vec<(Place, usize)> {
    let mut places = vec![(Place::End, 4)];
    for cell in 0..4 {
        let name = Address::Id("abcd"[cell..=cell].to_owned());
        places.push((Place::Before(Address::Index(cell)), cell));
        places.push((Place::After(Address::Index(cell)), cell + 1));
        places.push((Place::Before(name.clone()), cell));
        places.push((Place::After(name), cell + 1));
    }
    places
}

#[test]
fn cells_go_where_they_are_put() {
    let notebook = notebook(&["a", "b", "c", "d"]);
    for (place, before) in places()
        .into_iter()
        .chain((0..=4).map(|n| (Place::At(n), n)))
    {
        let kind = CellKind::Raw;
        let source = "N".to_owned();
        let new = apply(
            &notebook,
            &Operation::Insert {
                place,
                kind,
                source,
                tags: Vec::new(),
            },
        );
        let mut expected = "abcd".to_owned();
        expected.insert(before, 'N');
        assert_eq!(sources(&new), expected);
    }
}

#[test]
fn cells_arrive_where_they_are_moved_to() {
    let notebook = notebook(&["a", "b", "c", "d"]);
    for from in 0..4 {
        let cell = Address::Index(from);
        let name = "abcd"[from..=from].to_owned();
        for (place, before) in places() {
            let mut expected = "abcd".to_owned();
            expected.insert(before, 'X');
            let expected = expected.replace(&name, "").replace('X', &name);
            let cell = cell.clone();
            let new = apply(&notebook, &Operation::Move { cell, place });
            assert_eq!(sources(&new), expected);
        }
        for to in 0..4 {
            let cell = cell.clone();
            let place = Place::At(to);
            let new = apply(&notebook, &Operation::Move { cell, place });
            assert_eq!(new.source(to), name);
            assert_eq!(sources(&new).replace(&name, ""), "abcd".replace(&name, ""));
        }
    }
}

#[test]
fn places_that_are_not_there_are_refused() {
    let cells = notebook(&["a", "b"]);
    let draft = |operation: Operation| operation.draft(&cells).map(|_| ());
    let out_of_range = |index, last, inserting| {
        Err(EditError::OutOfRange {
            index,
            last: Some(last),
            inserting,
        })
    };
    let cell = Address::Index(2);
    assert_eq!(draft(Operation::Delete { cell }), out_of_range(2, 1, false));
    let (cell, place) = (Address::Index(0), Place::At(2));
    assert_eq!(
        draft(Operation::Move { cell, place }),
        out_of_range(2, 1, false)
    );
    let (place, kind, source) = (Place::At(3), CellKind::Code, String::new());
    assert_eq!(
        draft(Operation::Insert {
            place,
            kind,
            source,
            tags: Vec::new(),
        }),
        out_of_range(3, 2, true)
    );
    let cell = Address::Id("c".to_owned());
    assert!(matches!(
        draft(Operation::Delete { cell }),
        Err(EditError::IdMatches { count: 0, .. })
    ));
    let nothing = Notebook::empty();
    let cell = Address::Index(0);
    assert!(Operation::Delete { cell }.draft(&nothing).is_err());
    let (cell, place) = (Address::Index(0), Place::End);
    assert!(Operation::Move { cell, place }.draft(&nothing).is_err());
}

#[test]
fn a_new_cell_has_its_members_in_the_order_of_its_neighbours() {
    let notebook = notebook(&["a"]);
    let new = apply(
        &notebook,
        &Operation::Insert {
            place: Place::End,
            kind: CellKind::Code,
            source: "b".to_owned(),
            tags: Vec::new(),
        },
    );
    let document = Document::read(new.bytes());
    assert_eq!(
        document.cells()[1].names(),
        [
            "source",
            "metadata",
            "id",
            "cell_type",
            "execution_count",
            "outputs"
        ]
    );
}

#[test]
fn a_file_in_ascii_stays_in_ascii() {
    let source = "ü\u{10000}".to_owned();
    for (old, is_ascii) in [
        ("\\u00e9", true),
        ("é", false),
        ("e", false),
        ("\\\\u00e9", false),
    ] {
        let cells = notebook(&[old]);
        let cell = Address::Index(0);
        let edit = Operation::Edit {
            cell,
            source: format!("{}\n{source}", cells.source(0)),
        };
        let kind = CellKind::Raw;
        let place = Place::End;
        let source = source.clone();
        for operation in [
            edit,
            Operation::Insert {
                place,
                kind,
                source,
                tags: Vec::new(),
            },
        ] {
            let new = apply(&cells, &operation);
            assert_eq!(new.bytes().is_ascii(), is_ascii, "{}", shown(new.bytes()));
        }
    }
}

#[test]
fn an_id_that_is_taken_is_not_given_again() {
    let insert = Operation::Insert {
        place: Place::End,
        kind: CellKind::Raw,
        source: "b".to_owned(),
        tags: Vec::new(),
    };
    let given = apply(&notebook(&["a"]), &insert)
        .id(1)
        .unwrap()
        .into_owned();
    let again = apply(&notebook(&[&given]), &insert);
    assert!(again.id(1).is_some_and(|id| id != given));
}
