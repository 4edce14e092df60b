//! Outputs are never held, neither those that are there nor those that come.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

use cellwright_notebook::file::{self, Entry, Piece};
use tempfile::TempDir;

use super::record;

/// The variable that names the folder in which this program is to record, and then to say what it took.
const FOLDER: &str = "CELLWRIGHT_TEST_RECORDS_IN";

/// Megabytes of outputs, there and to come.
const MEGABYTES: usize = 60;

/// What may come on top of what the program takes anyway, in kilobytes.
const MOST: u64 = 8 * 1024;

#[test]
fn a_notebook_of_sixty_megabytes_is_recorded_with_a_few() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return in_a_process_of_its_own(folder.as_ref());
    }
    let folder = TempDir::new().unwrap();
    let mut notebook = fs::File::create(folder.path().join("a.ipynb")).unwrap();
    let part = "x".repeat(1_000_000);
    write!(
        notebook,
        "{{\"cells\":[{{\"cell_type\":\"code\",\"source\":\"1\",\"outputs\":["
    )
    .unwrap();
    write!(
        notebook,
        "{{\"output_type\":\"stream\",\"name\":\"stdout\",\"text\":\""
    )
    .unwrap();
    for _ in 0..MEGABYTES {
        notebook.write_all(part.as_bytes()).unwrap();
    }
    write!(
        notebook,
        "\"}}]}},{{\"cell_type\":\"code\",\"source\":\"2\"}}],\"nbformat\":4}}"
    )
    .unwrap();
    let mut new = fs::File::create(folder.path().join("new")).unwrap();
    for number in 0..MEGABYTES {
        write!(new, "{}\"{part}\"", if number == 0 { '[' } else { ',' }).unwrap();
    }
    new.write_all(b"]").unwrap();
    drop((notebook, new));
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", "--nocapture"])
        .arg("record::memory::a_notebook_of_sixty_megabytes_is_recorded_with_a_few")
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let took = said
        .lines()
        .find_map(|line| line.split("took ").nth(1)?.strip_suffix(" kB"))
        .unwrap_or_else(|| panic!("{said}"));
    let took: u64 = took.parse().unwrap();
    assert!(took < MOST, "{took} kB");
}

#[expect(clippy::print_stdout, reason = "that is how it tells")]
fn in_a_process_of_its_own(folder: &std::path::Path) {
    let before = most_held();
    let path = folder.join("a.ipynb");
    let store = fs::File::open(folder.join("new")).unwrap();
    let entry = Entry {
        cell: 1,
        outputs: vec![Piece::Stored {
            length: store.metadata().unwrap().len(),
            file: Arc::new(store),
            start: 0,
        }],
        ..Entry::default()
    };
    let ran = file::survey(&path).unwrap();
    record(&path, &ran, std::slice::from_ref(&entry)).unwrap();
    // And once more, over what is there now.
    record(&path, &ran, &[entry]).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert!(length > 2_000_000 * MEGABYTES as u64, "{length}");
    println!("\ntook {} kB", most_held() - before);
}

/// The most that this process has held at any time, in kilobytes.
fn most_held() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.unwrap().parse().unwrap()
}
