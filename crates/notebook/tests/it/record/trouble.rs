//! Saves that fail, and others who write while we do.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};

use cellwright_notebook::file::{self, Entry, Record, Recorded, Step, Survey};
use cellwright_notebook::{NotebookError, Revision};

use super::{Place, entry, said};
use crate::support::shown;

/// Large enough to be copied in several pieces; the cell that runs comes last.
fn notebook() -> String {
    format!(
        r#"{{"cells":[{{"cell_type":"code","execution_count":1,"id":"a","metadata":{{}},"outputs":[{{"output_type":"stream","name":"stdout","text":"{}"}}],"source":"first"}},{{"cell_type":"code","execution_count":null,"id":"b","metadata":{{}},"outputs":[],"source":"second"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
        "x".repeat(1_000_000)
    )
}

/// The same with a word of somebody else's in the first cell.
fn theirs() -> String {
    notebook().replace(r#""source":"first""#, r#""source":"first, theirs""#)
}

fn watched(
    place: &Place,
    ran: &Survey,
    watch: &dyn Fn(Step) -> io::Result<()>,
) -> Result<Recorded, NotebookError> {
    let entries: [Entry; 1] = [entry(1, 7, said("ours"))];
    file::record(Record {
        path: &place.path,
        ran,
        entries: &entries,
        metadata: &[],
        expected: ran.revision(),
        watch: Some(watch),
    })
}

/// Whether both are in the file.
fn has_both(place: &Place) {
    let content = shown(&place.content());
    assert!(content.contains("first, theirs"), "their edit is lost");
    assert!(content.contains(r#""ours""#), "our output is lost");
    assert_eq!(place.names(), ["a.ipynb"]);
}

#[test]
fn every_failing_step_leaves_the_original() {
    let place = Place::with(notebook());
    let mut seen = Vec::new();
    for nth in 0.. {
        fs::write(&place.path, notebook()).unwrap();
        let count = Cell::new(0);
        let failed = Cell::new(None);
        let watch = |step: Step| {
            count.set(count.get() + 1);
            if count.get() - 1 == nth {
                failed.set(Some(step));
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(())
        };
        let result = watched(&place, &place.survey(), &watch);
        let Some(step) = failed.get() else {
            result.unwrap();
            break;
        };
        seen.push(step);
        let error = result.unwrap_err();
        assert_eq!(place.names(), ["a.ipynb"], "after {step:?}");
        let content = shown(&place.content());
        if matches!(step, Step::Recheck | Step::SyncFolder) {
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
        Step::Create,
        Step::Write,
        Step::Attributes,
        Step::Sync,
        Step::Check,
        Step::Publish,
        Step::Recheck,
        Step::SyncFolder,
    ] {
        assert!(seen.contains(&step), "{step:?} was not tried");
    }
    assert!(seen.iter().filter(|step| **step == Step::Write).count() > 3);
}

/// Before any step, once: another program replaces the file, or rewrites it in place, as Jupyter does.
#[test]
fn a_change_by_others_before_any_step_is_kept_and_ours_comes_on_top() {
    for in_place in [true, false] {
        for step in [
            Step::Create,
            Step::Write,
            Step::Attributes,
            Step::Sync,
            Step::Check,
            Step::Publish,
            Step::SyncFolder,
        ] {
            let place = Place::with(notebook());
            let ran = place.survey();
            let interfered = Cell::new(false);
            let watch = |now: Step| {
                if now == step && !interfered.replace(true) {
                    if in_place {
                        fs::write(&place.path, theirs())?;
                    } else {
                        let other = place.folder.path().join("other");
                        fs::write(&other, theirs())?;
                        fs::rename(&other, &place.path)?;
                    }
                }
                Ok(())
            };
            let recorded = watched(&place, &ran, &watch)
                .unwrap_or_else(|error| panic!("{step:?} {in_place}: {error}"));
            assert!(interfered.get());
            assert!(recorded.merged, "{step:?} {in_place}");
            has_both(&place);
            assert_eq!(recorded.survey.revision(), Revision::of(&place.content()));
        }
    }
}

/// A file that is empty for a moment, while we copy from it: its writer comes to its end, and so do we.
#[test]
fn a_file_that_is_being_rewritten_in_place_is_waited_for() {
    for step in [Step::Create, Step::Write, Step::Check] {
        let place = Place::with(notebook());
        let ran = place.survey();
        let interfered = Cell::new(0);
        let writer = Cell::new(None);
        let watch = |now: Step| {
            // In the middle of the copy, not before the first piece.
            if now == step {
                interfered.set(interfered.get() + 1);
            }
            let moment = if step == Step::Write { 3 } else { 1 };
            if now == step && interfered.get() == moment {
                let mut file = fs::File::create(&place.path)?;
                let content = theirs();
                file.write_all(&content.as_bytes()[..100])?;
                writer.set(Some(std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    file.write_all(&content.as_bytes()[100..]).unwrap();
                })));
            }
            Ok(())
        };
        let recorded = watched(&place, &ran, &watch);
        writer.take().unwrap().join().unwrap();
        recorded.unwrap_or_else(|error| panic!("{step:?}: {error}"));
        has_both(&place);
    }
}

#[test]
fn a_write_into_the_old_file_at_the_last_moment_is_not_thrown_away() {
    let place = Place::with(notebook());
    let ran = place.survey();
    let old = fs::File::options().write(true).open(&place.path).unwrap();
    let interfered = Cell::new(false);
    let watch = |step: Step| {
        if step == Step::Recheck && !interfered.replace(true) {
            old.set_len(0)?;
            (&old).write_all(theirs().as_bytes())?;
        }
        Ok(())
    };
    watched(&place, &ran, &watch).unwrap();
    has_both(&place);
}

#[test]
fn a_file_that_never_holds_still_is_given_up_and_left_to_its_writer() {
    let place = Place::with(notebook());
    let ran = place.survey();
    let round = Cell::new(0);
    let watch = |step: Step| {
        if step == Step::Check {
            round.set(round.get() + 1);
            fs::write(
                &place.path,
                theirs().replace("theirs", &round.get().to_string()),
            )?;
        }
        Ok(())
    };
    let error = watched(&place, &ran, &watch).unwrap_err();
    assert!(matches!(error, NotebookError::Busy { .. }), "{error}");
    let last = theirs().replace("theirs", &round.get().to_string());
    assert!(shown(&place.content()) == last);
    assert_eq!(place.names(), ["a.ipynb"]);
}

#[test]
fn a_file_that_is_deleted_meanwhile_does_not_come_back() {
    for step in [Step::Create, Step::Write, Step::Check] {
        let place = Place::with(notebook());
        let ran = place.survey();
        let watch = |now: Step| {
            if now == step {
                fs::remove_file(&place.path).ok();
            }
            Ok(())
        };
        let error = watched(&place, &ran, &watch).unwrap_err();
        assert!(
            matches!(error, NotebookError::NotFound { .. }),
            "{step:?}: {error}"
        );
        assert_eq!(place.names(), [""; 0]);
    }
}
