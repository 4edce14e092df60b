//! A save that fails at any step leaves the original file and no other file. Saves are flushed,
//! and a change by another program is never lost.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_notebook::file::{self, ChangeRequest, OnMissing, SaveStep};
use cellwright_notebook::{CellKind, NotebookError};
use cellwright_test_support::skip;
use tempfile::TempDir;

/// Large enough to be written in several chunks.
fn notebook() -> String {
    format!(
        r#"{{"cells":[{{"cell_type":"code","execution_count":1,"metadata":{{}},"outputs":[{{"output_type":"stream","name":"stdout","text":"{}"}}],"source":"old"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#,
        "x".repeat(1_000_000)
    )
}

fn edit() -> Operation {
    Operation::Edit {
        cell: Address::Index(0),
        source: "new".to_owned(),
        tags: None,
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs the edit with the `nth` step failing with `kind`. Returns `None` if there are fewer
/// steps.
fn edit_with_failing_step(
    path: &Path,
    operation: &Operation,
    nth: usize,
    kind: io::ErrorKind,
) -> Option<(SaveStep, NotebookError)> {
    let count = Cell::new(0);
    let failed = Cell::new(None);
    let on_step = |step: SaveStep| {
        count.set(count.get() + 1);
        if count.get() - 1 == nth {
            failed.set(Some(step));
            return Err(io::Error::from(kind));
        }
        Ok(())
    };
    let request = ChangeRequest {
        on_step: Some(&on_step),
        on_missing: OnMissing::Create,
        ..ChangeRequest::default()
    };
    let result = file::change(path, request, &|cells| operation.draft(cells));
    let step = failed.get()?;
    Some((step, result.unwrap_err()))
}

#[test]
fn every_failing_step_leaves_the_original() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    let mut steps = Vec::new();
    for nth in 0.. {
        let Some((step, error)) =
            edit_with_failing_step(&path, &edit(), nth, io::ErrorKind::StorageFull)
        else {
            break;
        };
        steps.push(step);
        assert_eq!(names(dir.path()), ["a.ipynb"], "after {step:?}");
        if matches!(step, SaveStep::Recheck | SaveStep::SyncDir) {
            // The new file is in place by then, which the error reports.
            assert!(matches!(error, NotebookError::NotDurable { .. }), "{error}");
            assert!(
                fs::read_to_string(&path)
                    .unwrap()
                    .contains(r#""source":"new""#)
            );
            fs::write(&path, notebook()).unwrap();
        } else {
            assert!(
                matches!(error, NotebookError::Io { .. }),
                "{step:?}: {error}"
            );
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                notebook(),
                "after {step:?}"
            );
        }
    }
    for step in [
        SaveStep::Create,
        SaveStep::Write,
        SaveStep::Attributes,
        SaveStep::Sync,
        SaveStep::Check,
        SaveStep::Publish,
        SaveStep::SyncDir,
    ] {
        assert!(steps.contains(&step), "{step:?} was not tried");
    }
    let writes = steps
        .iter()
        .filter(|step| **step == SaveStep::Write)
        .count();
    assert!(writes > 3, "only {writes} writes were tried");
}

#[test]
fn failed_create_leaves_no_file() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("new.ipynb");
    let insert = Operation::Insert {
        position: CellPosition::End,
        kind: CellKind::Code,
        source: "x".to_owned(),
        tags: Vec::new(),
    };
    for nth in 0.. {
        let Some((step, _)) =
            edit_with_failing_step(&path, &insert, nth, io::ErrorKind::PermissionDenied)
        else {
            break;
        };
        if step == SaveStep::SyncDir {
            fs::remove_file(&path).unwrap();
        }
        assert!(names(dir.path()).is_empty(), "after {step:?}");
    }
}

