//! Runs in the background.

use super::{ClientProcess, LONG_CELL, SessionFixture, notices, text};
use crate::host::wait_until;

#[test]
fn wait_and_tail_print_the_output_of_a_run() {
    let fixture = SessionFixture::new();
    let code =
        "import time\nfor i in range(3): print('step', i, flush=True); time.sleep(0.1)\n'end'";
    let run = fixture.start_background("s", &[code]);
    assert!(
        run.starts_with('r') && run[1..].parse::<u32>().is_ok(),
        "{run}"
    );
    let full_output = "step 0\nstep 1\nstep 2\n'end'\n";
    let ended = fixture.run(&["runs", "wait", &run]).exits(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        (full_output, "")
    );
    // A second call returns the same.
    assert_eq!(
        fixture.run(&["runs", "wait", &run]).exits(0).stdout,
        full_output
    );
    let report = fixture
        .run(&["runs", "wait", &run, "--json"])
        .exits(0)
        .json();
    assert_eq!(report["status"], "ok");
    assert_eq!(report["run"], *run);
    assert_eq!(report["session"], "s");
    assert_eq!(format!("{}\n", text(&report)), full_output);
    assert_eq!(
        fixture.run(&["runs", "tail", &run]).exits(0).stdout,
        full_output
    );
    let raises = fixture.start_background("s", &["1 / 0"]);
    let raised = fixture.run(&["runs", "wait", &raises]).exits(1);
    let raised_output = format!("{}{}", raised.stdout, raised.stderr);
    assert!(
        raised_output.contains("ZeroDivisionError"),
        "{raised_output}"
    );
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let statuses: Vec<_> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["status"])
        .collect();
    assert_eq!(statuses, ["ok", "error"]);
    let table = fixture.run(&["runs", "list"]).exits(0).stdout;
    assert!(table.contains(&run) && table.contains("error"), "{table}");
}

#[test]
fn a_wait_that_times_out_does_not_affect_the_run() {
    let fixture = SessionFixture::new();
    let run = fixture.start_background("s", &[LONG_CELL, "--timeout", "0"]);
    fixture.wait_until_started();
    let timed_out = fixture
        .run(&["runs", "wait", &run, "--wait", "0.2"])
        .exits(124);
    assert!(
        timed_out.stderr.contains("is still running"),
        "{}",
        timed_out.stderr
    );
    let waiting_client = ClientProcess::new(&fixture, fixture.command(&["runs", "wait", &run]));
    std::thread::sleep(std::time::Duration::from_millis(200));
    waiting_client.kill();
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    assert_eq!(list["runs"][0]["status"], "running");
    assert_eq!(list["runs"][0]["session"], "s");
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("the code was interrupted"),
        "{}",
        ended.stderr
    );
    // Cancelling a run that has ended changes nothing.
    let late = fixture
        .run(&["runs", "cancel", &run, "--json"])
        .exits(0)
        .json();
    assert_eq!(late["cancelled"], false);
    assert_eq!(
        fixture.eval_stdout("s", "time.__name__"),
        "'time'\n",
        "the state is kept"
    );
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn a_command_returns_after_its_wait_and_the_run_continues() {
    let fixture = SessionFixture::new();
    let code = "import time\nprint('early', flush=True)\nopen('begun', 'w').close()\nwhile not open('go').read(): time.sleep(0.01)\nprint('late')";
    std::fs::write(fixture.path("go"), "").unwrap();
    let continued = fixture
        .eval("s", &[code, "--wait", "1", "--timeout", "0"])
        .exits(0);
    assert_eq!(continued.stdout, "early\n");
    let run = continued.stderr.split("runs wait ").nth(1).unwrap();
    let run = run.split('`').next().unwrap().to_owned();
    assert_eq!(
        fixture.run(&["runs", "tail", &run]).exits(0).stdout,
        "early\n"
    );
    let mut follower = ClientProcess::new(
        &fixture,
        fixture.command(&["runs", "tail", &run, "--follow"]),
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!follower.has_exited());
    std::fs::write(fixture.path("go"), "now").unwrap();
    assert_eq!(follower.wait().exits(0).stdout, "early\nlate\n");
    let ended = fixture.run(&["runs", "wait", &run]).exits(0);
    assert_eq!(ended.stdout, "early\nlate\n");
    // The report of a run that ends within the wait is printed immediately.
    let report_of_short_run = fixture.eval_json("s", &["--wait", "20", "5"], 0);
    assert_eq!(text(&report_of_short_run), "5");
    let continued = fixture.eval_json("s", &["--wait", "0.3", "import time; time.sleep(2)"], 0);
    assert_eq!(continued["status"], "running");
    fixture
        .run(&["runs", "wait", continued["run"].as_str().unwrap()])
        .exits(0);
}

