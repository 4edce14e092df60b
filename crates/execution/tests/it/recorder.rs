//! The recorder renders outputs in the layout of the file and saves them, including late output and display updates.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cellwright_execution::{
    CommitError, Edit, FinishedCell, PlannedCell, PlannedCells, RecordOutcome, Recorder, RunSpec,
    Stores,
};
use cellwright_notebook::Revision;
use cellwright_output::{
    ArtifactId, Artifacts, Bundle, Capture, Event, Limits, Outputs, Retention, Sink, Stream,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{document, jupyter_layout, output_summary};

/// A notebook and a run of all its cells.
struct RecorderFixture {
    dir: TempDir,
    spec: RunSpec,
}

impl RecorderFixture {
    /// A notebook with `count` cells in a layout.
    fn new(count: usize, layout: &dyn Fn(&Value) -> String) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.ipynb");
        let text = layout(&document(&vec!["x"; count]));
        std::fs::write(&path, &text).unwrap();
        let cell = |index: usize| PlannedCell {
            index,
            id: Some(format!("c{index}")),
            source: "x".to_owned(),
            ..PlannedCell::default()
        };
        let spec = RunSpec {
            path: path.into(),
            revision: Revision::compute(text.as_bytes()).to_string(),
            cells: (0..count).map(cell).collect(),
            ..RunSpec::default()
        };
        Self { dir, spec }
    }

    fn with_cells(count: usize) -> Self {
        Self::new(count, &jupyter_layout)
    }

    fn stores(&self) -> Stores {
        Stores {
            artifacts: Some(Artifacts::new(
                self.dir.path().join("artifacts"),
                Retention::default(),
            )),
            ..Stores::default()
        }
    }

    /// Starts a recorder and commits.
    fn start_recorder(&self) -> Recorder {
        let recorder = Recorder::start(self.spec.clone(), self.stores()).unwrap();
        recorder.commit().unwrap();
        recorder
    }

    fn artifact(&self, id: ArtifactId) -> Value {
        let artifact = self.stores().artifacts.unwrap().open(id).unwrap();
        serde_json::from_slice(&std::fs::read(artifact.path()).unwrap()).unwrap()
    }

    fn path(&self) -> &Path {
        self.spec.written_file().display_path()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn cell_outputs(&self) -> Vec<String> {
        let text = self.text();
        let text = text.trim_start_matches('\u{feff}');
        output_summary(
            &serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
        )
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

fn display<'e>(id: &str, text: &str) -> Event<'e> {
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

fn run_cell(recorder: &Recorder, cell: usize, events: Vec<Event<'_>>) {
    recorder.begin_cell(cell);
    recorder.finish_cell(FinishedCell {
        cell,
        execution_count: Some(u32::try_from(cell).unwrap() + 1),
        outputs: outputs(events),
        finished_at: SystemTime::now(),
        widget_state: None,
    });
}

/// Waits until the outputs in the file meet a condition.
fn wait_until_saved(fixture: &RecorderFixture, is_saved: impl Fn(&[String]) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_saved(&fixture.cell_outputs()) {
        assert!(Instant::now() < deadline, "{:?}", fixture.cell_outputs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

type Layout = fn(&Value) -> String;

/// The layouts that differ in how arrays are joined.
const LAYOUTS: [Layout; 5] = [
    |document| jupyter_layout(document),
    |document| document.to_string(),
    |document| jupyter_layout(document).replace('\n', "\r\n"),
    |document| {
        format!(
            "\u{feff}{}",
            jupyter_layout(document).replace("\n ", "\n\t\t")
        )
    },
    |document| {
        let lines = jupyter_layout(document);
        let trimmed = lines.lines().map(|line| [line.trim_start(), "\n"]);
        trimmed.flatten().collect()
    },
];

#[test]
fn late_output_follows_the_cells_outputs_in_every_layout() {
    for (number, layout) in LAYOUTS.iter().enumerate() {
        let fixture = RecorderFixture::new(4, layout);
        let recorder = fixture.start_recorder();
        run_cell(&recorder, 0, vec![text("early\n"), display("a", "one")]);
        run_cell(&recorder, 1, vec![]);
        run_cell(&recorder, 2, vec![text("two\n")]);
        recorder.append_late(0, Stream::Stdout, b"late\n");
        recorder.append_late(1, Stream::Stderr, b"late, ");
        recorder.append_late(1, Stream::Stderr, b"too\n");
        wait_until_saved(&fixture, |cells| cells[1] == "late, too");
        // Empty late text is no output. Text after a save follows the text before it.
        recorder.append_late(2, Stream::Stdout, b"");
        recorder.append_late(1, Stream::Stdout, b"later\n");
        recorder.append_late(0, Stream::Stdout, b"latest\n");
        // A display update when late output exists already.
        run_cell(&recorder, 3, vec![update("a", "ONE")]);
        let outcome = recorder.finish();
        assert!(outcome.failure.is_none() && outcome.conflicts.is_empty() && !outcome.panicked);
        assert_eq!(
            fixture.cell_outputs(),
            ["early =ONE late latest", "late, too later", "two", ""],
            "layout {number}"
        );
    }
}

#[test]
fn displays_are_updated_by_later_cells_repeatedly() {
    let fixture = RecorderFixture::with_cells(4);
    let recorder = fixture.start_recorder();
    run_cell(
        &recorder,
        0,
        vec![display("a", "1"), display("b", "2"), display("a", "3")],
    );
    run_cell(
        &recorder,
        1,
        vec![update("a", "4"), display("c", "5"), update("a", "6")],
    );
    run_cell(
        &recorder,
        2,
        vec![update("b", "7"), update("c", "8"), update("unknown", "9")],
    );
    run_cell(&recorder, 3, vec![update("c", "10")]);
    recorder.finish();
    assert_eq!(fixture.cell_outputs(), ["=6 =7 =6", "=10", "", ""]);
}

#[test]
fn started_cell_has_no_outputs_and_no_execution_count() {
    let fixture = RecorderFixture::with_cells(3);
    let recorder = fixture.start_recorder();
    run_cell(&recorder, 0, vec![text("done\n")]);
    recorder.begin_cell(1);
    wait_until_saved(&fixture, |cells| cells[0] == "done" && cells[1].is_empty());
    let document: Value = serde_json::from_str(&fixture.text()).unwrap();
    assert_eq!(document["cells"][1]["execution_count"], json!(null));
    assert_eq!(document["cells"][2]["execution_count"], json!(99));
    let outcome = recorder.finish();
    assert_eq!(fixture.cell_outputs(), ["done", "", "old"]);
    assert_eq!(outcome.cell_indexes, [Some(0), Some(1), None]);
    // A cell that runs again starts without outputs.
    let fixture = RecorderFixture::with_cells(1);
    let recorder = fixture.start_recorder();
    run_cell(&recorder, 0, vec![text("first\n")]);
    recorder.append_late(0, Stream::Stdout, b"late\n");
    run_cell(&recorder, 0, vec![text("second\n")]);
    recorder.finish();
    assert_eq!(fixture.cell_outputs()[0].split(' ').next(), Some("second"));
}

#[test]
fn fast_cells_share_a_save() {
    let fixture = RecorderFixture::with_cells(300);
    let started = Instant::now();
    let recorder = fixture.start_recorder();
    for cell in 0..300 {
        run_cell(&recorder, cell, vec![text(&format!("{cell}\n"))]);
    }
    let RecordOutcome { saves, .. } = recorder.finish();
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(
        (1..=seconds + 1).contains(&saves),
        "{saves} saves in {seconds} s"
    );
    let expected: Vec<String> = (0..300).map(|cell| cell.to_string()).collect();
    assert_eq!(fixture.cell_outputs(), expected);
}

#[test]
fn edits_and_copies_are_written_when_no_cell_runs() {
    let mut fixture = RecorderFixture::with_cells(1);
    fixture.spec.cells = PlannedCells::default();
    let before = fixture.text();
    let outcome = fixture.start_recorder().finish();
    assert_eq!((outcome.saves, fixture.text()), (0, before.clone()));
    fixture.spec.edits = vec![Edit::source("0", "y")];
    let outcome = fixture.start_recorder().finish();
    assert_eq!(outcome.saves, 1);
    let revision = Revision::compute(fixture.text().as_bytes());
    assert_eq!(outcome.revision, Some(revision));
    fixture.spec.edits.clear();
    fixture.spec.revision = revision.to_string();
    fixture.spec.output = Some(fixture.dir.path().join("b.ipynb").into());
    let outcome = fixture.start_recorder().finish();
    assert_eq!(outcome.saves, 1);
    assert_eq!(outcome.revision, Some(revision));
    assert_eq!(Revision::compute(fixture.text().as_bytes()), revision);
}

#[test]
fn commit_fails_if_a_planned_cell_changed() {
    let fixture = RecorderFixture::with_cells(2);
    let changed = fixture.text().replacen("\"x\"", "\"y\"", 1);
    std::fs::write(fixture.path(), &changed).unwrap();
    let recorder = Recorder::start(fixture.spec.clone(), fixture.stores()).unwrap();
    let error = recorder.commit().unwrap_err();
    assert!(
        matches!(&error, CommitError::CellsChanged { cells, edited: false } if *cells == [0]),
        "{error:?}"
    );
    recorder.begin_cell(0);
    recorder.finish();
    assert_eq!(fixture.text(), changed);
}

#[test]
fn moved_cells_are_found_by_id() {
    let fixture = RecorderFixture::with_cells(2);
    let mut moved: Value = serde_json::from_str(&fixture.text()).unwrap();
    moved["cells"].as_array_mut().unwrap().reverse();
    std::fs::write(fixture.path(), jupyter_layout(&moved)).unwrap();
    let recorder = fixture.start_recorder();
    run_cell(&recorder, 0, vec![text("zero\n")]);
    let outcome = recorder.finish();
    assert_eq!(fixture.cell_outputs(), ["old", "zero"]);
    assert_eq!(outcome.cell_indexes, [Some(1), None]);
}

#[test]
fn unwritable_outputs_are_stored_in_an_artifact() {
    let fixture = RecorderFixture::with_cells(3);
    let recorder = fixture.start_recorder();
    run_cell(&recorder, 0, vec![text("zero\n")]);
    run_cell(&recorder, 1, vec![text("one\n"), display("a", "display")]);
    recorder.append_late(1, Stream::Stdout, b"late\n");
    let mut edited: Value = serde_json::from_str(&fixture.text()).unwrap();
    edited["cells"][1]["source"] = json!("theirs");
    std::fs::write(fixture.path(), jupyter_layout(&edited)).unwrap();
    let outcome = recorder.finish();
    assert_eq!(outcome.conflicts.len(), 1);
    assert_eq!(outcome.conflicts[0].cell, 1);
    let id = outcome.artifact.unwrap();
    let stored = fixture.artifact(id);
    assert_eq!(stored["cells"].as_array().unwrap().len(), 1);
    let cells = output_summary(&stored);
    assert_eq!(cells, ["one =display late"]);
    assert_eq!(stored["cells"][0]["id"], "c1");
    // If the file is gone, the outputs of all cells are stored.
    let fixture = RecorderFixture::with_cells(2);
    let recorder = fixture.start_recorder();
    run_cell(&recorder, 0, vec![text("zero\n")]);
    std::fs::remove_file(fixture.path()).unwrap();
    run_cell(&recorder, 1, vec![]);
    let outcome = recorder.finish();
    assert!(outcome.failure.is_some());
    let stored = fixture.artifact(outcome.artifact.unwrap());
    assert_eq!(output_summary(&stored), ["zero", ""]);
    assert!(!fixture.path().exists());
}

/// No command follows the failed save, so only the save at the end can notice that outputs are missing.
#[test]
fn failed_intermediate_save_is_repeated_at_the_end() {
    let (removed, restored) = (
        RecorderFixture::with_cells(1),
        RecorderFixture::with_cells(1),
    );
    let recorders = [removed.start_recorder(), restored.start_recorder()];
    for recorder in &recorders {
        run_cell(recorder, 0, vec![text("zero\n")]);
    }
    let moved = restored.dir.path().join("moved.ipynb");
    std::fs::remove_file(removed.path()).unwrap();
    std::fs::rename(restored.path(), &moved).unwrap();
    // Saves are one second apart.
    std::thread::sleep(Duration::from_millis(1500));
    std::fs::rename(&moved, restored.path()).unwrap();
    let [first, second] = recorders.map(Recorder::finish);
    assert!(first.failure.is_some());
    assert_eq!(first.saves, 0);
    let stored = removed.artifact(first.artifact.unwrap());
    assert_eq!(output_summary(&stored), ["zero"]);
    assert!(second.failure.is_none() && second.artifact.is_none());
    assert_eq!(second.saves, 1);
    assert_eq!(restored.cell_outputs(), ["zero"]);
}

#[test]
fn large_outputs_rendered_again_list_one_artifact() {
    let mut fixture = RecorderFixture::with_cells(3);
    fixture.spec.outputs_limit = Some(1000);
    let recorder = fixture.start_recorder();
    let long = |letter: &str| letter.repeat(2000);
    run_cell(&recorder, 0, vec![display("a", &long("x"))]);
    run_cell(&recorder, 1, vec![text(&long("t"))]);
    run_cell(&recorder, 2, vec![update("a", &long("y"))]);
    let outcome = recorder.finish();
    let mut moved = outcome.moved_outputs;
    moved.sort_by_key(|(cell, _)| *cell);
    let [(0, updated), (1, printed)] = moved[..] else {
        panic!("{moved:?}")
    };
    let artifact = fixture.artifact(updated);
    assert_eq!(artifact[0]["data"]["text/plain"], json!([long("y")]));
    assert_eq!(artifact.as_array().unwrap().len(), 1);
    let cells = fixture.cell_outputs();
    assert!(cells[0].contains(&updated.to_string()), "{cells:?}");
    assert!(cells[1].contains(&printed.to_string()), "{cells:?}");
    assert_eq!(cells[2], "");
}
