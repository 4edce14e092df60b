//! The text view is built from a file that is read in windows; a window may end anywhere in a
//! cell.

use std::fs;
use std::path::Path;

use cellwright_notebook::edit::Draft;
use cellwright_notebook::file::{self, ChangeRequest};
use cellwright_notebook::{Baselines, MarkerStyle, Notebook, Plan, render};
use proptest::prelude::*;

use crate::generate::{Generated, notebook_with_cells};
use crate::support::cases;

const WINDOW_SIZE: usize = 256 * 1024;

/// The notebook with padding, so that the first window ends `before` bytes after its beginning.
fn padded(json: &str, before: usize) -> String {
    let at = json.find('{').unwrap() + 1;
    let (head, tail) = json.split_at(at);
    let empty = format!("{head}\"padding\":\"\",");
    let padding = "x".repeat(WINDOW_SIZE.saturating_sub(empty.len() + before));
    format!("{head}\"padding\":\"{padding}\",{tail}")
}

/// The baseline that is stored by reading a view (`by_view`) or by loading the file.
fn stored_baseline(path: &Path, revision: &str, by_view: bool) -> String {
    let dir = tempfile::tempdir().unwrap();
    let baselines = Baselines::new(dir.path());
    if by_view {
        file::read_view(path, None, Some(&baselines)).unwrap();
    } else {
        let request = ChangeRequest {
            baselines: Some(&baselines),
            ..ChangeRequest::default()
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
    fs::read_to_string(dir.path().join(revision)).unwrap()
}

fn check(json: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ipynb");
    fs::write(&path, json).unwrap();
    let notebook = Notebook::parse(json).unwrap();
    for markers in [MarkerStyle::Indexes, MarkerStyle::Ids] {
        let view = file::read_view(&path, Some(markers), None).unwrap();
        assert_eq!(view.text, render(&notebook, markers));
        assert_eq!(view.revision, notebook.revision());
    }
    let loaded = file::load(&path).unwrap();
    assert!(loaded.bytes() == notebook.bytes());
    assert_eq!(loaded.revision(), notebook.revision());
    let revision = notebook.revision().to_string();
    assert_eq!(
        stored_baseline(&path, &revision, true),
        stored_baseline(&path, &revision, false)
    );
}

#[test]
fn window_may_end_at_any_byte() {
    // Cells end in tokens that need lookahead: numbers, words, escapes, multi-byte characters.
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
    fn windowed_view_matches_loaded_notebook(
        Generated(bytes) in notebook_with_cells(),
        before in 0..3000usize,
    ) {
        check(&padded(&String::from_utf8(bytes).unwrap(), before));
    }
}
