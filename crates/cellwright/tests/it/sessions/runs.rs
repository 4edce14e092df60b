//! Runs in the background.

use super::{LONG, SessionFixture, Terminal, notices, text};
use crate::host::wait_until;

#[test]
fn a_running_call_reports_its_end_on_request() {
    let fixture = SessionFixture::new();
    let code =
        "import time\nfor i in range(3): print('step', i, flush=True); time.sleep(0.1)\n'end'";
    let run = fixture.start_background("s", &[code]);
    assert!(
        run.starts_with('r') && run[1..].parse::<u32>().is_ok(),
        "{run}"
    );
    let whole = "step 0\nstep 1\nstep 2\n'end'\n";
    let ended = fixture.run(&["runs", "wait", &run]).exits(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (whole, ""));
    // Also a second time.
    assert_eq!(fixture.run(&["runs", "wait", &run]).exits(0).stdout, whole);
    let answer = fixture
        .run(&["runs", "wait", &run, "--json"])
        .exits(0)
        .json();
    assert_eq!(answer["status"], "ok");
    assert_eq!(answer["run"], *run);
    assert_eq!(answer["session"], "s");
    assert_eq!(format!("{}\n", text(&answer)), whole);
    assert_eq!(fixture.run(&["runs", "tail", &run]).exits(0).stdout, whole);
    let raises = fixture.start_background("s", &["1 / 0"]);
    let raised = fixture.run(&["runs", "wait", &raises]).exits(1);
    let said = format!("{}{}", raised.stdout, raised.stderr);
    assert!(said.contains("ZeroDivisionError"), "{said}");
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let statuses: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["status"])
        .collect();
    assert_eq!(statuses, ["ok", "error"]);
    let table = fixture.run(&["runs", "list"]).exits(0).stdout;
    assert!(table.contains(&run) && table.contains("error"), "{table}");
}

#[test]
fn waiting_in_vain_touches_nothing() {
    let fixture = SessionFixture::new();
    let run = fixture.start_background("s", &[LONG, "--timeout", "0"]);
    fixture.wait_until_started();
    let vain = fixture
        .run(&["runs", "wait", &run, "--wait", "0.2"])
        .exits(124);
    assert!(vain.stderr.contains("is still running"), "{}", vain.stderr);
    let waiter = Terminal::new(&fixture, fixture.command(&["runs", "wait", &run]));
    std::thread::sleep(std::time::Duration::from_millis(200));
    waiter.kill();
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    assert_eq!(list[0]["status"], "running");
    assert_eq!(list[0]["session"], "s");
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("the code was interrupted"),
        "{}",
        ended.stderr
    );
    // Cancelling what has ended changes nothing.
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
fn a_command_hands_over_when_its_time_is_up() {
    let fixture = SessionFixture::new();
    let code = "import time\nprint('early', flush=True)\nopen('begun', 'w').close()\nwhile not open('go').read(): time.sleep(0.01)\nprint('late')";
    std::fs::write(fixture.path("go"), "").unwrap();
    let handed = fixture
        .eval("s", &[code, "--wait", "1", "--timeout", "0"])
        .exits(0);
    assert_eq!(handed.stdout, "early\n");
    let run = handed.stderr.split("runs wait ").nth(1).unwrap();
    let run = run.split('`').next().unwrap().to_owned();
    assert_eq!(
        fixture.run(&["runs", "tail", &run]).exits(0).stdout,
        "early\n"
    );
    let mut follower = Terminal::new(
        &fixture,
        fixture.command(&["runs", "tail", &run, "--follow"]),
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!follower.has_exited());
    std::fs::write(fixture.path("go"), "now").unwrap();
    assert_eq!(follower.end().exits(0).stdout, "early\nlate\n");
    let ended = fixture.run(&["runs", "wait", &run]).exits(0);
    assert_eq!(ended.stdout, "early\nlate\n");
    // One that ends in time is told at once, and cannot be asked for.
    let quick = fixture.eval_json("s", &["--wait", "20", "5"], 0);
    assert_eq!(text(&quick), "5");
    let handed = fixture.eval_json("s", &["--wait", "0.3", "import time; time.sleep(2)"], 0);
    assert_eq!(handed["status"], "running");
    fixture
        .run(&["runs", "wait", handed["run"].as_str().unwrap()])
        .exits(0);
}

