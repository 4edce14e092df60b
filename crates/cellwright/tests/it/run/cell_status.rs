//! The status of cells in the report, and their outputs in the file.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, WAITING_CELL, code, executed, notices, statuses, tagged};

const LONG_CELL: &str = "print('begun', flush=True)\nimport time\ntime.sleep(100)";

/// The name of the exception in the last output of a cell.
fn last_error(fixture: &RunFixture, cell: usize) -> String {
    let outputs = &fixture.document("a.ipynb")["cells"][cell]["outputs"];
    let last = outputs
        .as_array()
        .unwrap()
        .last()
        .cloned()
        .unwrap_or_default();
    last["ename"].as_str().unwrap_or_default().to_owned()
}

/// The traceback is saved, and the cells below are skipped.
#[test]
fn an_exception_ends_the_run() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed("print(0)"),
            executed("print('x')\n1 / 0"),
            executed("print(2)"),
        ]);
        let report = fixture.run_on(backend, &["--json"]).exits(1).json();
        assert_eq!(report["status"], "error");
        assert_eq!(statuses(&report), ["ok", "error", "skipped"]);
        assert_eq!(report["cells"][1]["error"]["ename"], "ZeroDivisionError");
        assert_eq!(fixture.outputs(), ["0", "x !ZeroDivisionError", "old"]);
        assert_eq!(fixture.counts(), [json!(1), json!(2), json!(99)]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn keep_going_continues_after_an_exception() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed("1 / 0"),
            executed("print(1)"),
            executed("oops"),
            executed("print(3)"),
        ]);
        let report = fixture
            .run_on(backend, &["--json", "--keep-going"])
            .exits(1)
            .json();
        assert_eq!(statuses(&report), ["error", "ok", "error", "ok"]);
        assert_eq!(
            fixture.outputs(),
            ["!ZeroDivisionError", "1", "!NameError", "3"]
        );
    }
}

#[test]
fn a_cell_that_exceeds_its_timeout_is_interrupted_and_has_an_error() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed("x = 1\nprint(x)"),
            executed(LONG_CELL),
            executed("print(x)"),
        ]);
        let timeout = "1";
        let report = fixture
            .run_on(backend, &["--json", "--timeout", timeout])
            .exits(124)
            .json();
        assert_eq!(report["status"], "timeout");
        assert_eq!(statuses(&report), ["ok", "timeout", "skipped"]);
        assert_eq!(fixture.outputs()[0], "1");
        assert!(
            fixture.outputs()[1].starts_with("begun !KeyboardInterrupt"),
            "{:?}",
            fixture.outputs()
        );
        assert_eq!(last_error(&fixture, 1), "CellTimeout");
        assert_eq!(fixture.outputs()[2], "old");
        fixture.assert_valid(&["a.ipynb"]);
        let continued = fixture
            .run_on(backend, &["--json", "--timeout", timeout, "--keep-going"])
            .exits(124)
            .json();
        assert_eq!(statuses(&continued), ["ok", "timeout", "ok"]);
        assert_eq!(fixture.outputs()[2], "1", "the variables are kept");
    }
}

/// Cells that did not start before the timeout keep their outputs.
#[test]
fn total_timeout_ends_the_run() {
    let fixture = RunFixture::with(&[
        executed("print(0)"),
        executed(LONG_CELL),
        executed("open('ran', 'w')"),
    ]);
    // A longer timeout of each cell changes nothing.
    for more in [&[][..], &["--keep-going"], &["--timeout", "30"]] {
        let started = Instant::now();
        let mut arguments = vec!["--json", "--total-timeout", "2"];
        arguments.extend(more);
        let report = fixture.run(&arguments).exits(124).json();
        assert_eq!(report["status"], "timeout");
        assert!(started.elapsed() < Duration::from_secs(25), "{more:?}");
        assert_eq!(statuses(&report), ["ok", "timeout", "skipped"]);
        assert_eq!(fixture.outputs()[2], "old");
        assert!(!fixture.path("ran").exists());
    }
    let result = fixture
        .run(&["--total-timeout", "2", "--keep-going"])
        .exits(124);
    assert!(
        result.stderr.contains("ran 2 of 3 cells"),
        "{}",
        result.stderr
    );
    assert!(!result.stderr.contains("[3/3]"), "{}", result.stderr);
    assert!(
        result
            .stderr
            .contains("hint: `--total-timeout SECONDS` sets"),
        "{}",
        result.stderr
    );
}

