//! Ctrl-C and SIGTERM: what ran is in the file, what did not finish says so, and the report is right.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BACKENDS, RandomNumbers, RunFixture, WAITING_CELL, markdown, old, statuses, times};
use crate::host::{signal, wait_until};

#[test]
fn a_signal_ends_the_cell_and_what_ran_is_saved() {
    for backend in BACKENDS {
        for name in ["-INT", "-TERM", "-HUP"] {
            let fixture = RunFixture::with(&[old("print(0)"), old(WAITING_CELL), old("print(2)")]);
            let running = fixture.spawn_on(backend, &["--json"]);
            fixture.wait_until_started();
            running.signal(name);
            let answer = running.end().exits(130).json();
            assert_eq!(answer["status"], "cancelled", "{name}");
            assert_eq!(statuses(&answer), ["ok", "cancelled", "skipped"]);
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

/// The first one is ignored by the code; the second does not wait for it.
#[test]
fn a_second_ctrl_c_does_not_wait_for_the_code() {
    let stubborn =
        format!("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{WAITING_CELL}");
    for session in [&[][..], &["--session", "s"]] {
        let fixture = RunFixture::with(&[old("print(0)"), old(&stubborn), old("print(2)")]);
        let mut arguments = vec!["--json"];
        arguments.extend(session);
        // Longer than anybody would wait.
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
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(statuses(&answer), ["ok", "cancelled", "skipped"]);
        assert_eq!(fixture.outputs(), ["0", "!Cancelled", "old"]);
        assert_eq!(fixture.counts(), [json!(1), json!(null), json!(99)]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

/// Whoever has read enough ends it, and what ran is in the file.
#[test]
fn a_reader_that_has_gone_ends_it() {
    let fixture = RunFixture::with(&[
        old("print('a line', flush=True)"),
        old("import time\nwhile True: print('x' * 1000); time.sleep(0.001)"),
        old("print(2)"),
    ]);
    let mut child = fixture.command("runner", &[]).spawn().unwrap();
    // More than the first cell says: the second one runs.
    let mut first = [0; 2000];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let outputs = fixture.outputs();
    assert_eq!(
        (outputs[0].as_str(), outputs[2].as_str()),
        ("a line", "old")
    );
    assert!(outputs[1].ends_with("!Cancelled"), "{}", outputs[1]);
}

const CELLS: usize = 7;

/// One run that is stopped at some moment, while somebody else edits the text in it.
struct Try {
    name: String,
    child: Child,
    editor: Option<Child>,
    /// When it is stopped, and when the text is edited.
    moments: (Duration, Duration),
}

/// Each cell says when it begins and when it ends, and writes the latter down where nobody can take it back.
fn cells(number: usize) -> Vec<Value> {
    let mut cells = vec![markdown("their text")];
    cells.extend((1..CELLS).map(|index| {
        old(&format!("import time\nprint('begin {index}', flush=True)\ntime.sleep(0.03)\nprint('end {index}')\nwith open('log{number}', 'a') as file: file.write('{index};')"))
    }));
    cells
}

impl Try {
    fn begin(
        fixture: &RunFixture,
        number: usize,
        numbers: &mut RandomNumbers,
        whole: Duration,
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
        let most = u64::try_from(whole.as_micros()).unwrap();
        let mut moment = || Duration::from_micros(numbers.below(most));
        Self {
            child: command.spawn().unwrap(),
            name,
            editor: None,
            moments: (moment(), moment()),
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

    /// Fails unless report and file are right; says whether it was stopped while cells ran.
    fn check(self, fixture: &RunFixture, number: usize) -> bool {
        let Self {
            name,
            child,
            editor,
            ..
        } = self;
        let output = child.wait_with_output().unwrap();
        let edited = editor.unwrap().wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&edited.stderr).into_owned();
        assert!(edited.status.success(), "{name}: {complaint}");
        let document = fixture.document(&name);
        assert_eq!(
            document["cells"][0]["source"],
            json!(["their new text"]),
            "{name}: their edit is lost"
        );
        let log = fs::read_to_string(fixture.path(&format!("log{number}"))).unwrap_or_default();
        let finished = |index: usize| log.contains(&format!("{index};"));
        let outputs = fixture.outputs_in(&name);
        let whole = |index: usize| format!("begin {index} end {index}");
        for index in 1..CELLS {
            let count = &document["cells"][index]["execution_count"];
            let said = &outputs[index];
            // What looks finished is.
            if *said == whole(index) {
                assert!(finished(index), "{name}, cell {index} looks finished");
            } else {
                let tells = said == "old" || said.is_empty() || said.contains('!');
                assert!(tells, "{name}, cell {index}: {said} {count}");
            }
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let Some(code) = output.status.code() else {
            // Before it could listen: nothing had begun.
            assert_eq!(log, "", "{name}: {said}");
            assert!(
                outputs[1..].iter().all(|said| said == "old"),
                "{name}: {outputs:?}"
            );
            return false;
        };
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}, {said}"));
        let status = answer["status"].as_str().unwrap();
        assert_eq!(code, if status == "ok" { 0 } else { 130 }, "{name}: {said}");
        let statuses = statuses(&answer);
        assert_eq!(statuses.len(), CELLS - 1);
        for (at, status) in statuses.iter().enumerate() {
            let (index, said) = (at + 1, &outputs[at + 1]);
            match *status {
                "ok" => {
                    assert!(finished(index), "{name}: cell {index} is not finished");
                    assert_eq!(*said, whole(index), "{name}");
                }
                "cancelled" => assert!(said.ends_with("!Cancelled"), "{name}: {said}"),
                "skipped" => {
                    assert_eq!(said, "old", "{name}");
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

/// How long one takes.
fn whole(fixture: &RunFixture) -> Duration {
    let mut numbers = RandomNumbers(1);
    let begun = Instant::now();
    let mut first = Try::begin(fixture, 0, &mut numbers, Duration::from_secs(1));
    first.edit(fixture);
    first.check(fixture, 0);
    begun.elapsed()
}

#[test]
fn sigterm_at_any_moment_loses_nothing_and_the_report_is_right() {
    const AT_ONCE: usize = 5;
    let fixture = RunFixture::new();
    let mut numbers = RandomNumbers::new();
    let whole = whole(&fixture).min(Duration::from_secs(3)) * 2;
    let count = times(200);
    let mut stopped = 0;
    for round in 0..count / AT_ONCE {
        let number = |at: usize| 1 + round * AT_ONCE + at;
        let mut tries: Vec<Try> = (0..AT_ONCE)
            .map(|at| Try::begin(&fixture, number(at), &mut numbers, whole))
            .collect();
        let begun = Instant::now();
        let mut todo: Vec<(Duration, usize, bool)> = Vec::new();
        for (at, one) in tries.iter().enumerate() {
            todo.push((one.moments.0, at, true));
            todo.push((one.moments.1, at, false));
        }
        todo.sort_unstable();
        for (moment, at, stops) in todo {
            std::thread::sleep(moment.saturating_sub(begun.elapsed()));
            if stops {
                signal(tries[at].child.id(), "-TERM");
            } else {
                tries[at].edit(&fixture);
            }
        }
        for (at, one) in tries.into_iter().enumerate() {
            stopped += usize::from(one.check(&fixture, number(at)));
        }
    }
    let names: Vec<String> = (1..=count)
        .map(|number| format!("n{number}.ipynb"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fixture.assert_valid(&names);
    assert_eq!(fixture.left_over(), [""; 0]);
    // Otherwise it shows nothing.
    assert!(
        stopped > count / 20,
        "only {stopped} of {count} were stopped while their cells ran"
    );
}

/// The same where a host runs the cells.
#[test]
fn sigterm_to_a_command_with_a_session_saves_what_ran() {
    let fixture = RunFixture::with(&[old("print(0)"), old(WAITING_CELL), old("print(2)")]);
    let running = fixture.begin(&["--session", "s", "--json"]);
    running.signal("-TERM");
    let answer = running.end().exits(130).json();
    assert_eq!(statuses(&answer), ["ok", "cancelled", "skipped"]);
    assert!(fixture.outputs()[1].ends_with("!Cancelled"));
    // Its variables are still there.
    fixture.release_cell();
    let answer = fixture
        .run(&["--session", "s", "--json", "--from", "1"])
        .exits(0)
        .json();
    assert_eq!(answer["kernel"]["generation"], 1);
    wait_until("never", || fixture.outputs() == ["0", "went on", "2"]);
}