#[test]
fn states_are_truthful() {
    let fixture = SessionFixture::with(&[("kernel.interrupt_grace", "0.5")]);
    let end = |run: &str, code: i32| {
        fixture
            .run(&["runs", "wait", run, "--json"])
            .exits(code)
            .json()
    };
    let begin = |code: &str, timeout: &str| {
        std::fs::remove_file(fixture.path("begun")).ok();
        fixture.start_background("s", &[code, "--timeout", timeout])
    };
    let run = begin("x = 1", "0");
    assert_eq!(end(&run, 0)["status"], "ok");
    let run = begin("oops", "0");
    assert_eq!(end(&run, 1)["status"], "error");

    let run = begin(LONG, "0.5");
    let timed_out = end(&run, 124);
    assert_eq!(timed_out["status"], "timeout");
    assert_eq!(notices(&timed_out), ["interrupted"]);
    assert_eq!(fixture.eval_stdout("s", "x"), "1\n");

    let run = begin(LONG, "0");
    fixture.wait_until_started();
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let kept = end(&run, 130);
    assert_eq!(kept["status"], "cancelled");
    assert_eq!(notices(&kept), ["interrupted"]);
    assert_eq!(fixture.eval_stdout("s", "x"), "1\n");

    let stubborn =
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n".to_owned() + LONG;
    let run = begin(&stubborn, "0");
    fixture.wait_until_started();
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let replaced = end(&run, 130);
    assert_eq!(notices(&replaced), ["kernel_killed"]);
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);

    let run = begin("import os\nos.abort()", "0");
    let died = end(&run, 2);
    assert_eq!(died["status"], "died");
    assert_eq!(died["died"]["signal"], 6);

    let run = begin("1", "0");
    end(&run, 0);
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let statuses: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["status"])
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
    let mut command = fixture
        .host
        .context
        .eval_command(&["--background", LONG, "--timeout", "0"]);
    command.output().unwrap();
    fixture.wait_until_started();
    fixture.run(&["host", "stop"]).exits(0);
}

#[test]
fn names_of_runs_never_come_again() {
    let fixture = SessionFixture::new();
    let first = fixture.start_background("s", &["1"]);
    fixture.kill_host();
    let second = fixture.start_background("s", &["1"]);
    fixture.run(&["host", "stop"]).exits(0);
    let third = fixture.start_background("s", &["1"]);
    assert!(first != second && second != third && first != third);
    let ran = fixture.run(&["runs", "wait", &first]).exits(2);
    assert!(ran.stderr.contains("There is no run"), "{}", ran.stderr);
    assert_eq!(
        fixture.run(&["runs", "wait", &third]).exits(0).stdout,
        "1\n"
    );
}

#[test]
fn what_a_run_says_can_be_followed_while_it_waits_and_runs() {
    let fixture = SessionFixture::new();
    let held = fixture.start_busy("s");
    let run = fixture.start_background("s", &["print('at last')", "--timeout", "0"]);
    let list = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let mine = list.as_array().unwrap().iter().find(|it| it["run"] == *run);
    assert_eq!(mine.unwrap()["status"], "pending");
    let mut follower = Terminal::new(
        &fixture,
        fixture.command(&["runs", "tail", &run, "--follow"]),
    );
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!follower.has_exited());
    held.signal("-INT");
    held.end().exits(130);
    wait_until("it is never served", || follower.has_exited());
    assert_eq!(follower.end().exits(0).stdout, "at last\n");
    // A run that waits can be cancelled, and never runs.
    let held = fixture.start_busy("s");
    let run = fixture.start_background("s", &["open('wrong', 'w')", "--timeout", "0"]);
    fixture.run(&["runs", "cancel", &run]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("before the code started"),
        "{}",
        ended.stderr
    );
    held.signal("-INT");
    held.end().exits(130);
    assert!(!fixture.path("wrong").exists());
}