#[test]
fn every_end_of_a_run_has_a_status() {
    let fixture = SessionFixture::with(&[("kernel.interrupt_grace", "0.5")]);
    let wait_for_report = |run: &str, code: i32| {
        fixture
            .run(&["runs", "wait", run, "--json"])
            .exits(code)
            .json()
    };
    let start = |code: &str, timeout: &str| {
        std::fs::remove_file(fixture.path("begun")).ok();
        fixture.start_background("s", &[code, "--timeout", timeout])
    };
    let run = start("x = 1", "0");
    assert_eq!(wait_for_report(&run, 0)["status"], "ok");
    let run = start("oops", "0");
    assert_eq!(wait_for_report(&run, 1)["status"], "error");

    let run = start(LONG_CELL, "0.5");
    let timed_out = wait_for_report(&run, 124);
    assert_eq!(timed_out["status"], "timeout");
    assert_eq!(notices(&timed_out), ["interrupted"]);
    assert_eq!(fixture.eval_stdout("s", "x"), "1\n");

    let run = start(LONG_CELL, "0");
    fixture.wait_until_started();
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let interrupted = wait_for_report(&run, 130);
    assert_eq!(interrupted["status"], "cancelled");
    assert_eq!(notices(&interrupted), ["interrupted"]);
    assert_eq!(fixture.eval_stdout("s", "x"), "1\n");

    let ignores_sigint =
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n".to_owned() + LONG_CELL;
    let run = start(&ignores_sigint, "0");
    fixture.wait_until_started();
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let killed = wait_for_report(&run, 130);
    assert_eq!(notices(&killed), ["kernel_killed"]);
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);

    let run = start("import os\nos.abort()", "0");
    let died = wait_for_report(&run, 2);
    assert_eq!(died["status"], "died");
    assert_eq!(died["died"]["signal"], 6);

    let run = start("1", "0");
    wait_for_report(&run, 0);
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let statuses: Vec<_> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["status"])
        .collect();
    assert_eq!(
        statuses,
        [
            "ok",
            "error",
            "timeout",
            "cancelled",
            "cancelled",
            "died",
            "ok"
        ]
    );
}

#[test]
fn a_run_without_a_session_has_a_separate_kernel() {
    let fixture = SessionFixture::new();
    let mut command = fixture
        .host
        .context
        .eval_command(&["--background", "print('alone')"]);
    let output = command.output().unwrap();
    let run = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert_eq!(
        fixture.run(&["runs", "wait", &run]).exits(0).stdout,
        "alone\n"
    );
    assert_eq!(fixture.kernels().len(), 0);
    let mut command =
        fixture
            .host
            .context
            .eval_command(&["--background", LONG_CELL, "--timeout", "0"]);
    command.output().unwrap();
    fixture.wait_until_started();
    fixture.run(&["host", "stop"]).exits(0);
}

#[test]
fn ids_of_runs_are_never_reused() {
    let fixture = SessionFixture::new();
    let first = fixture.start_background("s", &["1"]);
    fixture.kill_host();
    let second = fixture.start_background("s", &["1"]);
    fixture.run(&["host", "stop"]).exits(0);
    let third = fixture.start_background("s", &["1"]);
    assert!(first != second && second != third && first != third);
    let result = fixture.run(&["runs", "wait", &first]).exits(2);
    assert!(
        result.stderr.contains("There is no run"),
        "{}",
        result.stderr
    );
    assert_eq!(
        fixture.run(&["runs", "wait", &third]).exits(0).stdout,
        "1\n"
    );
}

#[test]
fn a_waiting_run_can_be_followed_and_cancelled() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    let run = fixture.start_background("s", &["print('at last')", "--timeout", "0"]);
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let own_entry = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["run"] == *run);
    assert_eq!(own_entry.unwrap()["status"], "pending");
    let mut follower = ClientProcess::new(
        &fixture,
        fixture.command(&["runs", "tail", &run, "--follow"]),
    );
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!follower.has_exited());
    running_client.signal("-INT");
    running_client.wait().exits(130);
    wait_until("the run does not end", || follower.has_exited());
    assert_eq!(follower.wait().exits(0).stdout, "at last\n");
    // A waiting run can be cancelled before its code starts.
    let running_client = fixture.start_busy("s");
    let run = fixture.start_background("s", &["open('wrong', 'w')", "--timeout", "0"]);
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("before the code started"),
        "{}",
        ended.stderr
    );
    running_client.signal("-INT");
    running_client.wait().exits(130);
    assert!(!fixture.path("wrong").exists());
}
