//! Kernels, commands and hosts that are killed while cells run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    BACKENDS, RandomNumbers, RunFixture, WAITING_CELL, code, markdown, old, statuses, times,
};
use crate::host::{signal, wait_until};
use crate::survivors::runs;

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn pid_in(fixture: &RunFixture, name: &str) -> u32 {
    fixture.content(name).trim().parse().unwrap()
}

const TELLS: &str =
    "import os\nwith open('pid', 'w') as file: file.write(str(os.getpid()))\nprint(0)";

#[test]
fn a_kernel_that_is_killed_from_outside_takes_its_cell_and_the_rest() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            old(TELLS),
            old("print(1)"),
            old(WAITING_CELL),
            old("print(3)"),
            old("print(4)"),
        ]);
        let running = fixture.spawn_on(backend, &["--json"]);
        fixture.wait_until_started();
        signal(pid_in(&fixture, "pid"), "-KILL");
        let answer = running.end().exits(2).json();
        assert_eq!(answer["status"], "died");
        assert_eq!(answer["died"]["signal"], 9);
        assert_eq!(
            statuses(&answer),
            ["ok", "ok", "died", "skipped", "skipped"]
        );
        assert_eq!(fixture.outputs(), ["0", "1", "!KernelDied", "old", "old"]);
        assert_eq!(
            fixture.counts(),
            [json!(1), json!(2), json!(null), json!(99), json!(99)]
        );
        fixture.assert_valid(&["a.ipynb"]);
    }
}

/// The next run on the session gets another kernel, and is told.
#[test]
fn a_kernel_of_a_session_that_is_killed_is_replaced_for_the_next_run() {
    let fixture = RunFixture::with(&[old(TELLS), old(WAITING_CELL), old("print(2)")]);
    let running = fixture.begin(&["--session", "s", "--json"]);
    signal(pid_in(&fixture, "pid"), "-KILL");
    let answer = running.end().exits(2).json();
    assert_eq!(statuses(&answer), ["ok", "died", "skipped"]);
    assert_eq!(fixture.outputs(), ["0", "!KernelDied", "old"]);
    fixture.release_cell();
    let answer = fixture.run(&["--session", "s", "--json"]).exits(0).json();
    assert_eq!(super::notices(&answer), ["kernel_restarted"]);
    assert_eq!(fixture.outputs(), ["0", "went on", "2"]);
}

#[test]
fn a_host_that_is_killed_leaves_a_valid_file_and_the_command_says_so() {
    let fixture = RunFixture::with(&[old(TELLS), old(WAITING_CELL), old("print(2)")]);
    let running = fixture.begin(&["--session", "s", "--json"]);
    wait_until("nothing is saved", || fixture.outputs()[0] == "0");
    let kernel = pid_in(&fixture, "pid");
    let host = number(&fixture.host.status()["pid"]);
    signal(host, "-KILL");
    let ran = running.end().exits(2);
    assert!(ran.stderr.contains("host"), "{}", ran.stderr);
    let until = Instant::now() + Duration::from_secs(3);
    while runs(kernel) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!runs(kernel), "the kernel lives on");
    fixture.assert_valid(&["a.ipynb"]);
    // The cell that was not finished does not look as if it were.
    assert_eq!(fixture.outputs(), ["0", "", "old"]);
    assert_eq!(fixture.counts(), [json!(1), json!(null), json!(99)]);
    fixture.release_cell();
    fixture.run(&["--session", "s"]).exits(0);
    assert_eq!(fixture.outputs(), ["0", "went on", "2"]);
    assert_eq!(fixture.left_over(), [""; 0]);
}

#[test]
fn a_host_that_is_stopped_saves_what_ran() {
    let fixture = RunFixture::with(&[old(TELLS), old(WAITING_CELL), old("print(2)")]);
    let running = fixture.begin(&["--session", "s", "--json"]);
    fixture.other(&["host", "stop"]).exits(0);
    let answer = running.end().exits(130).json();
    assert_eq!(statuses(&answer), ["ok", "cancelled", "skipped"]);
    let outputs = fixture.outputs();
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("0", "old"));
    fixture.assert_valid(&["a.ipynb"]);
}

