//! nbformat, Python's notebook library, agrees with the crate before and after every kind of
//! edit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_notebook::{
    CellKind, Cells, ConflictMarkers, FormatError, Notebook, OutputAction, Plan, Slot, compose,
    merge_three_way, upgrade,
};
use serde_json::{Map, Value, json};

use crate::support::{corpus, fixtures, notebooks_in, repository};

/// Larger notebooks get all edits at once, to save Python's time.
const LARGE: usize = 300_000;

/// The interpreter that has nbformat.
pub(crate) fn python() -> PathBuf {
    let given = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map(PathBuf::from);
    let python = given.unwrap_or_else(|| repository().join("target/venv/bin/python"));
    assert!(
        python.is_file(),
        "there is no Python with nbformat at {}: run scripts/test, which makes one, or set \
         CELLWRIGHT_TEST_PYTHON",
        python.display()
    );
    python
}

fn sources(notebook: &Notebook) -> Vec<String> {
    (0..notebook.count())
        .map(|cell| notebook.source(cell).into_owned())
        .collect()
}

fn next_kind(kind: CellKind) -> CellKind {
    match kind {
        CellKind::Code => CellKind::Markdown,
        CellKind::Markdown => CellKind::Raw,
        CellKind::Raw => CellKind::Code,
    }
}

/// Edits of a notebook, by name.
fn edits(notebook: &Notebook) -> Vec<(&'static str, Plan)> {
    let draft = |operation: Operation| operation.draft(notebook).unwrap().plan;
    let insert = |kind| Operation::Insert {
        position: CellPosition::End,
        kind,
        source: "print('é')\n\n# two lines more".to_owned(),
        tags: Vec::new(),
    };
    let mut edits = vec![
        ("insert code", draft(insert(CellKind::Code))),
        ("insert markdown", draft(insert(CellKind::Markdown))),
        ("insert raw", draft(insert(CellKind::Raw))),
    ];
    if notebook.count() == 0 {
        return edits;
    }
    let middle = Address::Index(notebook.count() / 2);
    let source = format!("{}\nmore", notebook.source(notebook.count() / 2));
    let cell = middle.clone();
    let tags = Some(vec!["a".to_owned(), "é".to_owned()]);
    edits.push(("edit", draft(Operation::Edit { cell, source, tags })));
    edits.push(("delete", draft(Operation::Delete { cell: middle })));
    edits.push(("clear", draft(Operation::Clear { cell: None })));
    for (name, steps) in [("type", 1), ("type twice", 2)] {
        let mut plan = Plan::keep_all(notebook);
        for slot in &mut plan.slots {
            slot.kind = (0..steps).fold(slot.kind, |kind, _| next_kind(kind));
        }
        edits.push((name, plan));
    }
    if notebook.bytes().len() > LARGE {
        let mut plan = Plan::keep_all(notebook);
        plan.slots.rotate_left(1);
        plan.slots[0].kind = next_kind(plan.slots[0].kind);
        plan.slots[0].source = Some("changed".to_owned());
        plan.slots.insert(0, Slot::new(CellKind::Code, "1 + 1"));
        plan.slots.push(Slot::new(CellKind::Markdown, "# End"));
        return vec![("everything", plan)];
    }
    edits
}

/// The merge of two edited versions of the notebook.
fn merge(notebook: &Notebook) -> Vec<u8> {
    let mut ours = Plan::keep_all(notebook);
    let mut theirs = ours.clone();
    if let Some(slot) = ours.slots.first_mut() {
        slot.source = Some(format!("# ours\n{}", notebook.source(0)));
        slot.outputs = OutputAction::Clear;
    }
    ours.slots.push(Slot::new(CellKind::Code, "'ours'"));
    if let Some(slot) = theirs.slots.first_mut() {
        slot.source = Some(format!("# theirs\n{}", notebook.source(0)));
    }
    if let Some(slot) = theirs.slots.last_mut() {
        slot.kind = next_kind(slot.kind);
    }
    theirs.slots.push(Slot::new(CellKind::Markdown, "*theirs*"));
    let side = |plan: &Plan| Notebook::parse(compose(notebook, plan).to_bytes()).unwrap();
    merge_three_way(
        notebook,
        &side(&ours),
        &side(&theirs),
        &ConflictMarkers::default(),
    )
    .bytes
}

/// Files for nbformat to check, with the sources that the crate reads from them.
pub(crate) struct OracleJobs<'f> {
    dir: &'f Path,
    jobs: Vec<Value>,
    files: usize,
}

impl<'f> OracleJobs<'f> {
    /// No jobs yet. Files are written to `directory`.
    pub(crate) fn new(dir: &'f Path) -> Self {
        Self {
            dir,
            jobs: Vec::new(),
            files: 0,
        }
    }

    /// A notebook, and the same after outputs were recorded.
    pub(crate) fn add_recorded(&mut self, path: &Path, recorded: &[u8]) {
        let before = Notebook::parse(fs::read(path).unwrap()).unwrap();
        let recorded = self.variant(recorded);
        self.jobs.push(json!({
            "name": path.file_name().unwrap().to_string_lossy(),
            "original": path,
            "sources": sources(&before),
            "variants": { "recorded": recorded },
        }));
    }

