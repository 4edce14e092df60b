//! Ctrl-C and SIGTERM: outputs of finished cells are saved, the cancelled cell has an error, and the report matches.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    BACKENDS, RandomNumbers, RunFixture, WAITING_CELL, executed, markdown, repetitions, statuses,
};
use crate::host::{signal, wait_until};

#[test]
fn a_signal_cancels_the_cell_and_saves_the_outputs() {
    for backend in BACKENDS {
        for name in ["-INT", "-TERM", "-HUP"] {
            let fixture = RunFixture::with(&[
                executed("print(0)"),
                executed(WAITING_CELL),
                executed("print(2)"),
            ]);
            let running = fixture.spawn_on(backend, &["--json"]);
            fixture.wait_until_started();
            running.signal(name);
            let report = running.wait().exits(130).json();
            assert_eq!(report["status"], "cancelled", "{name}");
            assert_eq!(statuses(&report), ["ok", "cancelled", "skipped"]);
            let outputs = fixture.outputs();
            assert_eq!(outputs[0], "0");
            assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
            assert_eq!(outputs[2], "old");
            fixture.assert_valid(&["a.ipynb"]);
            if backend == "jupyter" {
                break;
            }
        }
    }
}

/// The code ignores the first interrupt. The second one kills the kernel.
#[test]
fn a_second_ctrl_c_kills_the_kernel() {
    let ignores_sigint =
        format!("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{WAITING_CELL}");
    for session in [&[][..], &["--session", "s"]] {
        let fixture = RunFixture::with(&[
            executed("print(0)"),
            executed(&ignores_sigint),
            executed("print(2)"),
        ]);
        let mut arguments = vec!["--json"];
        arguments.extend(session);
        // Longer than the test may take.
        let mut command = fixture.command("runner", &arguments);
        command.env("CELLWRIGHT_KERNEL_INTERRUPT_GRACE", "300");
        let child = command.spawn().unwrap();
        fixture.wait_until_started();
        signal(child.id(), "-INT");
        std::thread::sleep(Duration::from_millis(300));
        signal(child.id(), "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(130),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(statuses(&report), ["ok", "cancelled", "skipped"]);
        assert_eq!(fixture.outputs(), ["0", "!Cancelled", "old"]);
        assert_eq!(fixture.counts(), [json!(1), json!(null), json!(99)]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

/// A cell that prints more after stdout was closed, and waits for the file `go`.
const PRINTING_CELL: &str = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    print('x' * 100, flush=True)\n    time.sleep(0.01)\nprint('went on')";

/// The run continues to its end, its outputs are saved, and its exit code counts.
#[test]
fn a_closed_pipe_stops_printing_and_not_the_run() {
    let local: &[&str] = &[];
    for arguments in [
        local,
        &["--full"],
        &["--events"],
        &["--session", "s"],
        &["--session", "s", "--events"],
    ] {
        let fixture = closed_pipe_fixture();
        let mut child = fixture.command("runner", arguments).spawn().unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
        drop(stdout);
        // The cell continues: a remark reports the closed pipe before the cell is released.
        let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut lines = std::io::BufRead::lines(stderr);
        let remark = lines.find(|line| line.as_ref().unwrap().contains("stdout is closed"));
        assert!(remark.is_some(), "{arguments:?}");
        fixture.release_cell();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
        assert_closed_pipe_outputs(&fixture);
    }
}

#[test]
fn a_run_does_not_need_its_streams() {
    for arguments in [&["--json"][..], &["--json", "--session", "s"], &[]] {
        let fixture = closed_pipe_fixture();
        let mut child = fixture.command("runner", arguments).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        fixture.wait_until_started();
        fixture.release_cell();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{arguments:?}");
        assert_closed_pipe_outputs(&fixture);
    }
}

fn closed_pipe_fixture() -> RunFixture {
    RunFixture::with(&[
        executed("print('a line', flush=True)"),
        executed(PRINTING_CELL),
        executed("print(2)\nraise ValueError('two')"),
    ])
}

fn assert_closed_pipe_outputs(fixture: &RunFixture) {
    let outputs = fixture.outputs();
    assert_eq!(
        (outputs[0].as_str(), outputs[2].as_str()),
        ("a line", "2 !ValueError")
    );
    assert!(outputs[1].ends_with("went on"), "{}", outputs[1]);
}

const CELLS: usize = 7;

/// One run that receives SIGTERM at a random time while another command edits its Markdown cell.
struct StoppedRun {
    name: String,
    child: Child,
    editor: Option<Child>,
    /// The delays before SIGTERM and before the edit.
    delays: (Duration, Duration),
}

/// Cells that print their begin and their end, and append their index to a log file at the end.
fn cells(number: usize) -> Vec<Value> {
    let mut cells = vec![markdown("their text")];
    cells.extend((1..CELLS).map(|index| {
        executed(&format!("import time\nprint('begin {index}', flush=True)\ntime.sleep(0.03)\nprint('end {index}')\nwith open('log{number}', 'a') as file: file.write('{index};')"))
    }));
    cells
}

impl StoppedRun {
    fn start(
        fixture: &RunFixture,
        number: usize,
        numbers: &mut RandomNumbers,
        duration: Duration,
    ) -> Self {
        let name = format!("n{number}.ipynb");
        fixture.notebook(&name, &cells(number));
        let mut command =
            fixture
                .host
                .context
                .command(&["run", &name, "--backend", "runner", "--json"]);
        if let Some(python) = super::python() {
            command.arg("--python").arg(python);
        }
        let microseconds_max = u64::try_from(duration.as_micros()).unwrap();
        let mut delay = || Duration::from_micros(numbers.below(microseconds_max));
        Self {
            child: command.spawn().unwrap(),
            name,
            editor: None,
            delays: (delay(), delay()),
        }
    }

    fn edit(&mut self, fixture: &RunFixture) {
        let arguments = [
            "edit",
            &self.name,
            "--old",
            "their text",
            "--new",
            "their new text",
        ];
        self.editor = Some(fixture.host.context.command(&arguments).spawn().unwrap());
    }

    /// Fails unless report and file are correct. Returns whether the run was stopped after its first cell.
    fn check(self, fixture: &RunFixture, number: usize) -> bool {
        let Self {
            name,
            child,
            editor,
            ..
        } = self;
        let output = child.wait_with_output().unwrap();
        let edited = editor.unwrap().wait_with_output().unwrap();
        let edit_stderr = String::from_utf8_lossy(&edited.stderr).into_owned();
        assert!(edited.status.success(), "{name}: {edit_stderr}");
        let document = fixture.document(&name);
        assert_eq!(
            document["cells"][0]["source"],
            json!(["their new text"]),
            "{name}: the edit is lost"
        );
        let log = fs::read_to_string(fixture.path(&format!("log{number}"))).unwrap_or_default();
        let finished = |index: usize| log.contains(&format!("{index};"));
        let outputs = fixture.outputs_in(&name);
        let full_output = |index: usize| format!("begin {index} end {index}");
        for index in 1..CELLS {
            let count = &document["cells"][index]["execution_count"];
            let text = &outputs[index];
            // A cell that looks finished has finished.
            if *text == full_output(index) {
                assert!(finished(index), "{name}, cell {index} looks finished");
            } else {
                let is_unfinished = text == "old" || text.is_empty() || text.contains('!');
                assert!(is_unfinished, "{name}, cell {index}: {text} {count}");
            }
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let Some(code) = output.status.code() else {
            // The signal arrived before its handler existed: no cell had started.
            assert_eq!(log, "", "{name}: {stderr}");
            assert!(
                outputs[1..].iter().all(|text| text == "old"),
                "{name}: {outputs:?}"
            );
            return false;
        };
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}, {stderr}"));
        let status = report["status"].as_str().unwrap();
        assert_eq!(
            code,
            if status == "ok" { 0 } else { 130 },
            "{name}: {stderr}"
        );
        let statuses = statuses(&report);
        assert_eq!(statuses.len(), CELLS - 1);
        for (position, status) in statuses.iter().enumerate() {
            let (index, text) = (position + 1, &outputs[position + 1]);
            match *status {
                "ok" => {
                    assert!(finished(index), "{name}: cell {index} is not finished");
                    assert_eq!(*text, full_output(index), "{name}");
                }
                "cancelled" => assert!(text.ends_with("!Cancelled"), "{name}: {text}"),
                "skipped" => {
                    assert_eq!(text, "old", "{name}");
                    assert!(!finished(index), "{name}: cell {index} ran");
                }
                other => panic!("{name}: {other}"),
            }
        }
        let stopped = statuses
            .iter()
            .filter(|status| **status == "cancelled")
            .count();
        assert!(stopped <= 1, "{name}: {statuses:?}");
        assert_eq!(
            status == "ok",
            statuses.iter().all(|status| *status == "ok"),
            "{name}"
        );
        status != "ok" && statuses[0] == "ok"
    }
}

/// The duration of one run.
fn run_duration(fixture: &RunFixture) -> Duration {
    let mut numbers = RandomNumbers(1);
    let started = Instant::now();
    let mut first = StoppedRun::start(fixture, 0, &mut numbers, Duration::from_secs(1));
    first.edit(fixture);
    first.check(fixture, 0);
    started.elapsed()
}

#[test]
fn sigterm_at_any_time_loses_no_output_and_the_report_matches() {
    const CONCURRENT_RUNS: usize = 5;
    let fixture = RunFixture::new();
    let mut numbers = RandomNumbers::new();
    let duration = run_duration(&fixture).min(Duration::from_secs(3)) * 2;
    let count = repetitions(200);
    let mut stopped = 0;
    for round in 0..count / CONCURRENT_RUNS {
        let number = |position: usize| 1 + round * CONCURRENT_RUNS + position;
        let mut runs: Vec<StoppedRun> = (0..CONCURRENT_RUNS)
            .map(|position| StoppedRun::start(&fixture, number(position), &mut numbers, duration))
            .collect();
        let started = Instant::now();
        let mut actions: Vec<(Duration, usize, bool)> = Vec::new();
        for (position, run) in runs.iter().enumerate() {
            actions.push((run.delays.0, position, true));
            actions.push((run.delays.1, position, false));
        }
        actions.sort_unstable();
        for (delay, position, is_signal) in actions {
            std::thread::sleep(delay.saturating_sub(started.elapsed()));
            if is_signal {
                signal(runs[position].child.id(), "-TERM");
            } else {
                runs[position].edit(&fixture);
            }
        }
        for (position, run) in runs.into_iter().enumerate() {
            stopped += usize::from(run.check(&fixture, number(position)));
        }
    }
    let names: Vec<String> = (1..=count)
        .map(|number| format!("n{number}.ipynb"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fixture.assert_valid(&names);
    assert_eq!(fixture.leftover_files(), [""; 0]);
    // The test needs runs that were stopped while their cells ran.
    assert!(
        stopped > count / 20,
        "only {stopped} of {count} were stopped while their cells ran"
    );
}

/// The same if a host runs the cells.
#[test]
fn sigterm_to_a_command_with_a_session_saves_the_outputs() {
    let fixture = RunFixture::with(&[
        executed("print(0)"),
        executed(WAITING_CELL),
        executed("print(2)"),
    ]);
    let running = fixture.start(&["--session", "s", "--json"]);
    running.signal("-TERM");
    let report = running.wait().exits(130).json();
    assert_eq!(statuses(&report), ["ok", "cancelled", "skipped"]);
    assert!(fixture.outputs()[1].ends_with("!Cancelled"));
    // The kernel is still the same.
    fixture.release_cell();
    let report = fixture
        .run(&["--session", "s", "--json", "--from", "1"])
        .exits(0)
        .json();
    assert_eq!(report["kernel"]["generation"], 1);
    wait_until("the outputs are not saved", || {
        fixture.outputs() == ["0", "went on", "2"]
    });
}
