//! A save that fails at any of its steps leaves the file as it was and nothing beside it.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;

use cellwright_notebook::edit::{Address, Operation, Place};
use cellwright_notebook::file::{self, Missing, Request, Step};
use cellwright_notebook::{CellKind, NotebookError};
use tempfile::TempDir;

/// Large enough to be written in several pieces.
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
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs the edit with the `nth` step failing with `kind`. `None` if there are fewer steps.
fn failing(
    path: &Path,
    operation: &Operation,
    nth: usize,
    kind: io::ErrorKind,
) -> Option<(Step, NotebookError)> {
    let count = Cell::new(0);
    let failed = Cell::new(None);
    let watch = |step: Step| {
        count.set(count.get() + 1);
        if count.get() - 1 == nth {
            failed.set(Some(step));
            return Err(io::Error::from(kind));
        }
        Ok(())
    };
    let request = Request {
        watch: Some(&watch),
        missing: Missing::Create,
        ..Request::default()
    };
    let result = file::change(path, request, &|cells| operation.draft(cells));
    let step = failed.get()?;
    Some((step, result.unwrap_err()))
}

#[test]
fn every_failing_step_leaves_the_original() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    let mut seen = Vec::new();
    for nth in 0.. {
        let Some((step, error)) = failing(&path, &edit(), nth, io::ErrorKind::StorageFull) else {
            break;
        };
        seen.push(step);
        assert_eq!(names(folder.path()), ["a.ipynb"], "after {step:?}");
        if matches!(step, Step::Recheck | Step::SyncFolder) {
            // The new file is in place by then; that is what the error says.
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
        Step::Create,
        Step::Write,
        Step::Attributes,
        Step::Sync,
        Step::Check,
        Step::Publish,
        Step::SyncFolder,
    ] {
        assert!(seen.contains(&step), "{step:?} was not tried");
    }
    let writes = seen.iter().filter(|step| **step == Step::Write).count();
    assert!(writes > 3, "only {writes} writes were tried");
}

#[test]
fn a_new_file_that_cannot_be_written_is_not_there() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new.ipynb");
    let insert = Operation::Insert {
        place: Place::End,
        kind: CellKind::Code,
        source: "x".to_owned(),
        tags: Vec::new(),
    };
    for nth in 0.. {
        let Some((step, _)) = failing(&path, &insert, nth, io::ErrorKind::PermissionDenied) else {
            break;
        };
        if step == Step::SyncFolder {
            fs::remove_file(&path).unwrap();
        }
        assert!(names(folder.path()).is_empty(), "after {step:?}");
    }
}

#[test]
fn a_change_by_somebody_else_while_saving_is_not_overwritten() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    let interfered = Cell::new(false);
    // Another program, which knows nothing of locks, writes just before the file is replaced.
    let watch = |step: Step| {
        if step == Step::Check && !interfered.replace(true) {
            fs::write(
                &path,
                notebook()
                    .replace(r#""count":1"#, r#""count":2"#)
                    .replace("xxxx\"", "theirs\""),
            )?;
        }
        Ok(())
    };
    let request = Request {
        watch: Some(&watch),
        ..Request::default()
    };
    let changed = file::change(&path, request, &|cells| edit().draft(cells)).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    assert!(content.contains("theirs") && content.contains(r#""source":"new""#));
    assert_eq!(
        cellwright_notebook::Revision::of(content.as_bytes()),
        changed.after
    );
}

#[test]
fn a_write_into_the_old_file_at_the_last_moment_is_not_thrown_away() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.ipynb");
    fs::write(&path, notebook()).unwrap();
    // Opened before our save, as by a program that rewrites in place; written after the exchange.
    let mut theirs = fs::File::options().write(true).open(&path).unwrap();
    let interfered = Cell::new(false);
    let watch = |step: Step| {
        if step == Step::Recheck && !interfered.replace(true) {
            let content = notebook().replace("xxxx\"", "theirs\"");
            theirs.set_len(0)?;
            io::Write::write_all(&mut &theirs, content.as_bytes())?;
        }
        Ok(())
    };
    let request = Request {
        watch: Some(&watch),
        ..Request::default()
    };
    file::change(&path, request, &|cells| edit().draft(cells)).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    assert!(content.contains("theirs") && content.contains(r#""source":"new""#));
    assert_eq!(names(folder.path()), ["a.ipynb"]);
    io::Write::flush(&mut theirs).unwrap();
}
