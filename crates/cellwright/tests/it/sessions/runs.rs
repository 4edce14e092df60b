//! Runs in the background.

use super::{Desk, LONG, Terminal, notices, text};
use crate::host::eventually;

#[test]
fn a_still_running_and_its_end_is_told_when_asked_for() {
    let desk = Desk::new();
    let code =
        "import time\nfor i in range(3): print('step', i, flush=True); time.sleep(0.1)\n'end'";
    let run = desk.background("s", &[code]);
    assert!(
        run.starts_with('r') && run[1..].parse::<u32>().is_ok(),
        "{run}"
    );
    let whole = "step 0\nstep 1\nstep 2\n'end'\n";
    let ended = desk.run(&["runs", "wait", &run]).exits(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (whole, ""));
    // Also a second time.
    assert_eq!(desk.run(&["runs", "wait", &run]).exits(0).stdout, whole);
    let answer = desk.run(&["runs", "wait", &run, "--json"]).exits(0).json();
    assert_eq!(answer["status"], "ok");
    assert_eq!(answer["run"], *run);
    assert_eq!(answer["session"], "s");
    assert_eq!(format!("{}\n", text(&answer)), whole);
    assert_eq!(desk.run(&["runs", "tail", &run]).exits(0).stdout, whole);
    let raises = desk.background("s", &["1 / 0"]);
    let raised = desk.run(&["runs", "wait", &raises]).exits(1);
    let said = format!("{}{}", raised.stdout, raised.stderr);
    assert!(said.contains("ZeroDivisionError"), "{said}");
    let list = desk.run(&["runs", "list", "--json"]).exits(0).json();
    let statuses: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["status"])
        .collect();
    assert_eq!(statuses, ["ok", "error"]);
    let table = desk.run(&["runs", "list"]).exits(0).stdout;
    assert!(table.contains(&run) && table.contains("error"), "{table}");
}

#[test]
fn waiting_in_vain_touches_nothing() {
    let desk = Desk::new();
    let run = desk.background("s", &[LONG, "--timeout", "0"]);
    desk.begun();
    let vain = desk
        .run(&["runs", "wait", &run, "--wait", "0.2"])
        .exits(124);
    assert!(vain.stderr.contains("goes on"), "{}", vain.stderr);
    let waiter = Terminal::new(&desk, desk.command(&["runs", "wait", &run]));
    std::thread::sleep(std::time::Duration::from_millis(200));
    waiter.kill();
    let list = desk.run(&["runs", "list", "--json"]).exits(0).json();
    assert_eq!(list[0]["status"], "running");
    assert_eq!(list[0]["session"], "s");
    desk.run(&["runs", "cancel", &run]).exits(0);
    let ended = desk.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("the code was interrupted"),
        "{}",
        ended.stderr
    );
    // Cancelling what has ended changes nothing.
    let late = desk
        .run(&["runs", "cancel", &run, "--json"])
        .exits(0)
        .json();
    assert_eq!(late["cancelled"], false);
    assert_eq!(
        desk.prints("s", "time.__name__"),
        "'time'\n",
        "the state is kept"
    );
    assert_eq!(notices(&desk.answer("s", &["1"], 0)), [""; 0]);
}

