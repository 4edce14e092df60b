//! Kernels, commands and hosts that are killed while cells run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    BACKENDS, RandomNumbers, RunFixture, WAITING_CELL, code, executed, markdown, repetitions,
    statuses,
};
use crate::host::{signal, wait_until};
use crate::process_cleanup::is_running;

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn pid_in(fixture: &RunFixture, name: &str) -> u32 {
    fixture.content(name).trim().parse().unwrap()
}

/// A cell that writes the process id of its kernel into the file `pid`.
const PID_CELL: &str =
    "import os\nwith open('pid', 'w') as file: file.write(str(os.getpid()))\nprint(0)";

#[test]
fn killing_the_kernel_ends_its_cell_and_skips_the_rest() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed(PID_CELL),
            executed("print(1)"),
            executed(WAITING_CELL),
            executed("print(3)"),
            executed("print(4)"),
        ]);
        let running = fixture.spawn_on(backend, &["--json"]);
        fixture.wait_until_started();
        signal(pid_in(&fixture, "pid"), "-KILL");
        let report = running.wait().exits(2).json();
        assert_eq!(report["status"], "died");
        assert_eq!(report["died"]["signal"], 9);
        assert_eq!(
            statuses(&report),
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

/// The next run on the session uses another kernel and has a notice.
#[test]
fn the_next_run_replaces_the_killed_kernel_of_a_session() {
    let fixture = RunFixture::with(&[
        executed(PID_CELL),
        executed(WAITING_CELL),
        executed("print(2)"),
    ]);
    let running = fixture.start(&["--session", "s", "--json"]);
    signal(pid_in(&fixture, "pid"), "-KILL");
    let report = running.wait().exits(2).json();
    assert_eq!(statuses(&report), ["ok", "died", "skipped"]);
    assert_eq!(fixture.outputs(), ["0", "!KernelDied", "old"]);
    fixture.release_cell();
    let report = fixture.run(&["--session", "s", "--json"]).exits(0).json();
    assert_eq!(super::notices(&report), ["kernel_restarted"]);
    assert_eq!(fixture.outputs(), ["0", "went on", "2"]);
}

#[test]
fn killing_the_host_leaves_a_valid_notebook_and_is_reported() {
    let fixture = RunFixture::with(&[
        executed(PID_CELL),
        executed(WAITING_CELL),
        executed("print(2)"),
    ]);
    let running = fixture.start(&["--session", "s", "--json"]);
    wait_until("nothing is saved", || fixture.outputs()[0] == "0");
    let kernel = pid_in(&fixture, "pid");
    let host = number(&fixture.host.status()["pid"]);
    signal(host, "-KILL");
    let result = running.wait().exits(2);
    assert!(result.stderr.contains("host"), "{}", result.stderr);
    let until = Instant::now() + Duration::from_secs(3);
    while is_running(kernel) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_running(kernel), "the kernel still runs");
    fixture.assert_valid(&["a.ipynb"]);
    // The unfinished cell has neither outputs nor an execution count.
    assert_eq!(fixture.outputs(), ["0", "", "old"]);
    assert_eq!(fixture.counts(), [json!(1), json!(null), json!(99)]);
    fixture.release_cell();
    fixture.run(&["--session", "s"]).exits(0);
    assert_eq!(fixture.outputs(), ["0", "went on", "2"]);
    assert_eq!(fixture.leftover_files(), [""; 0]);
}

#[test]
fn stopping_the_host_saves_the_outputs() {
    let fixture = RunFixture::with(&[
        executed(PID_CELL),
        executed(WAITING_CELL),
        executed("print(2)"),
    ]);
    let running = fixture.start(&["--session", "s", "--json"]);
    fixture.run_command(&["host", "stop"]).exits(0);
    let report = running.wait().exits(130).json();
    assert_eq!(statuses(&report), ["ok", "cancelled", "skipped"]);
    let outputs = fixture.outputs();
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("0", "old"));
    fixture.assert_valid(&["a.ipynb"]);
}

/// The host runs the cells of the command, so it can still save the notebook.
#[test]
fn the_host_cancels_the_cell_of_a_killed_command() {
    let fixture = RunFixture::with(&[
        executed(PID_CELL),
        executed(WAITING_CELL),
        executed("print(2)"),
    ]);
    let running = fixture.start(&["--session", "s"]);
    running.signal("-KILL");
    wait_until("the cell is not cancelled", || {
        fixture.outputs()[1].ends_with("!Cancelled")
    });
    assert_eq!(fixture.outputs()[0], "0");
    assert_eq!(fixture.outputs()[2], "old");
    fixture.release_cell();
    let report = fixture.run(&["--session", "s", "--json"]).exits(0).json();
    assert_eq!(report["kernel"]["generation"], 1, "the kernel was replaced");
}

/// The file is a notebook, cells that look finished have finished, and no process is left.
#[test]
fn killing_the_command_at_any_time_leaves_a_valid_notebook_and_no_process() {
    let mut numbers = RandomNumbers::new();
    let cells = |number: usize| {
        let cell = |index: usize| {
            executed(&format!(
                "import time\nprint('begin {index}', flush=True)\ntime.sleep(0.05)\nprint('end {index}')\nwith open('log{number}', 'a') as file: file.write('{index};')"
            ))
        };
        let starts_child = format!(
            "import os, subprocess\nchild = subprocess.Popen(['sleep', '120'], start_new_session=True)\nwith open('pids{number}', 'w') as file: file.write(f'{{os.getpid()}} {{child.pid}}')"
        );
        let mut cells = vec![code(&starts_child), markdown("text")];
        cells.extend((2..6).map(cell));
        // A run saves about once per second, so some runs must last that long.
        cells.push(executed("time.sleep(1.2)"));
        cells.extend((7..9).map(cell));
        cells
    };
    let fixture = RunFixture::new();
    let count = repetitions(48);
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
        let started = Instant::now();
        let mut order: Vec<_> = children;
        order.sort_by_key(|(_, _, delay)| *delay);
        for (number, mut child, delay) in order {
            std::thread::sleep(delay.saturating_sub(started.elapsed()));
            child.kill().unwrap();
            child.wait().unwrap();
            let pids =
                std::fs::read_to_string(fixture.path(&format!("pids{number}"))).unwrap_or_default();
            all_pids.extend(pids.split(' ').filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    let until = Instant::now() + Duration::from_secs(3);
    while all_pids.iter().any(|pid| is_running(*pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let alive: Vec<&u32> = all_pids.iter().filter(|pid| is_running(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?}");
    assert!(all_pids.len() > 10, "too few runs reached their cells");
    let mut saved = 0;
    for (number, name) in names.iter().enumerate() {
        let log =
            std::fs::read_to_string(fixture.path(&format!("log{number}"))).unwrap_or_default();
        for (index, output) in fixture.outputs_in(name).iter().enumerate() {
            if output.contains(&format!("end {index}")) && !output.contains('!') {
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
