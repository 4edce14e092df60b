//! What cells put out is written into their notebook: those values change and not a byte beside them.

mod memory;
mod random;
mod trouble;
mod underneath;

use std::fs;
use std::path::{Path, PathBuf};

use cellwright_notebook::file::{self, Entry, Piece, Record, Recorded, Survey};
use cellwright_notebook::{CellKind, Cells, NotebookError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::oracle::Jobs;
use crate::support::json::Document;
use crate::support::relayout::{Layout, Order, Spacing, relayout};
use crate::support::{corpus, fixtures, notebooks_in, shown};

/// A notebook in a folder of its own.
struct Place {
    folder: TempDir,
    path: PathBuf,
}

impl Place {
    fn with(content: impl AsRef<[u8]>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.ipynb");
        fs::write(&path, content).unwrap();
        Self { folder, path }
    }

    fn survey(&self) -> Survey {
        file::survey(&self.path).unwrap()
    }

    fn content(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// The names in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn piece(text: impl AsRef<[u8]>) -> Piece {
    Piece::Bytes(text.as_ref().into())
}

/// What a cell gets, without anything about when it ran.
fn entry(cell: usize, count: u64, outputs: impl AsRef<[u8]>) -> Entry {
    Entry {
        cell,
        count: Some(count),
        outputs: vec![piece(outputs)],
        metadata: None,
    }
}

/// An output that says something, on one line.
fn said(words: &str) -> String {
    json!([{"name": "stdout", "output_type": "stream", "text": [words]}]).to_string()
}

fn record(path: &Path, ran: &Survey, entries: &[Entry]) -> Result<Recorded, NotebookError> {
    record_with(path, ran, entries, &[])
}

fn record_with(
    path: &Path,
    ran: &Survey,
    entries: &[Entry],
    metadata: &[(&'static str, String)],
) -> Result<Recorded, NotebookError> {
    file::record(Record {
        path,
        ran,
        entries,
        metadata,
        expected: ran.revision(),
        watch: None,
    })
}

/// The layouts that notebooks come in.
fn layouts() -> Vec<Layout> {
    let indented = |unit, newline| Spacing::Indented { unit, newline };
    let inline = |comma, colon| Spacing::Inline { comma, colon };
    let mut layouts = Vec::new();
    for spacing in [
        indented(" ", "\n"),
        indented("  ", "\n"),
        indented("    ", "\n"),
        indented("\t", "\n"),
        indented("", "\n"),
        indented(" ", "\r\n"),
        inline(", ", ": "),
        inline(",", ":"),
    ] {
        for (mark, end) in [(false, "\n"), (true, ""), (false, "\r\n")] {
            layouts.push(Layout {
                spacing: spacing.clone(),
                order: Order::AsIs,
                mark,
                end,
            });
        }
    }
    layouts
}

/// The outputs of a cell of a document, as they stand there.
fn outputs_of(document: &Document<'_>, cell: usize) -> Vec<u8> {
    let outputs = document.cells()[cell].get("outputs").unwrap();
    outputs.raw(document.bytes).to_vec()
}

/// Records what `after` has and `before` has not; the file must be `after` then, in every layout.
fn becomes(before: &str, after: &str, entries: &[Entry], metadata: &[(&'static str, String)]) {
    for layout in layouts() {
        let (before, after) = (relayout(before, &layout), relayout(after, &layout));
        let document = Document::read(&after);
        let place = Place::with(&before);
        let laid_out = |entry: &Entry| Entry {
            outputs: vec![piece(outputs_of(&document, entry.cell))],
            ..entry.clone()
        };
        let entries: Vec<Entry> = entries.iter().map(laid_out).collect();
        let recorded = record_with(&place.path, &place.survey(), &entries, metadata).unwrap();
        assert_eq!(shown(&place.content()), shown(&after), "{layout:?}");
        assert!(!recorded.merged);
        assert_eq!(recorded.conflicts, []);
        assert_eq!(recorded.survey.revision(), place.survey().revision());
        assert_eq!(place.names(), ["a.ipynb"]);
    }
}

const OLD: &str = r#"[{"name":"stdout","output_type":"stream","text":["old\n","old\n"]}]"#;
const NEW: &str = r#"[{"data":{"text/plain":["new"]},"execution_count":7,"metadata":{},"output_type":"execute_result"},{"name":"stderr","output_type":"stream","text":["ä"]}]"#;

#[test]
fn only_what_a_cell_put_out_changes_in_any_layout() {
    let notebook = |first: &str, second: &str| {
        format!(
            r##"{{"cells":[{{"cell_type":"code",{first},"source":["print(1)\n","é"]}},{{"attachments":{{}},"cell_type":"markdown","id":"m","metadata":{{}},"source":"# outputs: []"}},{{"source":"x","outputs":{second},"metadata":{{}},"id":"c","execution_count":null,"cell_type":"code","more":{{"outputs":[1.0]}}}}],"metadata":{{"n":1e400}},"nbformat":4,"nbformat_minor":5}}"##
        )
    };
    let cell = |count: &str, outputs: &str| {
        format!(
            r#""execution_count":{count},"id":"a","metadata":{{"tags":["a"]}},"outputs":{outputs}"#
        )
    };
    becomes(
        &notebook(&cell("3", OLD), OLD),
        &notebook(&cell("7", NEW), OLD),
        &[entry(0, 7, "")],
        &[],
    );
    // Nothing, and no number.
    let none = Entry {
        cell: 0,
        ..Entry::default()
    };
    becomes(
        &notebook(&cell("3", OLD), OLD),
        &notebook(&cell("null", "[]"), OLD),
        &[none],
        &[],
    );
    becomes(
        &notebook(&cell("3", "[]"), OLD),
        &notebook(&cell("7", NEW), OLD),
        &[entry(0, 7, "")],
        &[],
    );
}

#[test]
fn what_a_cell_does_not_have_is_put_behind_what_it_has() {
    let notebook = |rest: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"raw","source":""}},{{"cell_type":"code","source":"x"{rest}}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#
        )
    };
    let both = format!(r#","execution_count":7,"outputs":{NEW}"#);
    becomes(&notebook(""), &notebook(&both), &[entry(1, 7, "")], &[]);
    let mut timed = entry(1, 7, "");
    timed.metadata = Some(("execution", r#"{"a":"b"}"#.to_owned()));
    let all = format!(r#"{both},"metadata":{{"execution":{{"a":"b"}}}}"#);
    becomes(&notebook(""), &notebook(&all), &[timed.clone()], &[]);
    let old = format!(r#","metadata":null,"outputs":{OLD}"#);
    let new =
        format!(r#","metadata":{{"execution":{{"a":"b"}}}},"outputs":{NEW},"execution_count":7"#);
    becomes(&notebook(&old), &notebook(&new), &[timed], &[]);
}

#[test]
fn when_a_cell_ran_stands_among_what_it_says_about_itself() {
    let notebook = |metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{metadata},"outputs":{NEW},"source":"x"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let ran = r#"{"iopub.status.busy":"now"}"#;
    let mut timed = entry(0, 7, "");
    timed.metadata = Some(("execution", ran.to_owned()));
    for (before, after) in [
        ("{}", r#"{"execution":RAN}"#),
        (r#"{"tags":["a"]}"#, r#"{"execution":RAN,"tags":["a"]}"#),
        (
            r#"{"collapsed":true}"#,
            r#"{"collapsed":true,"execution":RAN}"#,
        ),
        (
            r#"{"collapsed":true,"tags":[],"deep":{"execution":1}}"#,
            r#"{"collapsed":true,"tags":[],"deep":{"execution":1},"execution":RAN}"#,
        ),
        (
            r#"{"z":NaN,"execution":{"old":[1,2]},"tags":["ä"]}"#,
            r#"{"z":NaN,"execution":RAN,"tags":["ä"]}"#,
        ),
    ] {
        let after = after.replace("RAN", ran);
        becomes(&notebook(before), &notebook(&after), &[timed.clone()], &[]);
    }
}

#[test]
fn the_notebook_says_which_kernel_it_ran_on() {
    let notebook = |metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{{}},"outputs":{NEW},"source":"x"}}]{metadata},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let metadata = [
        ("kernelspec", r#"{"name":"python3"}"#.to_owned()),
        (
            "language_info",
            r#"{"name":"python","versions":[3,12]}"#.to_owned(),
        ),
    ];
    let (spec, info) = (&metadata[0].1, &metadata[1].1);
    for (before, after) in [
        (
            String::new(),
            format!(r#","metadata":{{"kernelspec":{spec},"language_info":{info}}}"#),
        ),
        (
            r#","metadata":{}"#.to_owned(),
            format!(r#","metadata":{{"kernelspec":{spec},"language_info":{info}}}"#),
        ),
        (
            r#","metadata":{"authors":[],"kernelspec":{"name":"old"},"zoo":1.0}"#.to_owned(),
            format!(
                r#","metadata":{{"authors":[],"kernelspec":{spec},"language_info":{info},"zoo":1.0}}"#
            ),
        ),
    ] {
        let (before, after) = (notebook(&before), notebook(&after));
        becomes(&before, &after, &[entry(0, 7, "")], &metadata);
    }
}

/// What is new is spelt as the rest of the file: with escapes, if that is how it is done there.
#[test]
fn names_beyond_ascii_are_spelt_as_in_the_rest_of_the_file() {
    let notebook = |source: &str, metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{{}},"outputs":[],"source":"{source}"}}],"metadata":{metadata},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let spec = [("kernelspec", r#"{"display_name":"Größe 𝄞"}"#.to_owned())];
    let none = Entry {
        cell: 0,
        count: Some(7),
        ..Entry::default()
    };
    let said = |name: &str| format!(r#"{{"kernelspec":{{"display_name":"{name}"}}}}"#);
    for (source, name) in [
        ("\\u00e4", "Gr\\u00f6\\u00dfe \\ud834\\udd1e"),
        ("ä", "Größe 𝄞"),
        ("plain", "Größe 𝄞"),
    ] {
        let place = Place::with(notebook(source, "{}"));
        record_with(
            &place.path,
            &place.survey(),
            std::slice::from_ref(&none),
            &spec,
        )
        .unwrap();
        assert_eq!(shown(&place.content()), notebook(source, &said(name)));
    }
}

#[test]
fn of_two_members_with_one_name_the_one_that_counts_is_replaced() {
    let notebook = |count: &str, outputs: &str| {
        format!(
            r#"{{"cells":[{{"outputs":["first"],"cell_type":"code","execution_count":1,"metadata":{{}},"outputs":{outputs},"source":"x","exec\u0075tion_count":{count}}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#
        )
    };
    becomes(
        &notebook("2", OLD),
        &notebook("7", NEW),
        &[entry(0, 7, "")],
        &[],
    );
}

#[test]
fn cells_that_cannot_be_told_apart_get_their_own_as_long_as_nobody_else_writes() {
    let notebook = |outputs: [&str; 3]| {
        let cell = |outputs| {
            format!(
                r#"{{"cell_type":"code","execution_count":7,"id":"same","metadata":{{}},"outputs":{outputs},"source":"x"}}"#
            )
        };
        format!(
            r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
            outputs.map(cell).join(",")
        )
    };
    let entries = [entry(0, 7, ""), entry(2, 7, "")];
    becomes(
        &notebook([OLD, OLD, "[]"]),
        &notebook([NEW, OLD, OLD]),
        &entries,
        &[],
    );
}

#[test]
fn pieces_come_from_memory_and_from_files_and_can_be_cut() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    let text = format!("before[\"{}\"]behind", "x".repeat(200_000));
    fs::write(&path, &text).unwrap();
    let stored = Piece::Stored {
        file: std::sync::Arc::new(fs::File::open(&path).unwrap()),
        start: 0,
        length: text.len() as u64,
    };
    let length = text.len() as u64;
    for whole in [stored, piece(&text)] {
        assert_eq!(whole.length(), length);
        let part = whole.slice(6, length - 6);
        assert_eq!(part.length(), length - 12);
        assert_eq!(shown(&part.read().unwrap()), text[6..text.len() - 6]);
        // Beyond the end there is nothing.
        assert_eq!(whole.slice(length - 3, length + 9).read().unwrap(), b"ind");
        assert_eq!(whole.slice(9, 3).length(), 0);
        let place = Place::with(
            r#"{"cells":[{"cell_type":"code","outputs":[],"source":"x","execution_count":null,"metadata":{}}],"metadata":{},"nbformat":4,"nbformat_minor":4}"#,
        );
        let entry = Entry {
            cell: 0,
            outputs: vec![part, piece("")],
            ..Entry::default()
        };
        record(&place.path, &place.survey(), &[entry]).unwrap();
        let content = place.content();
        let outputs = outputs_of(&Document::read(&content), 0);
        assert_eq!(shown(&outputs), text[6..text.len() - 6]);
    }
}

/// A store that is shorter than it was said to be must not become a notebook.
#[test]
fn a_piece_that_cannot_be_read_leaves_the_notebook() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    fs::write(&path, "[1").unwrap();
    let entry = Entry {
        cell: 0,
        outputs: vec![Piece::Stored {
            file: std::sync::Arc::new(fs::File::open(&path).unwrap()),
            start: 0,
            length: 3,
        }],
        ..Entry::default()
    };
    let old = r#"{"cells":[{"cell_type":"code","outputs":[],"source":"x"}],"nbformat":4,"nbformat_minor":4}"#;
    let place = Place::with(old);
    record(&place.path, &place.survey(), &[entry]).unwrap_err();
    assert_eq!(shown(&place.content()), old);
    assert_eq!(place.names(), ["a.ipynb"]);
}

#[test]
fn a_copy_is_the_same_and_takes_the_place_of_what_was_there() {
    let source = Place::with(OLD_COPY);
    for old in [None, Some(""), Some("no notebook"), Some(OLD_COPY)] {
        let place = Place::with("");
        let to = place.folder.path().join("to.ipynb");
        if let Some(old) = old {
            fs::write(&to, old).unwrap();
        }
        let copied = file::copy(&source.survey(), &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), OLD_COPY);
        assert_eq!(copied.revision(), source.survey().revision());
        assert_eq!(place.names(), ["a.ipynb", "to.ipynb"]);
    }
    // Onto itself.
    file::copy(&source.survey(), &source.path).unwrap();
    assert_eq!(shown(&source.content()), OLD_COPY);
    let nowhere = source.folder.path().join("no/such/folder.ipynb");
    assert!(file::copy(&source.survey(), &nowhere).is_err());
    assert!(file::copy(&source.survey(), source.folder.path()).is_err());
    assert_eq!(source.names(), ["a.ipynb"]);
}

const OLD_COPY: &str = "{\"cells\": [ ], \"nbformat\":4, \"nbformat_minor\": 5}\r\n\n";

/// Every code cell of every notebook that we have gets outputs, as they are written there.
#[test]
fn python_finds_every_recorded_notebook_as_valid_as_it_was() {
    let folder = TempDir::new().unwrap();
    let mut jobs = Jobs::new(folder.path());
    let mut paths = fixtures();
    paths.extend(
        corpus()
            .map(|corpus| notebooks_in(&corpus))
            .unwrap_or_default(),
    );
    let metadata = [
        (
            "kernelspec",
            r#"{"display_name":"P","language":"python","name":"p"}"#.to_owned(),
        ),
        ("language_info", r#"{"name":"python"}"#.to_owned()),
    ];
    for path in paths {
        let before = fs::read(&path).unwrap();
        let place = Place::with(&before);
        let Ok(survey) = file::survey(&place.path) else {
            continue;
        };
        let code = (0..survey.count()).filter(|&cell| survey.kind(cell) == CellKind::Code);
        let entries: Vec<Entry> = code
            .map(|cell| Entry {
                metadata: Some(("execution", "{}".to_owned())),
                ..entry(cell, 7, NEW)
            })
            .collect();
        record_with(&place.path, &survey, &entries, &metadata).unwrap();
        jobs.add_recorded(&path, &place.content());
    }
    let answers = jobs.ask();
    let valid = |answer: &&Value| answer["before"]["valid"] == true;
    assert!(answers.iter().filter(valid).count() > 5);
    let mut problems = Vec::new();
    for answer in &answers {
        crate::oracle::check(answer, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
