//! Somebody else changed the file while the cells ran: what they wrote stays, and cells that are still what
//! ran get what they put out.

use std::fs;
use std::process::Command;

use cellwright_notebook::file::{Conflict, Entry, Recorded};
use cellwright_notebook::{Cells, NotebookError};
use serde_json::{Value, json};

use super::{Place, entry, record, record_with, said};
use crate::oracle::python;
use crate::support::json::Document;
use crate::support::shown;

fn cell(id: Option<&str>, source: &str) -> Value {
    let mut cell = json!({
        "cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
        "source": [source],
    });
    if let Some(id) = id {
        cell["id"] = json!(id);
    }
    cell
}

fn notebook(cells: &[Value]) -> String {
    let minor = if cells.iter().any(|cell| cell["id"].is_string()) {
        5
    } else {
        4
    };
    let all = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor});
    serde_json::to_string_pretty(&all).unwrap()
}

/// Three cells, `a`, `b` and `c`, with ids or without.
fn three(with_ids: bool) -> Vec<Value> {
    ["a", "b", "c"]
        .iter()
        .map(|name| cell(with_ids.then_some(*name), &format!("print('{name}')")))
        .collect()
}

/// What came of it.
struct Met {
    recorded: Recorded,
    /// What is in the file, cell by cell: source and outputs.
    cells: Vec<(String, String)>,
    content: Vec<u8>,
}

/// All cells of `before` ran, and each said its number; meanwhile somebody else wrote `after`.
fn meet(before: &str, after: impl AsRef<[u8]>) -> Met {
    let place = Place::with(before);
    let ran = place.survey();
    fs::write(&place.path, after).unwrap();
    let entries: Vec<Entry> = (0..ran.count())
        .map(|cell| entry(cell, cell as u64, said(&cell.to_string())))
        .collect();
    let recorded = record(&place.path, &ran, &entries).unwrap();
    let content = place.content();
    let document = Document::read(&content);
    let said = |cell: usize| {
        let outputs = document.cells()[cell].get("outputs");
        let first = outputs.and_then(|outputs| outputs.elements().first()?.get("text").cloned());
        first.map(|text| text.text()).unwrap_or_default()
    };
    let cells = (0..document.cells().len())
        .map(|cell| (document.source(cell), said(cell)))
        .collect();
    Met {
        recorded,
        cells,
        content,
    }
}

impl Met {
    /// Fails unless these outputs are in the cells of the file, and these cells could not be given any.
    fn is(&self, outputs: &[&str], conflicts: &[(usize, Conflict)], what: &str) {
        let found: Vec<&str> = self.cells.iter().map(|(_, said)| said.as_str()).collect();
        assert_eq!(found, outputs, "{what}: {}", shown(&self.content));
        assert_eq!(self.recorded.conflicts, conflicts, "{what}");
        assert!(self.recorded.merged);
        for (entry, place) in self.recorded.places.iter().enumerate() {
            let conflicts = conflicts.iter().any(|(cell, _)| *cell == entry);
            assert_eq!(place.is_none(), conflicts);
            if let Some(place) = place {
                assert_eq!(self.cells[*place].1, entry.to_string());
            }
        }
    }
}

/// An edit of the three cells, and what becomes of what they put out.
type Case = (
    &'static str,
    fn(&mut Vec<Value>),
    &'static [&'static str],
    &'static [(usize, Conflict)],
);

