//! Saves that fail, and other programs that write during a save.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};

use cellwright_notebook::file::{
    self, CellUpdate, DetachedFiles, GuardRequest, RecordReport, RecordRequest, SaveStep, Survey,
};
use cellwright_notebook::{NotebookError, Revision};

use super::{NotebookFixture, stream_output, update};
use crate::support::lossy;

/// Large enough to be copied in several chunks. The executed cell is the last one.
fn notebook() -> String {
    format!(
        r#"{{"cells":[{{"cell_type":"code","execution_count":1,"id":"a","metadata":{{}},"outputs":[{{"output_type":"stream","name":"stdout","text":"{}"}}],"source":"first"}},{{"cell_type":"code","execution_count":null,"id":"b","metadata":{{}},"outputs":[],"source":"second"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
        "x".repeat(1_000_000)
    )
}

/// The notebook with an edit by another program in the first cell.
fn edited_by_other() -> String {
    notebook().replace(r#""source":"first""#, r#""source":"first, theirs""#)
}

fn record_with_hook(
    fixture: &NotebookFixture,
    base: &Survey,
    on_step: &dyn Fn(SaveStep) -> io::Result<()>,
) -> Result<RecordReport, NotebookError> {
    let updates: [CellUpdate; 1] = [update(1, 7, stream_output("ours"))];
    file::record(RecordRequest {
        path: &fixture.path,
        base: &base.record_base(),
        updates: &updates,
        metadata: &[],
        expected: base.revision(),
        guard: GuardRequest::default(),
        detached: &DetachedFiles::default(),
        baselines: None,
        on_step: Some(on_step),
    })
}

/// Asserts that both changes are in the file.
fn assert_has_both(fixture: &NotebookFixture) {
    let content = lossy(&fixture.content());
    assert!(content.contains("first, theirs"), "their edit is lost");
    assert!(content.contains(r#""ours""#), "our output is lost");
    assert_eq!(fixture.names(), ["a.ipynb"]);
}

#[test]
fn every_failing_step_leaves_the_original() {
    let fixture = NotebookFixture::with(notebook());
    let mut steps = Vec::new();
    for nth in 0.. {
        fs::write(&fixture.path, notebook()).unwrap();
        let count = Cell::new(0);
        let failed = Cell::new(None);
        let on_step = |step: SaveStep| {
            count.set(count.get() + 1);
            if count.get() - 1 == nth {
                failed.set(Some(step));
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(())
        };
        let result = record_with_hook(&fixture, &fixture.survey(), &on_step);
        let Some(step) = failed.get() else {
            result.unwrap();
            break;
        };
        steps.push(step);
        let error = result.unwrap_err();
        assert_eq!(fixture.names(), ["a.ipynb"], "after {step:?}");
        let content = lossy(&fixture.content());
        if matches!(step, SaveStep::Recheck | SaveStep::SyncDir) {
            assert!(matches!(error, NotebookError::NotDurable { .. }), "{error}");
            assert!(content.contains(r#""ours""#));
        } else {
            assert!(
                matches!(error, NotebookError::Io { .. }),
                "{step:?}: {error}"
            );
            assert!(content == notebook(), "after {step:?}");
        }
    }
    for step in [
        SaveStep::Create,
        SaveStep::Write,
        SaveStep::Attributes,
        SaveStep::Sync,
        SaveStep::Check,
        SaveStep::Publish,
        SaveStep::Recheck,
        SaveStep::SyncDir,
    ] {
        assert!(steps.contains(&step), "{step:?} was not tried");
    }
    assert!(
        steps
            .iter()
            .filter(|step| **step == SaveStep::Write)
            .count()
            > 3
    );
}

/// Before each step, once: another program replaces the file, or rewrites it in place, as Jupyter
/// does.
#[test]
fn concurrent_change_before_any_step_is_merged() {
    for in_place in [true, false] {
        for step in [
            SaveStep::Create,
            SaveStep::Write,
            SaveStep::Attributes,
            SaveStep::Sync,
            SaveStep::Check,
            SaveStep::Publish,
            SaveStep::SyncDir,
        ] {
            let fixture = NotebookFixture::with(notebook());
            let base = fixture.survey();
            let interfered = Cell::new(false);
            let on_step = |now: SaveStep| {
                if now == step && !interfered.replace(true) {
                    if in_place {
                        fs::write(&fixture.path, edited_by_other())?;
                    } else {
                        let other = fixture.dir.path().join("other");
                        fs::write(&other, edited_by_other())?;
                        fs::rename(&other, &fixture.path)?;
                    }
                }
                Ok(())
            };
            let report = record_with_hook(&fixture, &base, &on_step)
                .unwrap_or_else(|error| panic!("{step:?} {in_place}: {error}"));
            assert!(interfered.get());
            assert!(report.merged, "{step:?} {in_place}");
            assert_has_both(&fixture);
            assert_eq!(
                report.survey.revision(),
                Revision::compute(&fixture.content())
            );
        }
    }
}

/// Another program truncates the file during the copy and completes it later: the record waits.
#[test]
fn in_place_rewrite_is_waited_for() {
    for step in [SaveStep::Create, SaveStep::Write, SaveStep::Check] {
        let fixture = NotebookFixture::with(notebook());
        let base = fixture.survey();
        let interfered = Cell::new(0);
        let writer = Cell::new(None);
        let on_step = |now: SaveStep| {
            // In the middle of the copy, not before the first chunk.
            if now == step {
                interfered.set(interfered.get() + 1);
            }
            let moment = if step == SaveStep::Write { 3 } else { 1 };
            if now == step && interfered.get() == moment {
                let mut file = fs::File::create(&fixture.path)?;
                let content = edited_by_other();
                file.write_all(&content.as_bytes()[..100])?;
                writer.set(Some(std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    file.write_all(&content.as_bytes()[100..]).unwrap();
                })));
            }
            Ok(())
        };
        let report = record_with_hook(&fixture, &base, &on_step);
        writer.take().unwrap().join().unwrap();
        report.unwrap_or_else(|error| panic!("{step:?}: {error}"));
        assert_has_both(&fixture);
    }
}

#[test]
fn write_into_old_file_after_replace_is_kept() {
    let fixture = NotebookFixture::with(notebook());
    let base = fixture.survey();
    let old = fs::File::options().write(true).open(&fixture.path).unwrap();
    let interfered = Cell::new(false);
    let on_step = |step: SaveStep| {
        if step == SaveStep::Recheck && !interfered.replace(true) {
            old.set_len(0)?;
            (&old).write_all(edited_by_other().as_bytes())?;
        }
        Ok(())
    };
    record_with_hook(&fixture, &base, &on_step).unwrap();
    assert_has_both(&fixture);
}

#[test]
fn constantly_changing_file_is_busy_and_left_alone() {
    let fixture = NotebookFixture::with(notebook());
    let base = fixture.survey();
    let round = Cell::new(0);
    let on_step = |step: SaveStep| {
        if step == SaveStep::Check {
            round.set(round.get() + 1);
            fs::write(
                &fixture.path,
                edited_by_other().replace("theirs", &round.get().to_string()),
            )?;
        }
        Ok(())
    };
    let error = record_with_hook(&fixture, &base, &on_step).unwrap_err();
    assert!(matches!(error, NotebookError::Busy { .. }), "{error}");
    let last = edited_by_other().replace("theirs", &round.get().to_string());
    assert!(lossy(&fixture.content()) == last);
    assert_eq!(fixture.names(), ["a.ipynb"]);
}

#[test]
fn deleted_file_is_not_recreated() {
    for step in [SaveStep::Create, SaveStep::Write, SaveStep::Check] {
        let fixture = NotebookFixture::with(notebook());
        let base = fixture.survey();
        let on_step = |now: SaveStep| {
            if now == step {
                fs::remove_file(&fixture.path).ok();
            }
            Ok(())
        };
        let error = record_with_hook(&fixture, &base, &on_step).unwrap_err();
        assert!(
            matches!(error, NotebookError::NotFound { .. }),
            "{step:?}: {error}"
        );
        assert_eq!(fixture.names(), [""; 0]);
    }
}
