//! Shared by the fuzz targets: notebooks to start from, and checks for every result.

use cellwright_notebook::{Cells, Notebook, OutputAction, Plan, Slot, compose, outputs};

/// Notebooks that differ in everything that an edit must keep: layout, escapes, line endings, ids,
/// the shape of `source`, lone surrogates, unknown members, unusual order of members.
pub const NOTEBOOKS: [&str; 5] = [
    // As Jupyter writes it.
    "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"source\": [\n    \"# Title\\n\",\n    \"\\n\",\n    \"text\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"a1\",\n   \"metadata\": {\n    \"tags\": [\n     \"x\"\n    ]\n   },\n   \"outputs\": [\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"1\\n\"\n     ]\n    }\n   ],\n   \"source\": [\n    \"x = 1\\n\",\n    \"print(x)\"\n   ]\n  },\n  {\n   \"cell_type\": \"raw\",\n   \"id\": \"r\",\n   \"metadata\": {},\n   \"source\": []\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n",
    // On one line, in ASCII, without ids, sources as single strings.
    r##"{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":[{"cell_type":"code","source":"\u00e9 = 1\n# %% [code] cell:0\n# %%% [raw]\r\n","metadata":{},"outputs":[],"execution_count":null},{"source":"","cell_type":"markdown","metadata":{},"attachments":{"a.png":{}}}]}"##,
    // A byte order mark, CRLF in the file and in a source, tabs.
    "\u{feff}{\r\n\t\"cells\": [\r\n\t\t{\"cell_type\": \"code\", \"metadata\": {}, \"source\": [\"a\\r\\n\", \"b\\r\\n\"], \"execution_count\": 1, \"outputs\": [], \"id\": \"é\"}\r\n\t],\r\n\t\"metadata\": {},\r\n\t\"nbformat\": 4,\r\n\t\"nbformat_minor\": 5\r\n}",
    // Lone surrogates, unusual line splits, a duplicate id, an invalid id.
    r#"{"cells": [{"cell_type": "raw", "id": "s", "metadata": {}, "source": "\ud83d x \ude00\nsecond"}, {"cell_type": "raw", "id": "s", "metadata": {}, "source": ["\ud83d", "\ude00\nb\n", "", "c"]}, {"cell_type": "code", "id": 7, "metadata": {}, "outputs": [], "execution_count": null, "source": "z\u0000\uFFFD", "extra": [1e400, NaN]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#,
    // No cells.
    "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}",
];

/// Notebook number `choice`, modulo the number of notebooks.
pub fn notebook(choice: u8) -> Notebook {
    let text = NOTEBOOKS[usize::from(choice) % NOTEBOOKS.len()];
    Notebook::parse(text).expect("the notebooks above are well formed")
}

/// Applies `plan` and checks that the result is a notebook with exactly the planned cells, and that
/// the old cells are otherwise unchanged. Returns the result.
pub fn apply(old: &Notebook, plan: &Plan) -> Notebook {
    let edited = compose(old, plan);
    let bytes = edited.to_bytes();
    let new = match Notebook::parse(&bytes[..]) {
        Ok(new) => new,
        Err(error) => panic!(
            "the result is not a notebook: {error}\n{}",
            String::from_utf8_lossy(&bytes)
        ),
    };
    assert_eq!(new.bytes(), bytes);
    assert_eq!(new.revision(), edited.revision(), "revisions differ");
    assert_eq!(new.minor(), old.minor());
    assert_eq!(new.count(), plan.slots.len(), "number of cells");
    for (index, slot) in plan.slots.iter().enumerate() {
        check_cell(old, slot, &new, index);
    }
    if plan.changes_nothing(old) {
        assert_eq!(
            bytes,
            old.bytes(),
            "the plan changes nothing, but the bytes changed"
        );
    }
    new
}

fn check_cell(old: &Notebook, slot: &Slot, new: &Notebook, index: usize) {
    assert_eq!(new.kind(index), slot.kind, "kind of cell {index}");
    let source = match (&slot.source, slot.origin) {
        (Some(source), _) => source.clone(),
        (None, Some(origin)) => old.source(origin).into_owned(),
        (None, None) => String::new(),
    };
    assert_eq!(new.source(index), source, "source of cell {index}");
    match slot.origin {
        Some(origin) => {
            assert_eq!(new.id(index), old.id(origin), "id of cell {index}");
            if slot.kind == old.kind(origin) {
                check_outputs(old, origin, slot, new, index);
            }
        }
        None if new.requires_ids() => {
            let id = new.id(index).expect("a new cell of nbformat 4.5 has an id");
            let others = (0..new.count()).filter(|&cell| cell != index);
            for other in others {
                assert_ne!(Some(&id), new.id(other).as_ref(), "duplicate id");
            }
        }
        None => assert_eq!(new.id(index), None, "an id before nbformat 4.5"),
    }
}

fn check_outputs(old: &Notebook, origin: usize, slot: &Slot, new: &Notebook, index: usize) {
    let after = (
        outputs::execution_count(new, index),
        outputs::summaries(new, index),
    );
    let expected = match slot.outputs {
        OutputAction::Keep => (
            outputs::execution_count(old, origin),
            outputs::summaries(old, origin),
        ),
        OutputAction::Clear => (None, Vec::new()),
    };
    assert_eq!(after, expected, "outputs of cell {index}");
}