/// Neither the start of the kernel nor its setup counts, on a kernel of the run and on one of a session.
#[test]
fn the_limit_of_a_cell_starts_with_the_cell() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("import time\ntime.sleep(0.6)\nprint(slow)")]);
        let modules = fixture
            .host
            .context
            .home()
            .join(".config/cellwright/modules");
        std::fs::create_dir_all(&modules).unwrap();
        let module = "import time\ntime.sleep(2)\nslow = 'ready'";
        std::fs::write(modules.join("slow.py"), module).unwrap();
        for session in [&[][..], &["--session", "s"]] {
            let arguments = [session, &["--timeout", "2"]].concat();
            fixture.run_on(backend, &arguments).exits(0);
            assert_eq!(fixture.outputs(), ["ready"]);
        }
        let late = fixture.run_on(backend, &["--timeout", "60", "--start-timeout", "1"]);
        let stderr = late.exits(2).stderr;
        assert!(
            stderr.contains("The kernel was not ready after 1 s"),
            "{stderr}"
        );
        assert!(
            stderr.contains("hint: `--start-timeout SECONDS` sets"),
            "{stderr}"
        );
    }
}

/// A notebook waits for its turn on a busy session, whatever the limit of its cells is.
#[test]
fn the_wait_for_a_session_does_not_count() {
    let fixture = RunFixture::with(&[code(WAITING_CELL)]);
    let busy = fixture.start(&["--session", "s"]);
    fixture.notebook("b.ipynb", &[code("print('second')")]);
    let mut command = fixture.host.context.command(&["run", "b.ipynb"]);
    command.args(["--session", "s", "--backend", "runner", "--timeout", "0.5"]);
    if let Some(python) = super::python() {
        command.arg("--python").arg(python);
    }
    let second = command.spawn().unwrap();
    crate::host::wait_until("the second run does not wait", || {
        let sessions = fixture.run_command(&["kernels", "list", "--json"]).exits(0);
        sessions.json()["kernels"][0]["waiting"] == 1
    });
    // Longer than the limit of a cell.
    std::thread::sleep(Duration::from_millis(700));
    fixture.release_cell();
    busy.wait().exits(0);
    let output = second.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(fixture.outputs_in("b.ipynb"), ["second"]);
}

#[test]
fn a_timeout_before_the_first_cell_leaves_the_notebook() {
    let fixture = RunFixture::with(&[executed("open('ran', 'w')"), executed("open('ran', 'w')")]);
    let before = fixture.content("a.ipynb");
    let report = fixture
        .run(&["--json", "--total-timeout", "0.001"])
        .exits(124)
        .json();
    assert_eq!(report["status"], "timeout");
    assert_eq!(statuses(&report), ["skipped", "skipped"]);
    assert_eq!(report["notebook"]["changed"], false);
    let result = fixture.run(&["--total-timeout", "0.001"]).exits(124);
    assert!(
        result.stderr.contains("before cell 0 started"),
        "{}",
        result.stderr
    );
    assert!(
        result.stderr.contains("ran 0 of 2 cells"),
        "{}",
        result.stderr
    );
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn cells_after_the_death_of_the_kernel_are_skipped() {
    let dies =
        "print('before', flush=True)\nimport os, time\ntime.sleep(0.2)\nos.kill(os.getpid(), 9)";
    for backend in BACKENDS {
        for more in [&["--json"][..], &["--json", "--keep-going"]] {
            let cells = [
                executed("print(0)"),
                executed("print(1)"),
                executed(dies),
                executed("print(3)"),
                executed("print(4)"),
            ];
            let fixture = RunFixture::with(&cells);
            let report = fixture.run_on(backend, more).exits(2).json();
            assert_eq!(report["status"], "died");
            assert_eq!(report["died"]["signal"], 9);
            assert_eq!(
                statuses(&report),
                ["ok", "ok", "died", "skipped", "skipped"]
            );
            assert_eq!(
                fixture.outputs(),
                ["0", "1", "before !KernelDied", "old", "old"]
            );
            assert_eq!(fixture.counts()[2..], [json!(null), json!(99), json!(99)]);
            assert_eq!(report["notebook"]["changed"], true);
            fixture.assert_valid(&["a.ipynb"]);
        }
    }
}

/// As in nbclient and papermill: the author of the cell stopped the notebook, with whatever code.
#[test]
fn an_exit_ends_the_run_unless_it_is_expected() {
    let exits = ["sys.exit()", "sys.exit(0)", "raise SystemExit()"];
    for backend in BACKENDS {
        let mut cells: Vec<Value> = exits
            .iter()
            .map(|exit| tagged(&format!("import sys\n{exit}"), &["raises-exception"]))
            .collect();
        cells.push(executed("print(1)\nsys.exit(0)\nprint(2)"));
        cells.push(executed("print('Cell should not execute.')"));
        let fixture = RunFixture::with(&cells);
        let output = fixture.run_on(backend, &["--json"]).exits(1);
        let report = output.json();
        assert_eq!(statuses(&report)[3..], ["error", "skipped"], "{backend}");
        assert_eq!(report["cells"][3]["error"]["ename"], "SystemExit");
        assert_eq!(report["cells"][3]["error"]["evalue"], "0");
        let outputs = fixture.outputs();
        assert!(outputs[0].starts_with("!SystemExit"), "{outputs:?}");
        assert!(outputs[3].starts_with("1 !SystemExit"), "{outputs:?}");
        assert_eq!(outputs[4], "old", "{backend}");
    }
}

/// A Jupyter kernel reports an exit on iopub and in its reply.
#[test]
fn an_exit_is_stored_as_one_error() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[executed("import sys\nsys.exit(3)")]);
        fixture.run_on(backend, &["--json"]).exits(1);
        let outputs = &fixture.document("a.ipynb")["cells"][0]["outputs"];
        let errors = outputs.as_array().unwrap().iter();
        let errors: Vec<_> = errors
            .filter(|output| output["output_type"] == "error")
            .map(|output| (&output["ename"], &output["evalue"]))
            .collect();
        assert_eq!(errors, [(&json!("SystemExit"), &json!("3"))], "{backend}");
    }
}

