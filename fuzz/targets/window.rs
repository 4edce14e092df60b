//! A look at a file through a window of 256 KiB must tell the same as the file read whole. The
//! first byte says where in the notebook the window's border falls; the rest is the notebook.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use cellwright_notebook::{Cells, Markers, Notebook, Revision, file, render};
use libfuzzer_sys::fuzz_target;

/// The size of the window in `json/input.rs`.
const WINDOW: usize = 256 * 1024;

/// Borders tried with one notebook: more of them find more, but each costs a file.
const BORDERS: usize = 8;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("cellwright-fuzz-{}.ipynb", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    let [first, document @ ..] = data else {
        return;
    };
    // What does not parse is left out: a broken file that is new is read again for a while, in case
    // somebody is still writing it.
    let Ok(notebook) = Notebook::parse(document) else {
        return;
    };
    let Some(members) = document.strip_prefix(b"{") else {
        return;
    };
    let view = render(&notebook, Markers::Ids);
    for step in 0..BORDERS {
        let border = (usize::from(*first) + step * members.len() / BORDERS) % (members.len() + 1);
        look(&padded(members, border), &notebook, &view);
    }
});

/// The notebook with a member before all others, so long that the border falls where it should.
fn padded(members: &[u8], border: usize) -> Vec<u8> {
    let (open, close) = (b"{\"\":\"", b"\",");
    let mut bytes = open.to_vec();
    bytes.resize(WINDOW - close.len() - border, b'x');
    bytes.extend_from_slice(close);
    bytes.extend_from_slice(members);
    bytes
}

fn look(bytes: &[u8], notebook: &Notebook, view: &str) {
    fs::write(&*FILE, bytes).expect("the temporary folder can be written to");
    let glance = file::glance(&FILE, Some(Markers::Ids), None).expect("it parsed before");
    fs::remove_file(&*FILE).expect("it was just written");
    assert_eq!(glance.revision, Revision::of(bytes));
    assert_eq!(glance.count, notebook.count());
    assert_eq!(glance.text, view);
}