const CASES: [Case; 10] = [
    (
        "a cell before them",
        |cells| {
            cells.insert(
                0,
                json!({"cell_type": "markdown", "metadata": {}, "source": "new"}),
            );
        },
        &["", "0", "1", "2"],
        &[],
    ),
    (
        "one between them",
        |cells| cells.insert(1, cell(None, "new")),
        &["0", "", "1", "2"],
        &[],
    ),
    (
        "one that was not to run",
        |cells| cells.push(cell(None, "print('a')")),
        &["0", "1", "2", ""],
        &[],
    ),
    (
        "edited",
        |cells| cells[1]["source"] = json!("print('B')"),
        &["0", "", "2"],
        &[(1, Conflict::Changed)],
    ),
    (
        "edited by a space",
        |cells| cells[2]["source"] = json!("print('c') "),
        &["0", "1", ""],
        &[(2, Conflict::Changed)],
    ),
    (
        "deleted",
        |cells| drop(cells.remove(1)),
        &["0", "2"],
        &[(1, Conflict::Gone)],
    ),
    (
        "all deleted",
        |cells| cells.clear(),
        &[],
        &[
            (0, Conflict::Gone),
            (1, Conflict::Gone),
            (2, Conflict::Gone),
        ],
    ),
    (
        "as text of another shape",
        |cells| cells[0]["source"] = json!(["print", "('a'", ")"]),
        &["0", "1", "2"],
        &[],
    ),
    (
        "with outputs of theirs",
        |cells| {
            cells[1]["outputs"] = json!([{"name": "stdout", "output_type": "stream", "text": "x"}]);
            cells[1]["metadata"]["tags"] = json!(["theirs"]);
        },
        &["0", "1", "2"],
        &[],
    ),
    (
        "one edited and one inserted before it",
        |cells| {
            cells[2]["source"] = json!("other");
            cells.insert(0, cell(None, "new"));
        },
        &["", "0", "1", ""],
        &[(2, Conflict::Changed)],
    ),
];

#[test]
fn what_others_wrote_stays_and_cells_that_are_what_ran_get_their_outputs() {
    for with_ids in [true, false] {
        for (what, edit, outputs, conflicts) in CASES {
            let mut cells = three(with_ids);
            edit(&mut cells);
            let after = notebook(&cells);
            let met = meet(&notebook(&three(with_ids)), &after);
            met.is(outputs, conflicts, &format!("{what}, ids: {with_ids}"));
            // Theirs is all there.
            let now: Value = serde_json::from_slice(&met.content).unwrap();
            let mut theirs: Value = serde_json::from_str(&after).unwrap();
            for (cell, (_, said)) in met.cells.iter().enumerate() {
                if !said.is_empty() {
                    for name in ["outputs", "execution_count"] {
                        theirs["cells"][cell][name] = now["cells"][cell][name].clone();
                    }
                }
            }
            assert_eq!(now, theirs, "{what}");
        }
    }
}

#[test]
fn cells_with_ids_are_found_wherever_they_are() {
    let mut cells = three(true);
    cells.reverse();
    cells.insert(1, cell(Some("new"), "print('a')"));
    meet(&notebook(&three(true)), notebook(&cells)).is(&["2", "", "1", "0"], &[], "");
    // Two with one id cannot be told apart by it.
    let mut cells = three(true);
    cells.insert(0, cell(Some("b"), "another"));
    meet(&notebook(&three(true)), notebook(&cells)).is(&["", "0", "1", "2"], &[], "");
}

