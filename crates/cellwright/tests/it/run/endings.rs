//! How cells end, and what the report and the file say about it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, code, notices, old, statuses};

const LONG: &str = "print('begun', flush=True)\nimport time\ntime.sleep(100)";

/// What the notebook says of a cell that did not end by itself comes last.
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

/// The traceback is in the file, the rest was not run.
#[test]
fn a_cell_that_raises_is_the_last() {
    for backend in BACKENDS {
        let fixture =
            RunFixture::with(&[old("print(0)"), old("print('x')\n1 / 0"), old("print(2)")]);
        let answer = fixture.run_on(backend, &["--json"]).exits(1).json();
        assert_eq!(answer["status"], "error");
        assert_eq!(statuses(&answer), ["ok", "error", "skipped"]);
        assert_eq!(answer["cells"][1]["error"]["ename"], "ZeroDivisionError");
        assert_eq!(fixture.outputs(), ["0", "x !ZeroDivisionError", "old"]);
        assert_eq!(fixture.counts(), [json!(1), json!(2), json!(99)]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn others_follow_a_cell_that_raises_if_wanted() {
    for backend in BACKENDS {
        let fixture =
            RunFixture::with(&[old("1 / 0"), old("print(1)"), old("oops"), old("print(3)")]);
        let answer = fixture
            .run_on(backend, &["--json", "--keep-going"])
            .exits(1)
            .json();
        assert_eq!(statuses(&answer), ["error", "ok", "error", "ok"]);
        assert_eq!(
            fixture.outputs(),
            ["!ZeroDivisionError", "1", "!NameError", "3"]
        );
    }
}

#[test]
fn a_cell_that_takes_too_long_is_interrupted_and_says_so() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[old("x = 1\nprint(x)"), old(LONG), old("print(x)")]);
        let timeout = if backend == "runner" { "1" } else { "6" };
        let answer = fixture
            .run_on(backend, &["--json", "--timeout", timeout])
            .exits(124)
            .json();
        assert_eq!(answer["status"], "timeout");
        assert_eq!(statuses(&answer), ["ok", "timeout", "skipped"]);
        assert_eq!(fixture.outputs()[0], "1");
        assert!(
            fixture.outputs()[1].starts_with("begun !KeyboardInterrupt"),
            "{:?}",
            fixture.outputs()
        );
        assert_eq!(last_error(&fixture, 1), "CellTimeout");
        assert_eq!(fixture.outputs()[2], "old");
        fixture.assert_valid(&["a.ipynb"]);
        let going = fixture
            .run_on(backend, &["--json", "--timeout", timeout, "--keep-going"])
            .exits(124)
            .json();
        assert_eq!(statuses(&going), ["ok", "timeout", "ok"]);
        assert_eq!(fixture.outputs()[2], "1", "the variables are kept");
    }
}