    fn add(&mut self, path: &Path) {
        let bytes = fs::read(path).unwrap();
        let mut variants = Map::new();
        let mut ours = Vec::new();
        match Notebook::parse(&bytes[..]) {
            Ok(notebook) => {
                ours = sources(&notebook);
                for (name, plan) in edits(&notebook) {
                    let new = compose(&notebook, &plan).to_bytes();
                    variants.insert(name.to_owned(), self.variant(&new));
                }
                variants.insert("merge".to_owned(), self.variant(&merge(&notebook)));
            }
            Err(FormatError::OldFormat { .. }) => {}
            Err(_) => return,
        }
        if let Ok(Some((_, new))) = upgrade(&bytes) {
            variants.insert("upgrade".to_owned(), self.variant(&new));
        }
        self.jobs.push(json!({
            "name": path.file_name().unwrap().to_string_lossy(),
            "original": path,
            "sources": ours,
            "variants": variants,
        }));
    }

    /// Writes an edited notebook and returns its path with the sources that the crate reads from
    /// it.
    fn variant(&mut self, bytes: &[u8]) -> Value {
        let path = self.dir.join(format!("{}.ipynb", self.files));
        self.files += 1;
        fs::write(&path, bytes).unwrap();
        let notebook = Notebook::parse(bytes).unwrap();
        json!({ "path": path, "sources": sources(&notebook) })
    }

    pub(crate) fn run(&self) -> Vec<Value> {
        let jobs = serde_json::to_vec(&self.jobs).unwrap();
        fs::write(self.dir.join("jobs.json"), jobs).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle.py");
        let output = Command::new(python())
            .arg(script)
            .arg(self.dir)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn check(answer: &Value, problems: &mut Vec<String>) {
    let before = &answer["before"];
    let mut report = |variant: &str, result: &Value| {
        problems.push(format!("{} {variant}: {result}", answer["name"]));
    };
    if before["differing"] != json!([]) {
        report("original", before);
    }
    for (name, after) in answer["after"].as_object().unwrap() {
        let worse = before["valid"] == true && after["valid"] == false;
        // An upgrade keeps duplicate ids, which older formats do not check.
        let odder = after["ids"].as_u64() > before["ids"].as_u64() && name != "upgrade";
        if worse || odder {
            report(name, after);
        }
        if after["differing"] != json!([]) {
            report(name, after);
        }
    }
    if answer["version"].is_array() {
        if answer["version"] != json!([4, 5]) {
            report("version", &answer["version"]);
        }
        if !answer["conversion"].is_null() {
            report("conversion", &answer["conversion"]);
        }
    }
}

#[test]
fn edits_keep_nbformat_validity() {
    let dir = tempfile::tempdir().unwrap();
    let mut jobs = OracleJobs::new(dir.path());
    for path in fixtures() {
        jobs.add(&path);
    }
    if let Some(corpus) = corpus() {
        for path in notebooks_in(&corpus) {
            jobs.add(&path);
        }
    }
    let answers = jobs.run();
    assert_eq!(answers.len(), jobs.jobs.len());
    let valid = answers.iter().filter(|a| a["before"]["valid"] == true);
    assert!(valid.count() > 5, "Python finds nothing valid");
    let mut problems = Vec::new();
    for answer in &answers {
        check(answer, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Arrays of lines: every sequence of up to three lines with and without line breaks.
fn line_arrays() -> Vec<Vec<&'static str>> {
    const LINES: [&str; 6] = ["", "a = 'é'", "b\n", "c\r", "\n", "d\u{2028}"];
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..3 {
        longest = longest
            .iter()
            .flat_map(|start| LINES.map(|line| [&start[..], &[line]].concat()))
            .collect();
        all.extend(longest.clone());
    }
    all
}

/// A notebook in nbformat 2 or 3 with each array as source, as stream and as output data.
fn old_notebook(major: u32, arrays: &[Vec<&str>]) -> Value {
    let cells = arrays.iter().flat_map(|lines| {
        let outputs = json!([
            {"output_type": "stream", "stream": "stderr", "text": lines},
            {"output_type": "pyout", "prompt_number": 2, "text": lines, "html": lines, "png": "QQ=="},
            {"output_type": "display_data", "svg": lines, "json": ["[1,", " 2]"], "latex": "$x$"},
            {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": ["one", "two"]},
        ]);
        [
            json!({"cell_type": "code", "collapsed": true, "input": lines, "language": "python",
                   "outputs": outputs, "prompt_number": 2}),
            json!({"cell_type": "markdown", "source": lines}),
            json!({"cell_type": "heading", "level": 2, "source": lines}),
        ]
    });
    let cells: Vec<Value> = cells.collect();
    json!({"metadata": {"name": "old"}, "nbformat": major, "nbformat_minor": 0,
           "worksheets": [{"cells": cells}]})
}

#[test]
fn lines_of_old_formats_are_joined_as_nbformat_joins_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut jobs = OracleJobs::new(dir.path());
    let arrays = line_arrays();
    // nbformat 2 has no line breaks in lines. For files that have some, Python's nbformat doubles
    // them.
    let without_breaks = arrays.iter().filter(|lines| {
        lines
            .first()
            .is_none_or(|line| !line.ends_with(['\n', '\r']))
    });
    for (name, old) in [
        (
            "v2",
            old_notebook(2, &without_breaks.cloned().collect::<Vec<_>>()),
        ),
        ("v3", old_notebook(3, &arrays)),
    ] {
        let path = dir.path().join(format!("{name}.ipynb"));
        fs::write(&path, old.to_string()).unwrap();
        jobs.add(&path);
    }
    let answers = jobs.run();
    assert_eq!(answers.len(), 2);
    let mut problems = Vec::new();
    for answer in &answers {
        assert_eq!(answer["after"]["upgrade"]["valid"], true, "{answer}");
        check(answer, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
