//! An unchanged view gives the original file, byte for byte.

use cellwright_notebook::{Cells, MarkerStyle, Notebook, compose, edit, parse, render, rewrite};
use proptest::prelude::*;

use crate::generate::{Generated, notebook};
use crate::support::json::Document;
use crate::support::{cases, lossy};

const MARKERS: [MarkerStyle; 2] = [MarkerStyle::Indexes, MarkerStyle::Ids];

fn through_text(notebook: &Notebook, text: &str) -> Vec<u8> {
    let (plan, notices) = rewrite(notebook, parse(text).unwrap());
    assert_eq!(notices, [], "{text}");
    assert!(plan.changes_nothing(notebook), "{text}");
    compose(notebook, &plan).to_bytes()
}

fn through_print(notebook: &Notebook, printed: &str) -> Vec<u8> {
    let draft = edit::replace_all(notebook, printed).unwrap();
    assert_eq!(draft.notices, [], "{printed}");
    compose(notebook, &draft.plan).to_bytes()
}

/// Windows' text mode: every line feed gets a carriage return, whatever precedes it.
fn naive_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// `unix2dos` and editors: existing CRLF stays.
fn careful_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn cells_match_independent_reader(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let document = Document::read(&bytes);
        prop_assert_eq!(notebook.count(), document.cells().len());
        for cell in 0..notebook.count() {
            prop_assert_eq!(notebook.kind(cell).name(), document.kind(cell));
            prop_assert_eq!(notebook.source(cell), document.source(cell));
            prop_assert_eq!(notebook.id(cell).map(String::from), document.id(cell));
        }
    }

    #[test]
    fn unchanged_view_keeps_every_byte(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        for markers in MARKERS {
            let text = render(&notebook, markers);
            prop_assert_eq!(lossy(&through_text(&notebook, &text)), lossy(&bytes));
            let printed = text + "\n";
            prop_assert_eq!(lossy(&through_print(&notebook, &printed)), lossy(&bytes));
        }
    }

    #[test]
    fn unchanged_view_with_crlf_keeps_every_byte(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        for markers in MARKERS {
            let text = render(&notebook, markers);
            for convert in [naive_crlf, careful_crlf] {
                // A single marker has no line break to convert, so the printed form is used.
                let printed = convert(&format!("{text}\n"));
                prop_assert_eq!(lossy(&through_print(&notebook, &printed)), lossy(&bytes));
                let marked = format!("\u{feff}{printed}");
                prop_assert_eq!(lossy(&through_print(&notebook, &marked)), lossy(&bytes));
            }
        }
    }
}

#[test]
fn crlf_view_edit_keeps_line_endings_of_cells() {
    let notebook = Notebook::parse(
        r#"{"cells":[{"cell_type":"raw","source":"a\r\nb"},{"cell_type":"raw","source":"c\nd"}],
        "nbformat":4}"#,
    )
    .unwrap();
    let view = format!("{}\n", render(&notebook, MarkerStyle::Indexes));
    for convert in [naive_crlf, careful_crlf] {
        let edited = convert(&view).replace('b', "B").replace('d', "D");
        let draft = edit::replace_all(&notebook, &edited).unwrap();
        let result = Notebook::parse(compose(&notebook, &draft.plan).to_bytes()).unwrap();
        assert_eq!(result.source(0), "a\r\nB");
        assert_eq!(result.source(1), "c\nD");
    }
}