#[test]
fn change_by_other_program_during_save_is_kept() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    let interfered = Cell::new(false);
    // Another program, which does not use locks, writes just before the file is replaced.
    let on_step = |step: SaveStep| {
        if step == SaveStep::Check && !interfered.replace(true) {
            fs::write(
                &path,
                notebook()
                    .replace(r#""count":1"#, r#""count":2"#)
                    .replace("xxxx\"", "theirs\""),
            )?;
        }
        Ok(())
    };
    let request = ChangeRequest {
        on_step: Some(&on_step),
        ..ChangeRequest::default()
    };
    let changed = file::change(&path, request, &|cells| edit().draft(cells)).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    assert!(content.contains("theirs") && content.contains(r#""source":"new""#));
    assert_eq!(
        cellwright_notebook::Revision::compute(content.as_bytes()),
        changed.after
    );
}

#[test]
fn write_into_old_file_after_replace_is_kept() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    // Opened before our save, as by a program that rewrites in place; written after the swap.
    let mut theirs = fs::File::options().write(true).open(&path).unwrap();
    let interfered = Cell::new(false);
    let on_step = |step: SaveStep| {
        if step == SaveStep::Recheck && !interfered.replace(true) {
            let content = notebook().replace("xxxx\"", "theirs\"");
            theirs.set_len(0)?;
            io::Write::write_all(&mut &theirs, content.as_bytes())?;
        }
        Ok(())
    };
    let request = ChangeRequest {
        on_step: Some(&on_step),
        ..ChangeRequest::default()
    };
    file::change(&path, request, &|cells| edit().draft(cells)).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    assert!(content.contains("theirs") && content.contains(r#""source":"new""#));
    assert_eq!(names(dir.path()), ["a.ipynb"]);
    io::Write::flush(&mut theirs).unwrap();
}

/// The file changes after it was replaced and before it is read back.
#[test]
fn change_by_other_program_right_after_save_is_reported() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.ipynb");
    let other = notebook().replace("xxxx\"", "theirs\"");
    let on_step = |step: SaveStep| match step {
        SaveStep::SyncDir => fs::write(&path, &other),
        _ => Ok(()),
    };
    let request = ChangeRequest {
        on_step: Some(&on_step),
        ..ChangeRequest::default()
    };
    let assert_reported = |error: &NotebookError| {
        assert!(
            matches!(error, NotebookError::NotReadBack { .. }),
            "{error}"
        );
        let message = format!(
            "{} was changed by another program right after it was saved",
            path.display()
        );
        assert_eq!(error.to_string(), message);
        assert!(fs::read_to_string(&path).unwrap() == other);
    };
    fs::write(&path, notebook()).unwrap();
    assert_reported(&file::change(&path, request, &|cells| edit().draft(cells)).unwrap_err());
    fs::write(&path, notebook()).unwrap();
    assert_reported(&file::upgrade(&path, request).unwrap_err());
}

/// A mounted file system with coarse time stamps, unmounted when dropped.
struct CoarseClockDisk(TempDir);

impl CoarseClockDisk {
    /// Reports a skip if this user may not mount.
    fn mount() -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "ramfs", "ramfs"])
            .arg(dir.path())
            .output();
        if !mount.is_ok_and(|output| output.status.success()) {
            skip("mount", "a ramfs cannot be mounted");
            return None;
        }
        Some(Self(dir))
    }
}

impl Drop for CoarseClockDisk {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status()
            .ok();
    }
}

/// A file that was modified within the precision of its time stamps may change again without getting a
/// new one. Since Linux 6.13 most file systems have fine-grained time stamps and not this problem; ramfs has it.
#[test]
fn change_within_one_tick_of_the_clock_is_kept() {
    const ROUNDS: usize = 100;
    let notebook = |name: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"raw","metadata":{{}},"source":"old"}},{{"cell_type":"raw","metadata":{{}},"source":"{name}"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#
        )
    };
    let dir = TempDir::new().unwrap();
    let coarse = CoarseClockDisk::mount();
    let dirs = [Some(&dir), coarse.as_ref().map(|disk| &disk.0)];
    let paths = dirs
        .into_iter()
        .flatten()
        .map(|dir| dir.path().join("a.ipynb"));
    for (path, round) in paths.flat_map(|path| (0..ROUNDS).map(move |round| (path.clone(), round)))
    {
        fs::write(&path, notebook("before")).unwrap();
        let interfered = Cell::new(false);
        let on_step = |step: SaveStep| {
            if step == SaveStep::Check && !interfered.replace(true) {
                let file = fs::File::options().write(true).open(&path)?;
                io::Write::write_all(&mut &file, notebook("theirs").as_bytes())?;
            }
            Ok(())
        };
        let request = ChangeRequest {
            on_step: Some(&on_step),
            ..ChangeRequest::default()
        };
        file::change(&path, request, &|cells| edit().draft(cells)).unwrap();
        let content = fs::read_to_string(&path).unwrap();
        let expected = notebook("theirs").replace("\"old\"", "\"new\"");
        assert_eq!(content, expected, "in round {round}");
    }
}

/// The variable with the path of the notebook that the child process edits.
const TRACED: &str = "CELLWRIGHT_TEST_TRACED";

/// Without these flushes a power cut could leave an empty file, or neither file.
#[test]
fn file_and_directory_are_flushed_around_the_replacement() {
    if let Some(path) = std::env::var_os(TRACED) {
        let request = ChangeRequest::default();
        file::change(Path::new(&path), request, &|cells| edit().draft(cells)).unwrap();
        return;
    }
    let dir = TempDir::new().unwrap();
    let dir_path = dir.path().canonicalize().unwrap();
    let path = dir_path.join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    let log_dir = TempDir::new().unwrap();
    let log = log_dir.path().join("log");
    let traced = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,rename,renameat,renameat2",
            "-o",
        ])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "faults::file_and_directory_are_flushed_around_the_replacement",
        ])
        .env(TRACED, &path)
        .output();
    let trace = fs::read_to_string(&log).unwrap_or_default();
    match traced {
        Ok(output) if trace.contains("exited with") => assert!(output.status.success()),
        _ => {
            skip("strace", "strace is not installed, or may not trace");
            return;
        }
    }
    let in_dir = format!("<{}/", dir_path.display());
    let of_dir = format!("<{}>)", dir_path.display());
    let position = |call: &str, argument: &str| {
        let matches = |line: &str| line.contains(call) && line.contains(argument);
        let found = trace.lines().position(matches);
        found.unwrap_or_else(|| panic!("no {call} of {argument} in\n{trace}"))
    };
    let file_flushed = position("sync(", &in_dir);
    let replaced = position("rename", &format!("{}\"", path.display()));
    let dir_flushed = position("sync(", &of_dir);
    assert!(file_flushed < replaced && replaced < dir_flushed, "{trace}");
}
