//! Arbitrary bytes as a notebook file. A file that parses must round-trip through the text view byte
//! for byte, and everything that reads a notebook must accept it. The result of parsing is compared
//! with another JSON parser.

#![no_main]

use cellwright_fuzz::apply;
use cellwright_notebook::{
    Cells, FormatError, MarkerStyle, Notebook, Plan, Scope, compose, edit, outline, outputs, parse,
    render, render_textconv, rewrite, strip_file, upgrade,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let parsed = Notebook::parse(bytes);
    compare_with_serde(bytes, &parsed);
    check_upgrade(bytes, &parsed);
    check_strip(bytes, &parsed);
    if let Ok(notebook) = parsed {
        read_everything(&notebook);
        check_round_trips(&notebook);
    }
});

/// What git stores is a notebook if the file is one, and has nothing more to remove.
fn check_strip(bytes: &[u8], parsed: &Result<Notebook, FormatError>) {
    match strip_file(bytes) {
        Ok(stripped) => {
            assert_eq!(strip_file(&stripped).unwrap(), stripped);
            assert_eq!(Notebook::parse(&stripped[..]).is_ok(), parsed.is_ok());
        }
        Err(_) => assert!(parsed.is_err()),
    }
}

fn read_everything(notebook: &Notebook) {
    let entries = outline::outline(notebook);
    assert_eq!(entries.len(), notebook.count());
    notebook.irregularities();
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(entry.id.as_deref(), notebook.id(index).as_deref());
        assert_eq!(entry.outputs, outputs::summaries(notebook, index));
        outputs::stored_outputs(notebook, index);
    }
    render_textconv(notebook, Scope::All);
}

fn check_round_trips(notebook: &Notebook) {
    for markers in [MarkerStyle::Indexes, MarkerStyle::Ids] {
        let view = render(notebook, markers);
        let text = parse(&view).expect("a rendered view parses");
        let (plan, _) = rewrite(notebook, text);
        assert!(plan.changes_nothing(notebook), "{markers:?}:\n{view}");
        assert_eq!(compose(notebook, &plan).to_bytes(), notebook.bytes());
        // As printed, with a newline, and as an editor on Windows saves it.
        for printed in [format!("{view}\n"), crlf(&view)] {
            let draft = edit::replace_all(notebook, &printed).expect("a rendered view parses");
            let same = compose(notebook, &draft.plan).to_bytes() == notebook.bytes();
            // A carriage return of the source before a line feed looks like CRLF.
            assert!(
                same || has_carriage_return(notebook),
                "{markers:?}:\n{view}"
            );
        }
    }
    // With outputs, which `parse` must skip.
    let mut shown = String::new();
    for index in 0..notebook.count() {
        let source = notebook.source(index);
        let kind = notebook.kind(index);
        cellwright_notebook::append_cell(
            &mut shown,
            index,
            kind,
            None,
            &source,
            MarkerStyle::Indexes,
        );
        // The text of an output can be anything, also that of a source.
        outputs::append_output_text(&mut shown, index, &source);
    }
    let (plan, _) = rewrite(notebook, parse(&shown).expect("a rendered view parses"));
    assert!(plan.changes_nothing(notebook), "{shown}");
    // A new source for every cell: writes in an arbitrary layout.
    let mut plan = Plan::keep_all(notebook);
    for slot in &mut plan.slots {
        slot.source = Some("first\nsecond \u{e9}".to_owned());
    }
    apply(notebook, &plan);
}

fn crlf(view: &str) -> String {
    format!("{view}\n").replace('\n', "\r\n")
}

fn has_carriage_return(notebook: &Notebook) -> bool {
    (0..notebook.count()).any(|index| notebook.source(index).contains('\r'))
}

fn check_upgrade(bytes: &[u8], parsed: &Result<Notebook, FormatError>) {
    let Ok(Some((upgraded, new))) = upgrade(bytes) else {
        return;
    };
    let new = match Notebook::parse(&new[..]) {
        Ok(notebook) => notebook,
        Err(error) => panic!(
            "the upgraded file is not a notebook: {error}\n{}",
            String::from_utf8_lossy(&new)
        ),
    };
    assert!(new.minor() >= 5, "still nbformat 4.{}", new.minor());
    assert!((0..new.count()).all(|index| new.id(index).is_some()));
    assert!(matches!(upgrade(new.bytes()), Ok(None)), "upgrades twice");
    match parsed {
        // The cells are the same, with ids.
        Ok(old) => {
            assert_eq!(new.count(), old.count());
            for index in 0..old.count() {
                assert_eq!(new.kind(index), old.kind(index));
                assert_eq!(new.source(index), old.source(index));
            }
        }
        // An older format gives every cell an id.
        Err(_) => assert_eq!(new.count(), upgraded.ids_added),
    }
}

fn compare_with_serde(bytes: &[u8], ours: &Result<Notebook, FormatError>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let theirs: Result<Value, _> = serde_json::from_slice(bytes);
    match (ours, &theirs) {
        (Ok(notebook), Ok(value)) => {
            let cells = value["cells"].as_array().expect("`cells` is an array");
            assert_eq!(notebook.count(), cells.len());
            for (index, cell) in cells.iter().enumerate() {
                assert_eq!(notebook.kind(index).name(), cell["cell_type"]);
                assert_eq!(notebook.id(index).as_deref(), cell["id"].as_str());
                assert_eq!(notebook.source(index), source(&cell["source"]));
            }
        }
        (Ok(_), Err(error)) => assert!(is_python_json(bytes, error), "not JSON: {error}"),
        (Err(FormatError::Json { .. } | FormatError::NotUtf8 { .. }), Ok(_)) => {
            panic!("serde accepts it: {ours:?}")
        }
        (Err(_), _) => {}
    }
}

fn source(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// JSON that Python and this crate accept, but serde rejects.
fn is_python_json(bytes: &[u8], error: &serde_json::Error) -> bool {
    let contains = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    let message = error.to_string();
    contains(b"NaN")
        || contains(b"Infinity")
        // A lone surrogate.
        || contains(b"\\ud")
        || contains(b"\\uD")
        || message.contains("number out of range")
        || message.contains("recursion limit")
}
