//! Another program changed the file while the cells ran: its changes stay, and cells with
//! unchanged sources get their outputs.

use std::fs;
use std::process::Command;

use cellwright_notebook::file::{CellConflict, CellUpdate, RecordReport};
use cellwright_notebook::{Cells, NotebookError};
use serde_json::{Value, json};

use super::{NotebookFixture, record, record_with, stream_output, update};
use crate::oracle::python;
use crate::support::json::Document;
use crate::support::lossy;

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

/// The result of a record.
struct RecordResult {
    report: RecordReport,
    /// The cells of the file: source and output text.
    cells: Vec<(String, String)>,
    content: Vec<u8>,
}

/// Records an output with its index for every cell of `before`, after another program wrote
/// `after`.
fn record_after_edit(before: &str, after: impl AsRef<[u8]>) -> RecordResult {
    let fixture = NotebookFixture::with(before);
    let base = fixture.survey();
    fs::write(&fixture.path, after).unwrap();
    let updates: Vec<CellUpdate> = (0..base.count())
        .map(|cell| update(cell, cell as u64, stream_output(&cell.to_string())))
        .collect();
    let report = record(&fixture.path, &base, &updates).unwrap();
    let content = fixture.content();
    let document = Document::read(&content);
    let output = |cell: usize| {
        let outputs = document.cells()[cell].get("outputs");
        let first = outputs.and_then(|outputs| outputs.elements().first()?.get("text").cloned());
        first.map(|text| text.text()).unwrap_or_default()
    };
    let cells = (0..document.cells().len())
        .map(|cell| (document.source(cell), output(cell)))
        .collect();
    RecordResult {
        report,
        cells,
        content,
    }
}

impl RecordResult {
    /// Asserts the output text of each cell of the file, and the updates that were conflicts.
    fn assert_outputs(&self, outputs: &[&str], conflicts: &[(usize, CellConflict)], case: &str) {
        let found: Vec<&str> = self
            .cells
            .iter()
            .map(|(_, output)| output.as_str())
            .collect();
        assert_eq!(found, outputs, "{case}: {}", lossy(&self.content));
        assert_eq!(self.report.conflicts, conflicts, "{case}");
        assert!(self.report.merged);
        for (update, index) in self.report.cell_indexes.iter().enumerate() {
            let conflicts = conflicts.iter().any(|(cell, _)| *cell == update);
            assert_eq!(index.is_none(), conflicts);
            if let Some(index) = index {
                assert_eq!(self.cells[*index].1, update.to_string());
            }
        }
    }
}

/// An edit of the three cells, and the expected outputs and conflicts.
type Case = (
    &'static str,
    fn(&mut Vec<Value>),
    &'static [&'static str],
    &'static [(usize, CellConflict)],
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
        &[(1, CellConflict::Changed)],
    ),
    (
        "edited by a space",
        |cells| cells[2]["source"] = json!("print('c') "),
        &["0", "1", ""],
        &[(2, CellConflict::Changed)],
    ),
    (
        "deleted",
        |cells| drop(cells.remove(1)),
        &["0", "2"],
        &[(1, CellConflict::Missing)],
    ),
    (
        "all deleted",
        |cells| cells.clear(),
        &[],
        &[
            (0, CellConflict::Missing),
            (1, CellConflict::Missing),
            (2, CellConflict::Missing),
        ],
    ),
    (
        "as text of another shape",
        |cells| cells[0]["source"] = json!(["print", "('a'", ")"]),
        &["0", "1", "2"],
        &[],
    ),
    (
        "with outputs from the other program",
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
        &[(2, CellConflict::Changed)],
    ),
];

#[test]
fn concurrent_edits_stay_and_unchanged_cells_get_outputs() {
    for with_ids in [true, false] {
        for (case, edit, outputs, conflicts) in CASES {
            let mut cells = three(with_ids);
            edit(&mut cells);
            let after = notebook(&cells);
            let result = record_after_edit(&notebook(&three(with_ids)), &after);
            result.assert_outputs(outputs, conflicts, &format!("{case}, ids: {with_ids}"));
            // All changes of the other program are there.
            let now: Value = serde_json::from_slice(&result.content).unwrap();
            let mut theirs: Value = serde_json::from_str(&after).unwrap();
            for (cell, (_, output)) in result.cells.iter().enumerate() {
                if !output.is_empty() {
                    for name in ["outputs", "execution_count"] {
                        theirs["cells"][cell][name] = now["cells"][cell][name].clone();
                    }
                }
            }
            assert_eq!(now, theirs, "{case}");
        }
    }
}

#[test]
fn moved_cells_are_found_by_id() {
    let mut cells = three(true);
    cells.reverse();
    cells.insert(1, cell(Some("new"), "print('a')"));
    record_after_edit(&notebook(&three(true)), notebook(&cells)).assert_outputs(
        &["2", "", "1", "0"],
        &[],
        "",
    );
    // A duplicate id identifies no cell.
    let mut cells = three(true);
    cells.insert(0, cell(Some("b"), "another"));
    record_after_edit(&notebook(&three(true)), notebook(&cells)).assert_outputs(
        &["", "0", "1", "2"],
        &[],
        "",
    );
}