/// A command that is killed while its host runs the cells: they are cancelled, and that is in the file.
#[test]
fn a_command_that_is_killed_has_its_cell_cancelled_by_the_host() {
    let fixture = RunFixture::with(&[old(TELLS), old(WAITING_CELL), old("print(2)")]);
    let running = fixture.begin(&["--session", "s"]);
    running.signal("-KILL");
    wait_until("the cell is not cancelled", || {
        fixture.outputs()[1].ends_with("!Cancelled")
    });
    assert_eq!(fixture.outputs()[0], "0");
    assert_eq!(fixture.outputs()[2], "old");
    fixture.release_cell();
    let answer = fixture.run(&["--session", "s", "--json"]).exits(0).json();
    assert_eq!(answer["kernel"]["generation"], 1, "its kernel is as it was");
}

/// Killed at any moment: the file is a notebook, what looks finished is, and nothing lives on.
#[test]
fn a_command_that_is_killed_at_any_moment_leaves_a_valid_file_and_no_process() {
    let mut numbers = RandomNumbers::new();
    let cells = |number: usize| {
        let cell = |index: usize| {
            old(&format!(
                "import time\nprint('begin {index}', flush=True)\ntime.sleep(0.05)\nprint('end {index}')\nwith open('log{number}', 'a') as file: file.write('{index};')"
            ))
        };
        let hides = format!(
            "import os, subprocess\nchild = subprocess.Popen(['sleep', '120'], start_new_session=True)\nwith open('pids{number}', 'w') as file: file.write(f'{{os.getpid()}} {{child.pid}}')"
        );
        let mut cells = vec![code(&hides), markdown("text")];
        cells.extend((2..6).map(cell));
        // A save comes about once a second: some of them live that long.
        cells.push(old("time.sleep(1.2)"));
        cells.extend((7..9).map(cell));
        cells
    };
    let fixture = RunFixture::new();
    let count = times(48);
    let mut names = Vec::new();
    let mut all_pids = Vec::new();
    for round in 0..count / 6 {
        let children: Vec<_> = (0..6)
            .map(|at| {
                let number = round * 6 + at;
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
                let child = command.spawn().unwrap();
                names.push(name);
                (number, child, Duration::from_millis(numbers.below(3000)))
            })
            .collect();
        let begun = Instant::now();
        let mut order: Vec<_> = children;
        order.sort_by_key(|(_, _, moment)| *moment);
        for (number, mut child, moment) in order {
            std::thread::sleep(moment.saturating_sub(begun.elapsed()));
            child.kill().unwrap();
            child.wait().unwrap();
            let pids =
                std::fs::read_to_string(fixture.path(&format!("pids{number}"))).unwrap_or_default();
            all_pids.extend(pids.split(' ').filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    let until = Instant::now() + Duration::from_secs(3);
    while all_pids.iter().any(|pid| runs(*pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let alive: Vec<&u32> = all_pids.iter().filter(|pid| runs(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?}");
    assert!(all_pids.len() > 10, "hardly any came to their cells");
    let mut saved = 0;
    for (number, name) in names.iter().enumerate() {
        let log =
            std::fs::read_to_string(fixture.path(&format!("log{number}"))).unwrap_or_default();
        for (index, said) in fixture.outputs_in(name).iter().enumerate() {
            if said.contains(&format!("end {index}")) && !said.contains('!') {
                saved += 1;
                assert!(
                    log.contains(&format!("{index};")),
                    "{name}, cell {index} looks finished"
                );
            }
        }
        assert_eq!(
            fixture.document(name)["cells"][1]["source"],
            json!(["text"])
        );
    }
    assert!(saved > 0, "nothing was ever saved");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fixture.assert_valid(&names);
}
