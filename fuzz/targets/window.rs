//! A look at a file through a window of 256 KiB must tell the same as the file read whole. The
//! first two bytes say where in the notebook the window's border falls; the rest is the notebook.
//!
//! White space before the document moves the border: it is JSON, and nobody cares for it.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use cellwright_notebook::{Cells, Markers, Notebook, file, render};
use libfuzzer_sys::fuzz_target;

/// The size of the window in `json/input.rs`.
const WINDOW: usize = 256 * 1024;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("cellwright-fuzz-{}.ipynb", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    let [low, high, document @ ..] = data else {
        return;
    };
    let border = usize::from(u16::from_le_bytes([*low, *high])) % (document.len() + 1);
    let mut bytes = vec![b' '; WINDOW - border];
    bytes.extend_from_slice(document);
    // What does not parse is left out: a broken file that is new is read again for a while, in case
    // somebody is still writing it.
    let Ok(notebook) = Notebook::parse(bytes) else {
        return;
    };
    fs::write(&*FILE, notebook.bytes()).expect("the temporary folder can be written to");
    let glance = file::glance(&FILE, Some(Markers::Ids), None).expect("it parsed before");
    let loaded = file::load(&FILE).expect("it parsed before");
    fs::remove_file(&*FILE).expect("it was just written");
    assert_eq!(glance.revision, notebook.revision());
    assert_eq!(glance.count, notebook.count());
    assert_eq!(glance.text, render(&notebook, Markers::Ids));
    assert_eq!(loaded.bytes(), notebook.bytes());
    assert_eq!(loaded.revision(), notebook.revision());
});
