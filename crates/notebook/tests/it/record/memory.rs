//! Outputs are never kept in memory, neither old nor new ones.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

use cellwright_notebook::file::{self, CellUpdate, Segment};
use tempfile::TempDir;

use super::record;

/// The variable with the directory in which the child process records. The child prints its memory
/// use.
const FOLDER: &str = "CELLWRIGHT_TEST_RECORDS_IN";

/// Megabytes of old outputs, and of new ones.
const MEGABYTES: usize = 60;

/// The largest allowed increase of peak memory, in kilobytes.
const MEMORY_LIMIT_KB: u64 = 8 * 1024;

#[test]
fn large_outputs_are_recorded_with_little_memory() {
    if let Some(dir) = std::env::var_os(FOLDER) {
        return record_in_child_process(dir.as_ref());
    }
    let dir = TempDir::new().unwrap();
    let mut notebook = fs::File::create(dir.path().join("a.ipynb")).unwrap();
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
    let mut new = fs::File::create(dir.path().join("new")).unwrap();
    for number in 0..MEGABYTES {
        write!(new, "{}\"{part}\"", if number == 0 { '[' } else { ',' }).unwrap();
    }
    new.write_all(b"]").unwrap();
    drop((notebook, new));
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", "--nocapture"])
        .arg("record::memory::large_outputs_are_recorded_with_little_memory")
        .env(FOLDER, dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}");
    let increase = stdout
        .lines()
        .find_map(|line| line.split("took ").nth(1)?.strip_suffix(" kB"))
        .unwrap_or_else(|| panic!("{stdout}"));
    let increase: u64 = increase.parse().unwrap();
    assert!(increase < MEMORY_LIMIT_KB, "{increase} kB");
}

#[expect(clippy::print_stdout, reason = "the parent process reads it")]
fn record_in_child_process(dir: &std::path::Path) {
    let before = peak_memory_kb();
    let path = dir.join("a.ipynb");
    let store = fs::File::open(dir.join("new")).unwrap();
    let update = CellUpdate {
        cell: 1,
        outputs: vec![Segment::Stored {
            length: store.metadata().unwrap().len(),
            file: Arc::new(store),
            start: 0,
        }],
        ..CellUpdate::default()
    };
    let base = file::survey(&path).unwrap();
    record(&path, &base, std::slice::from_ref(&update)).unwrap();
    // Again, over the recorded outputs.
    record(&path, &base, &[update]).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert!(length > 2_000_000 * MEGABYTES as u64, "{length}");
    println!("\ntook {} kB", peak_memory_kb() - before);
}

/// Peak memory of this process, in kilobytes.
fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.unwrap().parse().unwrap()
}
