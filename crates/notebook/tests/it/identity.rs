//! A view that nobody changed gives the file that was there, byte for byte.

use cellwright_notebook::{Cells, Markers, Notebook, compose, edit, parse, render, rewrite};
use proptest::prelude::*;

use crate::generate::{Generated, notebook};
use crate::support::json::Document;
use crate::support::{cases, shown};

const MARKERS: [Markers; 3] = [Markers::Indexes, Markers::Ids, Markers::Indexes];

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

/// Windows' text mode: every line feed gets a carriage return, whatever stands before it.
fn naive_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// `unix2dos` and editors: line ends that are CRLF already stay so.
fn careful_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn what_is_seen_is_what_an_independent_reader_sees(Generated(bytes) in notebook()) {
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
    fn an_unchanged_view_leaves_every_byte(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        for markers in MARKERS {
            let text = render(&notebook, markers);
            prop_assert_eq!(shown(&through_text(&notebook, &text)), shown(&bytes));
            let printed = text + "\n";
            prop_assert_eq!(shown(&through_print(&notebook, &printed)), shown(&bytes));
        }
    }

    #[test]
    fn an_unchanged_view_with_other_line_ends_leaves_every_byte(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        for markers in MARKERS {
            let text = render(&notebook, markers);
            for convert in [naive_crlf, careful_crlf] {
                // A single marker has no line end to convert: it is the printed form that counts.
                let printed = convert(&format!("{text}\n"));
                prop_assert_eq!(shown(&through_print(&notebook, &printed)), shown(&bytes));
                let marked = format!("\u{feff}{printed}");
                prop_assert_eq!(shown(&through_print(&notebook, &marked)), shown(&bytes));
            }
        }
    }
}

#[test]
fn an_edit_in_a_view_with_crlf_keeps_the_line_ends_that_a_cell_has() {
    let notebook = Notebook::parse(
        r#"{"cells":[{"cell_type":"raw","source":"a\r\nb"},{"cell_type":"raw","source":"c\nd"}],
        "nbformat":4}"#,
    )
    .unwrap();
    let view = format!("{}\n", render(&notebook, Markers::Indexes));
    for convert in [naive_crlf, careful_crlf] {
        let edited = convert(&view).replace('b', "B").replace('d', "D");
        let draft = edit::replace_all(&notebook, &edited).unwrap();
        let result = Notebook::parse(compose(&notebook, &draft.plan).to_bytes()).unwrap();
        assert_eq!(result.source(0), "a\r\nB");
        assert_eq!(result.source(1), "c\nD");
    }
}