#[test]
fn a_cell_that_is_no_code_any_more_is_left_alone() {
    let mut cells = three(true);
    cells[1] = json!({"cell_type": "markdown", "id": "b", "metadata": {}, "source": "print('b')"});
    let met = meet(&notebook(&three(true)), notebook(&cells));
    met.is(&["0", "", "2"], &[(1, Conflict::Changed)], "");
    assert!(!shown(&met.content).contains(r#""text":["1"]"#));
}

/// Tools that know of no ids take them away, and those that do give every cell one.
#[test]
fn cells_are_found_by_their_source_when_their_ids_came_or_went() {
    let (with, without) = (notebook(&three(true)), notebook(&three(false)));
    meet(&with, &without).is(&["0", "1", "2"], &[], "");
    meet(&without, &with).is(&["0", "1", "2"], &[], "");
    let fresh: Vec<Value> = ["x", "y", "z"]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(id, name)| cell(Some(id), &format!("print('{name}')")))
        .collect();
    meet(&with, notebook(&fresh)).is(&["0", "1", "2"], &[], "");
    // But another source under another id is another cell.
    let mut other = fresh;
    other[1]["source"] = json!("print('B')");
    meet(&with, notebook(&other)).is(&["0", "", "2"], &[(1, Conflict::Gone)], "");
}

#[test]
fn another_notebook_in_its_place_gets_nothing() {
    for ids in [true, false] {
        let other = notebook(&[cell(ids.then_some("x"), "x"), cell(ids.then_some("y"), "y")]);
        let met = meet(&notebook(&three(true)), &other);
        assert_eq!(met.recorded.conflicts.len(), 3);
        assert_eq!(shown(&met.content), other, "theirs, byte for byte");
    }
}

#[test]
fn a_file_that_another_tool_laid_out_anew_gets_everything() {
    let script = "import json, sys\nnotebook = json.load(open(sys.argv[1]))\nkeys = eval(sys.argv[2])\nwith open(sys.argv[1], 'w') as file: json.dump(notebook, file, **keys)";
    for keys in [
        "{'indent': 4, 'sort_keys': True}",
        "{'indent': 1}",
        "{'separators': (',', ':')}",
        "{}",
    ] {
        for with_ids in [true, false] {
            let place = Place::with(notebook(&three(with_ids)));
            let ran = place.survey();
            let reformatted = Command::new(python())
                .args(["-c", script])
                .arg(&place.path)
                .arg(keys)
                .status()
                .unwrap();
            assert!(reformatted.success());
            let theirs = place.content();
            let entries: Vec<Entry> = (0..3)
                .map(|cell| entry(cell, 1, said(&cell.to_string())))
                .collect();
            let recorded = record(&place.path, &ran, &entries).unwrap();
            assert_eq!(recorded.conflicts, [], "{keys}");
            let content = place.content();
            let (old, new) = (Document::read(&theirs), Document::read(&content));
            for cell in 0..3 {
                let names = new.cells()[cell].names();
                assert_eq!(names, old.cells()[cell].names());
                let outputs = super::outputs_of(&new, cell);
                assert_eq!(shown(&outputs), said(&cell.to_string()));
            }
        }
    }
}

/// Ours says what the kernel is where nobody did; what somebody says meanwhile is their word.
#[test]
fn what_others_say_about_the_kernel_meanwhile_stays() {
    let with = |metadata: &str| {
        notebook(&three(true)).replacen(
            "\"metadata\": {},\n  \"nbformat\"",
            &format!("\"metadata\": {metadata},\n  \"nbformat\""),
            1,
        )
    };
    let set = [
        ("kernelspec", r#"{"name":"ours"}"#.to_owned()),
        ("language_info", r#"{"name":"ours"}"#.to_owned()),
    ];
    let cases = [
        ("{}", "{}", ("ours", "ours")),
        ("{}", r#"{"title":"x"}"#, ("ours", "ours")),
        (
            "{}",
            r#"{"kernelspec":{"name":"theirs"}}"#,
            ("theirs", "ours"),
        ),
        (
            r#"{"language_info":{"name":"old"}}"#,
            r#"{"language_info":{"name":"old"},"x":1}"#,
            ("ours", "ours"),
        ),
        (
            r#"{"language_info":{"name":"old"}}"#,
            r#"{"language_info":{"name":"theirs"}}"#,
            ("ours", "theirs"),
        ),
    ];
    for (before, after, expected) in cases {
        let place = Place::with(with(before));
        let ran = place.survey();
        fs::write(&place.path, with(after)).unwrap();
        // Twice, as a run saves: what we wrote ourselves is nobody else's word.
        for _ in 0..2 {
            record_with(&place.path, &ran, &[entry(0, 1, "[]")], &set).unwrap();
        }
        let now: Value = serde_json::from_slice(&place.content()).unwrap();
        let names =
            ["kernelspec", "language_info"].map(|name| now["metadata"][name]["name"].clone());
        assert_eq!(names, [expected.0, expected.1], "{before} {after}");
    }
}

#[test]
fn a_file_that_is_gone_or_no_notebook_any_more_is_left_alone() {
    let place = Place::with(notebook(&three(true)));
    let ran = place.survey();
    let entries = [entry(0, 1, said("x"))];
    for content in [
        "",
        "{",
        "plain text",
        r#"{"cells":1,"nbformat":4}"#,
        "{\"worksheets\":[],\"nbformat\":3}",
    ] {
        fs::write(&place.path, content).unwrap();
        let error = record(&place.path, &ran, &entries).unwrap_err();
        assert!(matches!(error, NotebookError::Format { .. }), "{error}");
        assert_eq!(shown(&place.content()), content);
    }
    fs::remove_file(&place.path).unwrap();
    let error = record(&place.path, &ran, &entries).unwrap_err();
    assert!(matches!(error, NotebookError::NotFound { .. }), "{error}");
    assert_eq!(place.names(), [""; 0]);
    fs::create_dir(&place.path).unwrap();
    record(&place.path, &ran, &entries).unwrap_err();
    fs::remove_dir(&place.path).unwrap();
    fs::remove_dir(place.folder.path()).unwrap();
    record(&place.path, &ran, &entries).unwrap_err();
}