/// A cell that the time did not reach was not run: it keeps what it has.
#[test]
fn total_timeout_ends_the_run() {
    let fixture = RunFixture::with(&[old("print(0)"), old(LONG), old("open('ran', 'w')")]);
    // A longer limit of each cell changes nothing.
    for more in [&[][..], &["--keep-going"], &["--timeout", "30"]] {
        let started = Instant::now();
        let mut arguments = vec!["--json", "--total-timeout", "2"];
        arguments.extend(more);
        let answer = fixture.run(&arguments).exits(124).json();
        assert_eq!(answer["status"], "timeout");
        assert!(started.elapsed() < Duration::from_secs(25), "{more:?}");
        assert_eq!(statuses(&answer), ["ok", "timeout", "skipped"]);
        assert_eq!(fixture.outputs()[2], "old");
        assert!(!fixture.path("ran").exists());
    }
    let ran = fixture
        .run(&["--total-timeout", "2", "--keep-going"])
        .exits(124);
    assert!(ran.stderr.contains("ran 2 of 3 cells"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("[3/3]"), "{}", ran.stderr);
}

#[test]
fn time_that_is_up_before_the_first_cell_leaves_the_file() {
    let fixture = RunFixture::with(&[old("open('ran', 'w')"), old("open('ran', 'w')")]);
    let before = fixture.content("a.ipynb");
    let answer = fixture
        .run(&["--json", "--total-timeout", "0.001"])
        .exits(124)
        .json();
    assert_eq!(answer["status"], "timeout");
    assert_eq!(statuses(&answer), ["skipped", "skipped"]);
    assert_eq!(answer["notebook"]["changed"], false);
    let ran = fixture.run(&["--total-timeout", "0.001"]).exits(124);
    assert!(
        ran.stderr.contains("before cell 0 started"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("ran 0 of 2 cells"), "{}", ran.stderr);
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn a_kernel_that_dies_takes_the_rest_with_it() {
    let dies =
        "print('before', flush=True)\nimport os, time\ntime.sleep(0.2)\nos.kill(os.getpid(), 9)";
    for backend in BACKENDS {
        for more in [&["--json"][..], &["--json", "--keep-going"]] {
            let cells = [
                old("print(0)"),
                old("print(1)"),
                old(dies),
                old("print(3)"),
                old("print(4)"),
            ];
            let fixture = RunFixture::with(&cells);
            let answer = fixture.run_on(backend, more).exits(2).json();
            assert_eq!(answer["status"], "died");
            assert_eq!(answer["died"]["signal"], 9);
            assert_eq!(
                statuses(&answer),
                ["ok", "ok", "died", "skipped", "skipped"]
            );
            assert_eq!(
                fixture.outputs(),
                ["0", "1", "before !KernelDied", "old", "old"]
            );
            assert_eq!(fixture.counts()[2..], [json!(null), json!(99), json!(99)]);
            assert_eq!(answer["notebook"]["changed"], true);
            fixture.assert_valid(&["a.ipynb"]);
        }
    }
}

#[test]
fn code_may_ask_to_exit() {
    for (exits, code, status) in [("0", 0, "ok"), ("3", 1, "error"), ("'sorry'", 1, "error")] {
        let fixture = RunFixture::with(&[
            old(&format!("import sys\nprint(1)\nsys.exit({exits})")),
            old("print(2)"),
        ]);
        let answer = fixture.run(&["--json"]).exits(code).json();
        assert_eq!(answer["cells"][0]["status"], status, "{exits}");
        let outputs = fixture.outputs();
        assert_eq!(outputs[0].contains('!'), status == "error", "{outputs:?}");
        assert_eq!(outputs[1], if code == 0 { "2" } else { "old" });
    }
}

/// A Jupyter kernel reports an exit on iopub and in its reply; the runner does not report it as an error.
#[test]
fn an_exit_is_stored_as_one_error() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[old("import sys\nsys.exit(3)")]);
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

/// A kernel that used too much memory is replaced; if no other can be had, the report still tells what ran.
#[test]
fn cells_that_ran_before_the_last_kernel_was_lost_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let much = "x = bytearray(100 * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])\nprint('much')";
    let fixture = RunFixture::with(&[
        old("print(0)\nopen('lost', 'w').close()"),
        old(much),
        old("print(2)"),
    ]);
    let python = super::python().unwrap_or_else(|| "python3".into());
    let script = format!(
        "#!/bin/sh\ntest -e '{}' && exit 3\nexec {} \"$@\"\n",
        fixture.path("lost").display(),
        python.display()
    );
    let once = fixture.host.context.file("python", script);
    std::fs::set_permissions(&once, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command =
        fixture
            .host
            .context
            .command(&["run", "a.ipynb", "--backend", "runner", "--json"]);
    command.arg("--python").arg(&once).args(["--session", "s"]);
    command.env("CELLWRIGHT_KERNEL_MEMORY_LIMIT", "80 MB");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&answer), ["ok", "ok", "skipped"], "{answer}");
    assert_eq!(answer["status"], "died");
    assert_eq!(fixture.outputs(), ["0", "much", "old"]);
    assert_eq!(answer["notebook"]["changed"], true);
}

#[test]
fn input_without_an_answer_fails_and_with_one_continues() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("print('hello', input('name? '))"), code("input()")]);
        let answer = fixture
            .run_on(backend, &["--json", "--answer", "Ada"])
            .exits(1)
            .json();
        assert_eq!(statuses(&answer), ["ok", "error"]);
        assert!(
            fixture.outputs()[0].ends_with("hello Ada"),
            "{:?}",
            fixture.outputs()
        );
        assert!(notices(&answer).contains(&"input_refused"), "{answer}");
    }
}

/// What a widget captures is not in the cell, but that the cell did not come to its end is.
#[test]
fn a_cell_that_is_ended_inside_of_a_widget_says_so() {
    for backend in BACKENDS {
        let inside = "import ipywidgets, os, signal\nwith ipywidgets.Output():\n    print('inside', flush=True)\n    os.kill(os.getpid(), signal.SIGKILL)";
        let fixture = RunFixture::with(&[old(inside)]);
        fixture.run_on(backend, &[]).exits(2);
        assert_eq!(fixture.outputs(), ["!KernelDied"], "{backend}");
    }
}