#[test]
fn a_command_hands_over_when_its_time_is_up() {
    let desk = Desk::new();
    let code = "import time\nprint('early', flush=True)\nopen('begun', 'w').close()\nwhile not open('go').read(): time.sleep(0.01)\nprint('late')";
    std::fs::write(desk.path("go"), "").unwrap();
    let handed = desk
        .eval("s", &[code, "--wait", "1", "--timeout", "0"])
        .exits(0);
    assert_eq!(handed.stdout, "early\n");
    let run = handed.stderr.split("runs wait ").nth(1).unwrap();
    let run = run.split('`').next().unwrap().to_owned();
    assert_eq!(desk.run(&["runs", "tail", &run]).exits(0).stdout, "early\n");
    let mut follower = Terminal::new(&desk, desk.command(&["runs", "tail", &run, "--follow"]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!follower.is_over());
    std::fs::write(desk.path("go"), "now").unwrap();
    assert_eq!(follower.end().exits(0).stdout, "early\nlate\n");
    let ended = desk.run(&["runs", "wait", &run]).exits(0);
    assert_eq!(ended.stdout, "early\nlate\n");
    // One that ends in time is told at once, and cannot be asked for.
    let quick = desk.answer("s", &["--wait", "20", "5"], 0);
    assert_eq!(text(&quick), "5");
    let handed = desk.answer("s", &["--wait", "0.3", "import time; time.sleep(2)"], 0);
    assert_eq!(handed["status"], "running");
    desk.run(&["runs", "wait", handed["run"].as_str().unwrap()])
        .exits(0);
}

#[test]
fn states_are_truthful() {
    let desk = Desk::with(&[("kernel.interrupt_grace", "0.5")]);
    let end = |run: &str, code: i32| {
        desk.run(&["runs", "wait", run, "--json"])
            .exits(code)
            .json()
    };
    let begin = |code: &str, timeout: &str| {
        std::fs::remove_file(desk.path("begun")).ok();
        desk.background("s", &[code, "--timeout", timeout])
    };
    let run = begin("x = 1", "0");
    assert_eq!(end(&run, 0)["status"], "ok");
    let run = begin("oops", "0");
    assert_eq!(end(&run, 1)["status"], "error");

    let run = begin(LONG, "0.5");
    let timed_out = end(&run, 124);
    assert_eq!(timed_out["status"], "timeout");
    assert_eq!(notices(&timed_out), ["interrupted"]);
    assert_eq!(desk.prints("s", "x"), "1\n");

    let run = begin(LONG, "0");
    desk.begun();
    desk.run(&["runs", "cancel", &run]).exits(0);
    let kept = end(&run, 130);
    assert_eq!(kept["status"], "cancelled");
    assert_eq!(notices(&kept), ["interrupted"]);
    assert_eq!(desk.prints("s", "x"), "1\n");

    let stubborn =
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n".to_owned() + LONG;
    let run = begin(&stubborn, "0");
    desk.begun();
    desk.run(&["runs", "cancel", &run]).exits(0);
    let replaced = end(&run, 130);
    assert_eq!(notices(&replaced), ["kernel_killed"]);
    let next = desk.answer("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);

    let run = begin("import os\nos.abort()", "0");
    let died = end(&run, 2);
    assert_eq!(died["status"], "died");
    assert_eq!(died["died"]["signal"], 6);

    let run = begin("1", "0");
    end(&run, 0);
    let list = desk.run(&["runs", "list", "--json"]).exits(0).json();
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
fn a_run_without_a_session_has_a_kernel_of_its_own() {
    let desk = Desk::new();
    let mut command = desk
        .place
        .context
        .eval_command(&["--background", "print('alone')"]);
    let output = command.output().unwrap();
    let run = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert_eq!(desk.run(&["runs", "wait", &run]).exits(0).stdout, "alone\n");
    assert_eq!(desk.kernels().len(), 0);
    let mut command = desk
        .place
        .context
        .eval_command(&["--background", LONG, "--timeout", "0"]);
    command.output().unwrap();
    desk.begun();
    desk.run(&["host", "stop"]).exits(0);
}

#[test]
fn names_of_runs_never_come_again() {
    let desk = Desk::new();
    let first = desk.background("s", &["1"]);
    desk.kill_host();
    let second = desk.background("s", &["1"]);
    desk.run(&["host", "stop"]).exits(0);
    let third = desk.background("s", &["1"]);
    assert!(first != second && second != third && first != third);
    let ran = desk.run(&["runs", "wait", &first]).exits(2);
    assert!(ran.stderr.contains("There is no run"), "{}", ran.stderr);
    assert_eq!(desk.run(&["runs", "wait", &third]).exits(0).stdout, "1\n");
}

#[test]
fn what_a_run_says_can_be_followed_while_it_waits_and_runs() {
    let desk = Desk::new();
    let held = desk.busy("s");
    let run = desk.background("s", &["print('at last')", "--timeout", "0"]);
    let list = desk.run(&["runs", "list", "--json"]).exits(0).json();
    let mine = list.as_array().unwrap().iter().find(|it| it["run"] == *run);
    assert_eq!(mine.unwrap()["status"], "pending");
    let mut follower = Terminal::new(&desk, desk.command(&["runs", "tail", &run, "--follow"]));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!follower.is_over());
    held.signal("-INT");
    held.end().exits(130);
    eventually("it is never served", || follower.is_over());
    assert_eq!(follower.end().exits(0).stdout, "at last\n");
    // A run that waits can be cancelled, and never runs.
    let held = desk.busy("s");
    let run = desk.background("s", &["open('wrong', 'w')", "--timeout", "0"]);
    desk.run(&["runs", "cancel", &run]).exits(0);
    let ended = desk.run(&["runs", "wait", &run]).exits(130);
    assert!(
        ended.stderr.contains("before the code started"),
        "{}",
        ended.stderr
    );
    held.signal("-INT");
    held.end().exits(130);
    assert!(!desk.path("wrong").exists());
}
