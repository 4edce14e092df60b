//! Real notebooks: the fixtures of the tests, and a corpus where it is available.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cellwright_notebook::edit::{Address, Operation};
use cellwright_notebook::{
    Cells, FormatError, MarkerStyle, Notebook, Notice, Revision, compose, edit, file, parse,
    render, rewrite, upgrade,
};

use crate::single::assert_only_changed;
use crate::support::json::Document;
use crate::support::{corpus, fixtures, notebooks_in};

/// Checks everything that must hold for an accepted notebook.
fn check(path: &Path, notebook: &Notebook) {
    let name = path.display();
    let bytes = notebook.bytes();
    let document = Document::read(bytes);
    assert_eq!(notebook.count(), document.cells().len(), "{name}");
    for cell in 0..notebook.count() {
        assert_eq!(notebook.kind(cell).name(), document.kind(cell), "{name}");
        assert_eq!(notebook.source(cell), document.source(cell), "{name}");
        assert_eq!(
            notebook.id(cell).map(String::from),
            document.id(cell),
            "{name}"
        );
    }
    for markers in [MarkerStyle::Indexes, MarkerStyle::Ids] {
        let text = render(notebook, markers);
        let (plan, notices) = rewrite(notebook, parse(&text).unwrap());
        assert_eq!(notices, [], "{name}");
        assert!(compose(notebook, &plan).to_bytes() == bytes, "{name}");
        let printed = edit::replace_all(notebook, &format!("{text}\n")).unwrap();
        assert!(printed.plan.changes_nothing(notebook), "{name}");
    }
    // The same file, read without keeping it in memory.
    let view = file::read_view(path, Some(MarkerStyle::Ids), None).unwrap();
    assert!(view.text == render(notebook, MarkerStyle::Ids), "{name}");
    assert_eq!(view.revision, notebook.revision(), "{name}");
    if notebook.count() > 0 {
        let last = notebook.count() - 1;
        let is_large = bytes.len() > 500_000;
        let cells = if is_large {
            vec![last / 2]
        } else {
            vec![0, last / 2, last]
        };
        for cell in cells {
            check_edit(path, notebook, &document, cell);
        }
    }
}

/// Appends a line to one cell.
fn check_edit(path: &Path, notebook: &Notebook, document: &Document<'_>, cell: usize) {
    let source = format!("{}\n# one more line", notebook.source(cell));
    let operation = Operation::Edit {
        cell: Address::Index(cell),
        source: source.clone(),
        tags: None,
    };
    let plan = operation.draft(notebook).unwrap().plan;
    let new = compose(notebook, &plan).to_bytes();
    let node = &document.cells()[cell];
    let span = node.get("source").unwrap_or(node).span.clone();
    assert_only_changed(notebook.bytes(), &new, span);
    let edited = Notebook::parse(new).unwrap();
    assert_eq!(edited.source(cell), source, "{}", path.display());
}

