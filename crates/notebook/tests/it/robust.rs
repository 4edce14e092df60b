//! No input makes the crate panic.

use cellwright_notebook::edit::replace_all;
use cellwright_notebook::{
    Cells, FormatError, MarkerStyle, Notebook, compose, outline, outputs, parse, render, rewrite,
    select, upgrade,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select as choose};

use crate::generate::{Generated, notebook, notebook_with_cells};
use crate::support::json;
use crate::support::text::view;
use crate::support::{cases, lossy};

/// Calls everything that reads a notebook.
fn use_all(bytes: &[u8]) {
    let Ok(notebook) = Notebook::parse(bytes) else {
        upgrade(bytes).ok();
        return;
    };
    let text = render(&notebook, MarkerStyle::Ids);
    let (plan, _) = rewrite(&notebook, parse(&text).unwrap());
    assert_eq!(lossy(&compose(&notebook, &plan).to_bytes()), lossy(bytes));
    notebook.irregularities();
    outline::outline(&notebook);
    let mut shown_outputs = String::new();
    for cell in 0..notebook.count() {
        let text = format!("{:?}", outputs::stored_outputs(&notebook, cell));
        outputs::append_output_text(&mut shown_outputs, cell, &text);
    }
    if let Some((_, upgraded)) = upgrade(bytes).unwrap() {
        Notebook::parse(upgraded).unwrap();
    }
}

/// JSON-like tokens in no order.
fn soup() -> impl Strategy<Value = String> {
    let tokens = vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"cells\"",
        "\"source\"",
        "\"cell_type\"",
        "\"code\"",
        "\"nbformat\"",
        "\"worksheets\"",
        "\"id\"",
        "4",
        "-",
        "1e",
        "NaN",
        "nul",
        " ",
        "\n",
        "\\u",
        "\\ud83d",
        "é",
        "{\"cells\":[",
        "\"nbformat\":4",
        "\u{feff}",
        "\u{0}",
    ];
    vec(choose(tokens), 0..30).prop_map(|tokens| tokens.concat())
}

fn selector() -> impl Strategy<Value = String> {
    let tokens = vec![
        ":",
        ":",
        ":",
        "raw",
        "outline",
        "ids",
        "outputs",
        "cells=",
        "cell=",
        "id=",
        "id=é",
        "id",
        "cells",
        "1",
        "0",
        "L5",
        "-",
        "..",
        "+",
        ",",
        "99999999999999999999999",
        "a.ipynb",
        "/",
        "é",
        " ",
        "ID=",
    ];
    prop_oneof![
        vec(choose(tokens), 0..10).prop_map(|tokens| tokens.concat()),
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn arbitrary_bytes_parse_or_fail(bytes in vec(any::<u8>(), 0..60), soup in soup()) {
        use_all(&bytes);
        use_all(soup.as_bytes());
    }

    #[test]
    fn damaged_notebook_is_rejected_or_read_like_other_readers(
        Generated(mut bytes) in notebook_with_cells(),
        flips in vec((any::<Index>(), any::<u8>()), 0..4),
        cut in prop::option::weighted(0.3, any::<Index>()),
        doubled in prop::option::weighted(0.2, (any::<Index>(), any::<Index>())),
    ) {
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some((from, to)) = doubled {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let piece = bytes[from.min(to)..from.max(to)].to_vec();
            bytes.splice(from..from, piece);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        use_all(&bytes);
        let read = json::read(&bytes);
        match Notebook::parse(&bytes[..]) {
            Ok(notebook) => {
                let top = read.unwrap();
                let cells = top.get("cells").unwrap().elements();
                prop_assert_eq!(notebook.count(), cells.len());
                for (index, cell) in cells.iter().enumerate() {
                    let source = cell.get("source").map(json::Node::text).unwrap_or_default();
                    prop_assert_eq!(notebook.source(index), source);
                }
            }
            // Reported at once; the rest of the file is not scanned.
            Err(FormatError::CellsNotAnArray { .. }) => {}
            Err(error) => {
                use FormatError::{Empty, Json, NotUtf8};
                let not_json = matches!(error, Empty | Json { .. } | NotUtf8 { .. });
                prop_assert_eq!(not_json, read.is_err(), "{:?} {:?}", error, read);
            }
        }
    }

    #[test]
    fn arbitrary_text_parses_or_fails(
        text in prop_oneof![view(), any::<String>()],
        Generated(bytes) in notebook(),
    ) {
        parse(&text).ok();
        let notebook = Notebook::parse(bytes).unwrap();
        if let Ok(draft) = replace_all(&notebook, &text) {
            let edited = compose(&notebook, &draft.plan).to_bytes();
            let edited = Notebook::parse(edited).unwrap();
            prop_assert_eq!(edited.count(), draft.plan.slots.len());
        }
    }

    #[test]
    fn arbitrary_selector_parses_or_fails(argument in selector(), exists in any::<bool>()) {
        select::split(&argument, &|_| exists).ok();
        if let Ok((path, selector)) = select::split(&argument, &|path| path == "a.ipynb") {
            prop_assert!(argument.starts_with(path));
            let notebook = Notebook::empty();
            select::select_cells(&selector.part, &notebook).ok();
            if let select::Part::Lines(lines) = &selector.part {
                select::select_lines("a\nb\nc", lines).ok();
            }
        }
    }
}
