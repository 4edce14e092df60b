//! What cells put out is taken, rendered in the file's layout and saved, whatever comes late or is changed
//! afterwards.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use cellwright_notebook::Revision;
use cellwright_output::{
    ArtifactId, Artifacts, Bundle, Capture, Event, Limits, Outputs, Retention, Sink, Stream,
};
use cellwright_run::{CommitError, Edit, Ended, Order, Places, Planned, Recorder, Written};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{document, laid_out, put_out};

/// A notebook of some cells, all of which are to run.
struct Desk {
    folder: TempDir,
    order: Order,
}

impl Desk {
    /// `count` cells, in a layout.
    fn new(count: usize, layout: &dyn Fn(&Value) -> String) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.ipynb");
        let text = layout(&document(&vec!["x"; count]));
        std::fs::write(&path, &text).unwrap();
        let cell = |index: usize| Planned {
            index,
            id: Some(format!("c{index}")),
            source: "x".to_owned(),
        };
        let order = Order {
            path,
            revision: Revision::of(text.as_bytes()).to_string(),
            cells: (0..count).map(cell).collect(),
            ..Order::default()
        };
        Self { folder, order }
    }

    fn plain(count: usize) -> Self {
        Self::new(count, &laid_out)
    }

    fn places(&self) -> Places {
        Places {
            artifacts: Some(Artifacts::new(
                self.folder.path().join("artifacts"),
                Retention::default(),
            )),
            ..Places::default()
        }
    }

    /// Begins, and makes the edits.
    fn record(&self) -> Recorder {
        let recorder = Recorder::start(self.order.clone(), self.places()).unwrap();
        recorder.commit().unwrap();
        recorder
    }

    fn artifact(&self, id: ArtifactId) -> Value {
        let artifact = self.places().artifacts.unwrap().open(id).unwrap();
        serde_json::from_slice(&std::fs::read(artifact.path()).unwrap()).unwrap()
    }

    fn path(&self) -> &PathBuf {
        self.order.output.as_ref().unwrap_or(&self.order.path)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn cells(&self) -> Vec<String> {
        let text = self.text();
        let text = text.trim_start_matches('\u{feff}');
        put_out(&serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }
}

fn outputs(events: Vec<Event<'_>>) -> Outputs {
    let mut capture = Capture::new(Limits::default(), None);
    for event in events {
        capture.push(event);
    }
    capture.finish().outputs
}

fn text(bytes: &str) -> Event<'_> {
    Event::Text {
        stream: Stream::Stdout,
        bytes: bytes.as_bytes(),
    }
}

fn shown<'e>(id: &str, text: &str) -> Event<'e> {
    Event::Display {
        bundle: Bundle::text("text/plain", text),
        id: Some(id.to_owned()),
        result: None,
    }
}

fn update<'e>(id: &str, text: &str) -> Event<'e> {
    Event::Update {
        bundle: Bundle::text("text/plain", text),
        id: id.to_owned(),
    }
}

fn run(recorder: &Recorder, cell: usize, events: Vec<Event<'_>>) {
    recorder.begin(cell);
    recorder.end(Ended {
        cell,
        count: Some(u32::try_from(cell).unwrap() + 1),
        outputs: outputs(events),
        at: SystemTime::now(),
    });
}

/// Waits until everything that was said is in the file.
fn saved(desk: &Desk, is_so: impl Fn(&[String]) -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so(&desk.cells()) {
        assert!(Instant::now() < until, "{:?}", desk.cells());
        std::thread::sleep(Duration::from_millis(10));
    }
}

type Layout = fn(&Value) -> String;

/// As many layouts as make a difference to whoever puts arrays together.
const LAYOUTS: [Layout; 5] = [
    |document| laid_out(document),
    |document| document.to_string(),
    |document| laid_out(document).replace('\n', "\r\n"),
    |document| format!("\u{feff}{}", laid_out(document).replace("\n ", "\n\t\t")),
    |document| {
        let lines = laid_out(document);
        let trimmed = lines.lines().map(|line| [line.trim_start(), "\n"]);
        trimmed.flatten().collect()
    },
];

#[test]
fn what_comes_late_stands_behind_what_was_there_in_every_layout() {
    for (number, layout) in LAYOUTS.iter().enumerate() {
        let desk = Desk::new(4, layout);
        let recorder = desk.record();
        run(&recorder, 0, vec![text("early\n"), shown("a", "one")]);
        run(&recorder, 1, vec![]);
        run(&recorder, 2, vec![text("two\n")]);
        recorder.late(0, Stream::Stdout, b"late\n");
        recorder.late(1, Stream::Stderr, b"late, ");
        recorder.late(1, Stream::Stderr, b"too\n");
        saved(&desk, |cells| cells[1] == "late, too");
        // What is not yet said is no output, and what is said after a save comes behind.
        recorder.late(2, Stream::Stdout, b"");
        recorder.late(1, Stream::Stdout, b"later\n");
        recorder.late(0, Stream::Stdout, b"latest\n");
        // A display that changes when late words are there already.
        run(&recorder, 3, vec![update("a", "ONE")]);
        let written = recorder.finish();
        assert!(written.failure.is_none() && written.conflicts.is_empty() && !written.broken);
        assert_eq!(
            desk.cells(),
            ["early =ONE late latest", "late, too later", "two", ""],
            "layout {number}"
        );
    }
}

#[test]
fn displays_are_changed_by_later_cells_however_often() {
    let desk = Desk::plain(4);
    let recorder = desk.record();
    run(
        &recorder,
        0,
        vec![shown("a", "1"), shown("b", "2"), shown("a", "3")],
    );
    run(
        &recorder,
        1,
        vec![update("a", "4"), shown("c", "5"), update("a", "6")],
    );
    run(
        &recorder,
        2,
        vec![update("b", "7"), update("c", "8"), update("nobody", "9")],
    );
    run(&recorder, 3, vec![update("c", "10")]);
    recorder.finish();
    assert_eq!(desk.cells(), ["=6 =7 =6", "=10", "", ""]);
}