/// A kernel that exceeds its memory limit is replaced. If no other kernel starts, the report still contains the
/// cells that ran.
#[test]
fn cells_that_ran_before_the_last_kernel_was_lost_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let large_allocation =
        "x = bytearray(100 * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])\nprint('much')";
    let fixture = RunFixture::with(&[
        executed("print(0)\nopen('lost', 'w').close()"),
        executed(large_allocation),
        executed("print(2)"),
    ]);
    let python = super::python().unwrap_or_else(|| "python3".into());
    let script = format!(
        "#!/bin/sh\ntest -e '{}' && exit 3\nexec {} \"$@\"\n",
        fixture.path("lost").display(),
        python.display()
    );
    let starts_once = fixture.host.context.file("python", script);
    std::fs::set_permissions(&starts_once, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command =
        fixture
            .host
            .context
            .command(&["run", "a.ipynb", "--backend", "runner", "--json"]);
    command
        .arg("--python")
        .arg(&starts_once)
        .args(["--session", "s"]);
    command.env("CELLWRIGHT_KERNEL_MEMORY_LIMIT", "80 MB");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&report), ["ok", "ok", "skipped"], "{report}");
    assert_eq!(report["status"], "died");
    assert_eq!(fixture.outputs(), ["0", "much", "old"]);
    assert_eq!(report["notebook"]["changed"], true);
}

#[test]
fn input_without_an_answer_fails_and_with_one_continues() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("print('hello', input('name? '))"), code("input()")]);
        let report = fixture
            .run_on(backend, &["--json", "--answer", "Ada"])
            .exits(1)
            .json();
        assert_eq!(statuses(&report), ["ok", "error"]);
        assert!(
            fixture.outputs()[0].ends_with("hello Ada"),
            "{:?}",
            fixture.outputs()
        );
        assert!(notices(&report).contains(&"input_refused"), "{report}");
    }
}

/// Output that a widget captures is not an output of the cell, but the death of the kernel is.
#[test]
fn the_death_of_a_kernel_within_a_widget_is_saved() {
    for backend in BACKENDS {
        let in_widget = "import ipywidgets, os, signal\nwith ipywidgets.Output():\n    print('inside', flush=True)\n    os.kill(os.getpid(), signal.SIGKILL)";
        let fixture = RunFixture::with(&[executed(in_widget)]);
        fixture.run_on(backend, &[]).exits(2);
        assert_eq!(fixture.outputs(), ["!KernelDied"], "{backend}");
    }
}
