//! Selectors after a path: `a.ipynb:10-20`, `a.ipynb:cells=1-3:ids`. None may panic, and selected
//! cells and lines must exist.

#![no_main]

use cellwright_fuzz::notebook;
use cellwright_notebook::edit::Address;
use cellwright_notebook::select::{self, Part};
use cellwright_notebook::{Cells, MarkerStyle, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    Address::parse(text);
    let argument = format!("a.ipynb:{text}");
    let Ok((path, selector)) = select::split(&argument, &|path| path == "a.ipynb") else {
        return;
    };
    assert!(argument.starts_with(path));
    for choice in 0..5 {
        let notebook = notebook(choice);
        if let Ok(cells) = select::select_cells(&selector.part, &notebook) {
            assert!(cells.iter().all(|&cell| cell < notebook.count()));
            assert!(cells.is_sorted());
        }
        if let Part::Lines(ranges) = &selector.part {
            let view = render(&notebook, MarkerStyle::Indexes);
            if let Ok((lines, _)) = select::select_lines(&view, ranges) {
                assert!(lines.len() <= view.len() + 1);
            }
        }
    }
});