#[test]
fn cell_that_became_markdown_gets_no_outputs() {
    let mut cells = three(true);
    cells[1] = json!({"cell_type": "markdown", "id": "b", "metadata": {}, "source": "print('b')"});
    let result = record_after_edit(&notebook(&three(true)), notebook(&cells));
    result.assert_outputs(&["0", "", "2"], &[(1, CellConflict::Changed)], "");
    assert!(!lossy(&result.content).contains(r#""text":["1"]"#));
}

/// Some tools remove ids, others assign new ones.
#[test]
fn cells_are_found_by_source_when_ids_change() {
    let (with, without) = (notebook(&three(true)), notebook(&three(false)));
    record_after_edit(&with, &without).assert_outputs(&["0", "1", "2"], &[], "");
    record_after_edit(&without, &with).assert_outputs(&["0", "1", "2"], &[], "");
    let fresh: Vec<Value> = ["x", "y", "z"]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(id, name)| cell(Some(id), &format!("print('{name}')")))
        .collect();
    record_after_edit(&with, notebook(&fresh)).assert_outputs(&["0", "1", "2"], &[], "");
    // But another source under another id is another cell.
    let mut other = fresh;
    other[1]["source"] = json!("print('B')");
    record_after_edit(&with, notebook(&other)).assert_outputs(
        &["0", "", "2"],
        &[(1, CellConflict::Missing)],
        "",
    );
}

#[test]
fn different_notebook_gets_no_outputs() {
    for ids in [true, false] {
        let other = notebook(&[cell(ids.then_some("x"), "x"), cell(ids.then_some("y"), "y")]);
        let result = record_after_edit(&notebook(&three(true)), &other);
        assert_eq!(result.report.conflicts.len(), 3);
        assert_eq!(lossy(&result.content), other, "theirs, byte for byte");
    }
}

#[test]
fn reformatted_file_gets_all_outputs() {
    let script = "import json, sys\nnotebook = json.load(open(sys.argv[1]))\nkeys = eval(sys.argv[2])\nwith open(sys.argv[1], 'w') as file: json.dump(notebook, file, **keys)";
    for keys in [
        "{'indent': 4, 'sort_keys': True}",
        "{'indent': 1}",
        "{'separators': (',', ':')}",
        "{}",
    ] {
        for with_ids in [true, false] {
            let fixture = NotebookFixture::with(notebook(&three(with_ids)));
            let base = fixture.survey();
            let reformatted = Command::new(python())
                .args(["-c", script])
                .arg(&fixture.path)
                .arg(keys)
                .status()
                .unwrap();
            assert!(reformatted.success());
            let theirs = fixture.content();
            let updates: Vec<CellUpdate> = (0..3)
                .map(|cell| update(cell, 1, stream_output(&cell.to_string())))
                .collect();
            let report = record(&fixture.path, &base, &updates).unwrap();
            assert_eq!(report.conflicts, [], "{keys}");
            let content = fixture.content();
            let (old, new) = (Document::read(&theirs), Document::read(&content));
            for cell in 0..3 {
                let names = new.cells()[cell].names();
                assert_eq!(names, old.cells()[cell].names());
                let outputs = super::outputs_of(&new, cell);
                assert_eq!(lossy(&outputs), stream_output(&cell.to_string()));
            }
        }
    }
}

/// Kernel metadata is recorded, unless another program set it in the meantime.
#[test]
fn concurrent_kernel_metadata_stays() {
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
        let fixture = NotebookFixture::with(with(before));
        let base = fixture.survey();
        fs::write(&fixture.path, with(after)).unwrap();
        // Twice, as a run saves: our own write is not a concurrent change.
        for _ in 0..2 {
            record_with(&fixture.path, &base, &[update(0, 1, "[]")], &set).unwrap();
        }
        let now: Value = serde_json::from_slice(&fixture.content()).unwrap();
        let names =
            ["kernelspec", "language_info"].map(|name| now["metadata"][name]["name"].clone());
        assert_eq!(names, [expected.0, expected.1], "{before} {after}");
    }
}

#[test]
fn missing_or_invalid_file_is_left_alone() {
    let fixture = NotebookFixture::with(notebook(&three(true)));
    let base = fixture.survey();
    let updates = [update(0, 1, stream_output("x"))];
    for content in [
        "",
        "{",
        "plain text",
        r#"{"cells":1,"nbformat":4}"#,
        "{\"worksheets\":[],\"nbformat\":3}",
    ] {
        fs::write(&fixture.path, content).unwrap();
        let error = record(&fixture.path, &base, &updates).unwrap_err();
        assert!(matches!(error, NotebookError::Format { .. }), "{error}");
        assert_eq!(lossy(&fixture.content()), content);
    }
    fs::remove_file(&fixture.path).unwrap();
    let error = record(&fixture.path, &base, &updates).unwrap_err();
    assert!(matches!(error, NotebookError::NotFound { .. }), "{error}");
    assert_eq!(fixture.names(), [""; 0]);
    fs::create_dir(&fixture.path).unwrap();
    record(&fixture.path, &base, &updates).unwrap_err();
    fs::remove_dir(&fixture.path).unwrap();
    fs::remove_dir(fixture.dir.path()).unwrap();
    record(&fixture.path, &base, &updates).unwrap_err();
}
