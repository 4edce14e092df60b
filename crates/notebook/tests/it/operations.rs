//! Operations on one cell put it at the right position, in the layout of the file.

use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_notebook::{CellKind, Cells, EditError, Notebook, compose};

use crate::support::json::Document;
use crate::support::lossy;

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

/// Every way to name a position among four cells, with the old index that it is before.
fn positions() -> Vec<(CellPosition, usize)> {
    let mut positions = vec![(CellPosition::End, 4)];
    for cell in 0..4 {
        let name = Address::Id("abcd"[cell..=cell].to_owned());
        positions.push((CellPosition::Before(Address::Index(cell)), cell));
        positions.push((CellPosition::After(Address::Index(cell)), cell + 1));
        positions.push((CellPosition::Before(name.clone()), cell));
        positions.push((CellPosition::After(name), cell + 1));
    }
    positions
}

#[test]
fn insert_puts_cell_at_position() {
    let notebook = notebook(&["a", "b", "c", "d"]);
    for (position, before) in positions()
        .into_iter()
        .chain((0..=4).map(|n| (CellPosition::At(n), n)))
    {
        let kind = CellKind::Raw;
        let source = "N".to_owned();
        let new = apply(
            &notebook,
            &Operation::Insert {
                position,
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
fn move_puts_cell_at_position() {
    let notebook = notebook(&["a", "b", "c", "d"]);
    for from in 0..4 {
        let cell = Address::Index(from);
        let name = "abcd"[from..=from].to_owned();
        for (position, before) in positions() {
            let mut expected = "abcd".to_owned();
            expected.insert(before, 'X');
            let expected = expected.replace(&name, "").replace('X', &name);
            let cell = cell.clone();
            let new = apply(&notebook, &Operation::Move { cell, position });
            assert_eq!(sources(&new), expected);
        }
        for to in 0..4 {
            let cell = cell.clone();
            let position = CellPosition::At(to);
            let new = apply(&notebook, &Operation::Move { cell, position });
            assert_eq!(new.source(to), name);
            assert_eq!(sources(&new).replace(&name, ""), "abcd".replace(&name, ""));
        }
    }
}

#[test]
fn invalid_positions_are_rejected() {
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
    let (cell, position) = (Address::Index(0), CellPosition::At(2));
    assert_eq!(
        draft(Operation::Move { cell, position }),
        out_of_range(2, 1, false)
    );
    let (position, kind, source) = (CellPosition::At(3), CellKind::Code, String::new());
    assert_eq!(
        draft(Operation::Insert {
            position,
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
    let (cell, position) = (Address::Index(0), CellPosition::End);
    assert!(Operation::Move { cell, position }.draft(&nothing).is_err());
}

#[test]
fn new_cell_follows_member_order_of_neighbours() {
    let notebook = notebook(&["a"]);
    let new = apply(
        &notebook,
        &Operation::Insert {
            position: CellPosition::End,
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
fn ascii_file_stays_ascii() {
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
            tags: None,
        };
        let kind = CellKind::Raw;
        let position = CellPosition::End;
        let source = source.clone();
        for operation in [
            edit,
            Operation::Insert {
                position,
                kind,
                source,
                tags: Vec::new(),
            },
        ] {
            let new = apply(&cells, &operation);
            assert_eq!(new.bytes().is_ascii(), is_ascii, "{}", lossy(new.bytes()));
        }
    }
}

#[test]
fn used_id_is_not_assigned_again() {
    let insert = Operation::Insert {
        position: CellPosition::End,
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
