//! Files that are only looked at are read in pieces; a piece may end anywhere in a cell.

use std::fs;
use std::path::Path;

use cellwright_notebook::edit::Draft;
use cellwright_notebook::file::{self, Request};
use cellwright_notebook::{Baselines, Markers, Notebook, Plan, render};
use proptest::prelude::*;

use crate::generate::{Generated, notebook_with_cells};
use crate::support::cases;

const PIECE: usize = 256 * 1024;

/// The notebook with so much in front of it that the first piece ends `before` bytes behind its
/// beginning.
fn padded(json: &str, before: usize) -> String {
    let at = json.find('{').unwrap() + 1;
    let (head, tail) = json.split_at(at);
    let empty = format!("{head}\"padding\":\"\",");
    let padding = "x".repeat(PIECE.saturating_sub(empty.len() + before));
    format!("{head}\"padding\":\"{padding}\",{tail}")
}

/// What is remembered of the file for a later merge, written down by a look or by a load.
fn remembered(path: &Path, revision: &str, look: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let baselines = Baselines::new(folder.path());
    if look {
        file::glance(path, None, Some(&baselines)).unwrap();
    } else {
        let request = Request {
            baselines: Some(&baselines),
            ..Request::default()
        };
        let nothing = |cells: &dyn cellwright_notebook::Cells| {
            Ok(Draft {
                plan: Plan::keep_all(cells),
                focus: None,
                removed: None,
                anchor: None,
                notices: Vec::new(),
            })
        };
        file::change(path, request, &nothing).unwrap();
    }
    fs::read_to_string(folder.path().join(revision)).unwrap()
}

fn check(json: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ipynb");
    fs::write(&path, json).unwrap();
    let notebook = Notebook::parse(json).unwrap();
    for markers in [Markers::Indexes, Markers::Ids] {
        let glance = file::glance(&path, Some(markers), None).unwrap();
        assert_eq!(glance.text, render(&notebook, markers));
        assert_eq!(glance.revision, notebook.revision());
    }
    let loaded = file::load(&path).unwrap();
    assert!(loaded.bytes() == notebook.bytes());
    assert_eq!(loaded.revision(), notebook.revision());
    let revision = notebook.revision().to_string();
    assert_eq!(
        remembered(&path, &revision, true),
        remembered(&path, &revision, false)
    );
}

#[test]
fn a_piece_may_end_at_every_byte_of_a_notebook() {
    // Cells end in what a reader looks ahead for: numbers, words, escapes, long characters.
    let json = concat!(
        r#"{"cells":[{"cell_type":"raw","source":["\ud834\udd1e","é𝄞\u00e9"],"id":5},"#,
        r#"{"cell_type":"code","id":"a","source":"x\n","outputs":[],"execution_count":1e4},"#,
        r#"{"source":[],"cell_type":"markdown","metadata":NaN},{"cell_type":"raw","x":-0}],"#,
        r#""nbformat":4}"#
    );
    for before in 0..json.len() {
        check(&padded(json, before));
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn looking_at_a_file_sees_what_loading_it_sees(
        Generated(bytes) in notebook_with_cells(),
        before in 0..3000usize,
    ) {
        check(&padded(&String::from_utf8(bytes).unwrap(), before));
    }
}