/// A cell that has begun has no outputs of its own, and no number.
#[test]
fn a_cell_that_has_begun_is_emptied_and_says_no_more_than_it_should() {
    let desk = Desk::plain(3);
    let recorder = desk.record();
    run(&recorder, 0, vec![text("done\n")]);
    recorder.begin(1);
    saved(&desk, |cells| cells[0] == "done" && cells[1].is_empty());
    let document: Value = serde_json::from_str(&desk.text()).unwrap();
    assert_eq!(document["cells"][1]["execution_count"], json!(null));
    assert_eq!(document["cells"][2]["execution_count"], json!(99));
    let written = recorder.finish();
    assert_eq!(desk.cells(), ["done", "", "old"]);
    assert_eq!(written.places, [Some(0), Some(1), None]);
    // One that runs once more begins anew.
    let desk = Desk::plain(1);
    let recorder = desk.record();
    run(&recorder, 0, vec![text("first\n")]);
    recorder.late(0, Stream::Stdout, b"late\n");
    run(&recorder, 0, vec![text("second\n")]);
    recorder.finish();
    assert_eq!(desk.cells()[0].split(' ').next(), Some("second"));
}

#[test]
fn quick_cells_share_a_save() {
    let desk = Desk::plain(300);
    let begun = Instant::now();
    let recorder = desk.record();
    for cell in 0..300 {
        run(&recorder, cell, vec![text(&format!("{cell}\n"))]);
    }
    let Written { saves, .. } = recorder.finish();
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(
        (1..=seconds + 1).contains(&saves),
        "{saves} saves in {seconds} s"
    );
    let expected: Vec<String> = (0..300).map(|cell| cell.to_string()).collect();
    assert_eq!(desk.cells(), expected);
}

#[test]
fn edits_and_copies_count_as_written_also_if_nothing_runs() {
    let mut desk = Desk::plain(1);
    desk.order.cells.clear();
    let before = desk.text();
    let written = desk.record().finish();
    assert_eq!((written.saves, desk.text()), (0, before.clone()));
    desk.order.edits = vec![Edit::source("0", "y")];
    let written = desk.record().finish();
    assert_eq!(written.saves, 1);
    let revision = Revision::of(desk.text().as_bytes());
    assert_eq!(written.revision, Some(revision));
    desk.order.edits.clear();
    desk.order.revision = revision.to_string();
    desk.order.output = Some(desk.folder.path().join("b.ipynb"));
    let written = desk.record().finish();
    assert_eq!(written.saves, 1);
    assert_eq!(written.revision, Some(revision));
    assert_eq!(Revision::of(desk.text().as_bytes()), revision);
}

#[test]
fn cells_that_are_not_there_any_more_run_nothing() {
    let desk = Desk::plain(2);
    let changed = desk.text().replacen("\"x\"", "\"y\"", 1);
    std::fs::write(desk.path(), &changed).unwrap();
    let recorder = Recorder::start(desk.order.clone(), desk.places()).unwrap();
    let error = recorder.commit().unwrap_err();
    assert!(
        matches!(&error, CommitError::Changed { cells, edited: false } if *cells == [0]),
        "{error:?}"
    );
    recorder.begin(0);
    recorder.finish();
    assert_eq!(desk.text(), changed);
}

/// The same cell is found wherever it has gone; two that are equal and nameless are not guessed.
#[test]
fn cells_that_moved_before_they_run_are_found() {
    let desk = Desk::plain(2);
    let mut moved: Value = serde_json::from_str(&desk.text()).unwrap();
    moved["cells"].as_array_mut().unwrap().reverse();
    std::fs::write(desk.path(), laid_out(&moved)).unwrap();
    let recorder = desk.record();
    run(&recorder, 0, vec![text("zero\n")]);
    let written = recorder.finish();
    assert_eq!(desk.cells(), ["old", "zero"]);
    assert_eq!(written.places, [Some(1), None]);
}

#[test]
fn outputs_that_have_no_place_are_kept_whole() {
    let desk = Desk::plain(3);
    let recorder = desk.record();
    run(&recorder, 0, vec![text("zero\n")]);
    run(&recorder, 1, vec![text("one\n"), shown("a", "display")]);
    recorder.late(1, Stream::Stdout, b"late\n");
    let mut theirs: Value = serde_json::from_str(&desk.text()).unwrap();
    theirs["cells"][1]["source"] = json!("theirs");
    std::fs::write(desk.path(), laid_out(&theirs)).unwrap();
    let written = recorder.finish();
    assert_eq!(written.conflicts.len(), 1);
    assert_eq!(written.conflicts[0].cell, 1);
    let id = written.artifact.unwrap();
    let kept = desk.artifact(id);
    assert_eq!(kept["cells"].as_array().unwrap().len(), 1);
    let cells = put_out(&kept);
    assert_eq!(cells, ["one =display late"]);
    assert_eq!(kept["cells"][0]["id"], "c1");
    // All of them, if the file is gone.
    let desk = Desk::plain(2);
    let recorder = desk.record();
    run(&recorder, 0, vec![text("zero\n")]);
    std::fs::remove_file(desk.path()).unwrap();
    run(&recorder, 1, vec![]);
    let written = recorder.finish();
    assert!(written.failure.is_some());
    let kept = desk.artifact(written.artifact.unwrap());
    assert_eq!(put_out(&kept), ["zero", ""]);
    assert!(!desk.path().exists());
}