#[test]
fn fixtures_are_accepted_or_rejected_by_name() {
    for path in fixtures() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let parsed = Notebook::parse(fs::read(&path).unwrap());
        match (name, parsed) {
            ("v3" | "v3_odd", Err(FormatError::OldFormat { major: 3 }))
            | ("invalid_truncated", Err(FormatError::Json { ended: true, .. }))
            | ("invalid_conflict_marks", Err(FormatError::Json { ended: false, .. }))
            | ("invalid_latin1", Err(FormatError::NotUtf8 { .. }))
            | ("invalid_cell_type", Err(FormatError::BadCell { index: 0, .. }))
            | ("invalid_no_cells", Err(FormatError::NoCells))
            | ("invalid_future", Err(FormatError::NewFormat { .. })) => {}
            (_, Ok(notebook)) if !name.starts_with("invalid") => check(&path, &notebook),
            (_, other) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn corpus_notebooks_round_trip() {
    let Some(dir) = corpus() else { return };
    for path in notebooks_in(&dir) {
        if let Ok(notebook) = Notebook::parse(fs::read(&path).unwrap()) {
            check(&path, &notebook);
        }
    }
}

/// A notebook in nbformat 2 or 3 is read as its upgrade. Returns whether the file is one.
fn check_old_format(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    let parsed = Notebook::parse(&bytes[..]);
    if !matches!(parsed, Err(FormatError::OldFormat { major: 2..=3 })) {
        return false;
    }
    let name = path.display();
    let loaded = file::load_any_format(path, None);
    let Ok(Some((outcome, upgraded))) = upgrade(&bytes) else {
        assert!(loaded.is_err(), "{name}");
        assert!(file::read_view(path, None, None).is_err(), "{name}");
        return true;
    };
    let (notebook, notices) = loaded.unwrap();
    assert!(notebook.bytes() == upgraded, "{name}");
    assert_eq!(notebook.revision(), Revision::compute(&bytes), "{name}");
    assert_eq!(notebook.format(), outcome.from, "{name}");
    let notice = Notice::OldFormat { from: outcome.from };
    assert_eq!(notices.first(), Some(&notice), "{name}");
    let view = file::read_view(path, Some(MarkerStyle::Ids), None).unwrap();
    assert!(view.text == render(&notebook, MarkerStyle::Ids), "{name}");
    assert_eq!(
        (view.revision, view.notices),
        (notebook.revision(), notices),
        "{name}"
    );
    // Changes need the upgrade.
    assert!(file::load(path).is_err(), "{name}");
    assert!(fs::read(path).unwrap() == bytes, "{name}");
    true
}

#[test]
fn old_formats_are_read_as_their_upgrade() {
    let old = fixtures()
        .iter()
        .filter(|path| check_old_format(path))
        .count();
    assert!(old >= 2);
    let Some(dir) = corpus() else { return };
    let old = notebooks_in(&dir)
        .iter()
        .filter(|path| check_old_format(path))
        .count();
    assert!(old >= 40, "{old}");
}

/// An entry of the corpus manifest.
struct CorpusEntry {
    format: String,
    verdict: String,
}

fn manifest(dir: &Path) -> BTreeMap<String, CorpusEntry> {
    let text = fs::read_to_string(dir.join("MANIFEST.tsv")).unwrap();
    let mut rows = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|title| *title == name).unwrap();
    let (file, format, verdict) = (
        column("file"),
        column("nbformat"),
        column("nbformat_validate"),
    );
    rows.map(|row| {
        let entry = CorpusEntry {
            format: row[format].to_owned(),
            verdict: row[verdict].to_owned(),
        };
        (row[file].to_owned(), entry)
    })
    .collect()
}

#[test]
fn corpus_acceptance_matches_nbformat() {
    let Some(dir) = corpus() else { return };
    let entry = manifest(&dir);
    for path in notebooks_in(&dir) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(entry) = entry.get(name) else {
            continue;
        };
        let parsed = Notebook::parse(fs::read(&path).unwrap());
        let major = entry.format.split('.').next().unwrap();
        let is_right = match (entry.verdict.as_str(), major) {
            // Valid or not, an old format has no cells to show.
            (_, "2" | "3") => matches!(
                parsed,
                Err(FormatError::OldFormat { major: found }) if found.to_string() == major
            ),
            ("ok", "4") => parsed.is_ok(),
            // Readable, but invalid by the schema. Accepted notebooks of this group are wrong in
            // a detail that no edit depends on: `source`, `outputs`, `execution_count` or the
            // minor version is missing; a Markdown cell has outputs; ids occur where the minor
            // version allows none, or have invalid characters; a kernelspec has no name; an
            // output has an unknown member. Rejected ones have a cell without a valid
            // `cell_type`.
            ("NotebookValidationError", "4") => {
                matches!(parsed, Ok(_) | Err(FormatError::BadCell { .. }))
            }
            // Not JSON, not UTF-8, no object, or no format number.
            (
                "NotJSONError" | "UnicodeDecodeError" | "AttributeError" | "ValidationError"
                | "NBFormatError",
                _,
            ) => parsed.is_err(),
            (verdict, _) => panic!("{name}: unknown verdict {verdict}"),
        };
        assert!(is_right, "{name}: {} but {parsed:?}", entry.verdict);
    }
}
