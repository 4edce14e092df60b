//! The view of a file read through a window of 256 KiB must equal that of the whole file. The first
//! byte selects the offset in the notebook at which the window ends; the rest is the notebook.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use cellwright_notebook::{Cells, MarkerStyle, Notebook, Revision, file, render};
use libfuzzer_sys::fuzz_target;

/// The size of the window in `json/input.rs`, in bytes.
const WINDOW_SIZE: usize = 256 * 1024;

/// Number of window boundaries per notebook. Each one costs a file.
const BOUNDARY_COUNT: usize = 8;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("cellwright-fuzz-{}.ipynb", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    let [first, document @ ..] = data else {
        return;
    };
    // Skip broken notebooks: a new file that is broken is read again for a while, in case another
    // program is still writing it.
    let Ok(notebook) = Notebook::parse(document) else {
        return;
    };
    let Some(members) = document.strip_prefix(b"{") else {
        return;
    };
    let view = render(&notebook, MarkerStyle::Ids);
    for step in 0..BOUNDARY_COUNT {
        let boundary =
            (usize::from(*first) + step * members.len() / BOUNDARY_COUNT) % (members.len() + 1);
        check_view(&padded(members, boundary), &notebook, &view);
    }
});

/// The notebook with a first member that moves the boundary to the given offset.
fn padded(members: &[u8], boundary: usize) -> Vec<u8> {
    let (open, close) = (b"{\"\":\"", b"\",");
    let mut bytes = open.to_vec();
    bytes.resize(WINDOW_SIZE - close.len() - boundary, b'x');
    bytes.extend_from_slice(close);
    bytes.extend_from_slice(members);
    bytes
}

fn check_view(bytes: &[u8], notebook: &Notebook, view: &str) {
    fs::write(&*FILE, bytes).expect("the temporary directory can be written to");
    let read = file::read_view(&FILE, Some(MarkerStyle::Ids), None).expect("it parsed before");
    fs::remove_file(&*FILE).expect("it was just written");
    assert_eq!(read.revision, Revision::compute(bytes));
    assert_eq!(read.count, notebook.count());
    assert_eq!(read.text, view);
}
