//! Clients, kernels and hosts that are killed.

use super::{LONG, SessionFixture, notices, number, text};
use crate::host::{signal, wait_until};
use crate::survivors::runs;

/// Starts a process that hides, and prints its number.
const HIDDEN: &str =
    "import subprocess\nprint(subprocess.Popen(['sleep', '120'], start_new_session=True).pid)";

#[test]
fn a_client_killed_while_its_cell_runs_takes_the_cell_and_nothing_else() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 'kept'"]).exits(0);
    let code = format!(
        "try:\n    {}\nfinally:\n    open('ended', 'w').close()",
        LONG.replace('\n', "\n    ")
    );
    let client = fixture.terminal("s", &[&code, "--timeout", "0"]);
    fixture.wait_until_started();
    client.kill();
    wait_until("the cell runs on", || fixture.path("ended").exists());
    let answer = fixture.eval_json("s", &["x"], 0);
    assert_eq!(text(&answer), "'kept'");
    assert_eq!(answer["kernel"]["generation"], 1);
    assert_eq!(notices(&answer), [""; 0]);
}

#[test]
fn a_client_killed_while_its_cell_prints_takes_the_cell_and_nothing_else() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 'kept'"]).exits(0);
    let flood = "open('begun', 'w').close()\nwhile True: print('x' * 1000)";
    let client = fixture.terminal("s", &[flood, "--full", "--timeout", "0"]);
    fixture.wait_until_started();
    // One that does not read, so that the host is just telling it something.
    client.signal("-STOP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.kill();
    wait_until("the cell runs on", || {
        fixture.kernel("s")["state"] == "idle"
    });
    assert_eq!(fixture.eval_stdout("s", "x"), "'kept'\n");
    let left = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let running = |run: &&serde_json::Value| run["status"] == "running";
    assert_eq!(left.as_array().unwrap().iter().filter(running).count(), 0);
}

#[test]
fn a_client_killed_while_it_waits_never_runs() {
    let fixture = SessionFixture::new();
    let held = fixture.start_busy("s");
    let waiter = fixture.terminal("s", &["open('wrong', 'w')", "--timeout", "0"]);
    fixture.wait_for_queue("s", 1);
    waiter.kill();
    fixture.wait_for_queue("s", 0);
    held.signal("-INT");
    held.end().exits(130);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
    assert!(!fixture.path("wrong").exists());
}

#[test]
fn a_killed_host_leaves_nothing_and_its_sessions_are_missed_once() {
    let fixture = SessionFixture::new();
    let hidden: u32 = fixture.eval_stdout("s", HIDDEN).trim().parse().unwrap();
    fixture.eval("t", &["y = 1"]).exits(0);
    let mut gone: Vec<u32> = ["s", "t"]
        .map(|session| number(&fixture.kernel(session)["pid"]))
        .to_vec();
    gone.push(hidden);
    let held = fixture.start_busy("t");
    assert!(gone.iter().all(|pid| runs(*pid)));
    fixture.kill_host();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while gone.iter().any(|pid| runs(*pid)) && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let alive: Vec<&u32> = gone.iter().filter(|pid| runs(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?} of {gone:?}");
    // The command that waited for its cell says what happened.
    let cut = held.end().exits(2);
    assert!(cut.stderr.contains("host"), "{}", cut.stderr);

    for session in ["s", "t"] {
        let answer = fixture.eval_json(session, &["1"], 0);
        assert_eq!(notices(&answer), ["host_lost"], "{session}");
        assert_eq!(notices(&fixture.eval_json(session, &["1"], 0)), [""; 0]);
    }
    assert_eq!(notices(&fixture.eval_json("new", &["1"], 0)), [""; 0]);
    // What was told is not told again by the host after the next.
    fixture.kill_host();
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), ["host_lost"]);
    fixture.run(&["kernels", "stop", "t"]);
    fixture.run(&["host", "stop"]).exits(0);
    assert_eq!(
        notices(&fixture.eval_json("s", &["1"], 0)),
        [""; 0],
        "in order"
    );
}

#[test]
fn a_stopped_host_stops_runs_and_notifies_waiting_callers() {
    let fixture = SessionFixture::with(&[("kernel.interrupt_grace", "0.5")]);
    let held = fixture.start_busy("s");
    let waiter = fixture.terminal("s", &["1", "--timeout", "0"]);
    fixture.wait_for_queue("s", 1);
    let pid = number(&fixture.kernel("s")["pid"]);
    fixture.run(&["host", "stop"]).exits(0);
    assert!(!runs(pid));
    let stopped = held.end().exits(130);
    assert!(stopped.stderr.contains("Cancelled"), "{}", stopped.stderr);
    let words = waiter.end().stderr;
    assert!(words.contains("error:"), "{words}");
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn lost_sessions_are_reported_even_after_another_host_crash() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["1"]).exits(0);
    fixture.eval("t", &["1"]).exits(0);
    fixture.kill_host();
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), ["host_lost"]);
    fixture.kill_host();
    assert_eq!(notices(&fixture.eval_json("t", &["1"], 0)), ["host_lost"]);
}

#[test]
fn a_kernel_that_dies_while_idle_is_told_once() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    let pid = number(&fixture.kernel("s")["pid"]);
    signal(pid, "-KILL");
    wait_until("it is not noticed", || {
        fixture.kernel("s")["state"] == "empty"
    });
    let answer = fixture.eval_json("s", &["'y'"], 0);
    assert_eq!(text(&answer), "'y'");
    assert_eq!(notices(&answer), ["kernel_restarted"]);
    let words = answer["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("signal 9, SIGKILL"), "{words}");
    assert_eq!(answer["kernel"]["generation"], 2);
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn a_kernel_that_dies_while_it_runs_is_told_and_nothing_runs_twice() {
    let fixture = SessionFixture::new();
    let code = "with open('log', 'a') as file: file.write('once ')\nimport os\nprint('before', flush=True)\nos.kill(os.getpid(), 11)";
    let answer = fixture.eval_json("s", &[code], 2);
    assert_eq!(answer["status"], "died");
    assert_eq!(answer["died"]["signal"], 11);
    assert_eq!(text(&answer), "before");
    assert_eq!(notices(&answer), ["kernel_died"]);
    let next = fixture.eval_json("s", &["1"], 0);
    assert_eq!(notices(&next), ["kernel_restarted"]);
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
    let ran = fixture.eval("s", &[code]).exits(2);
    assert!(ran.stderr.contains("signal 11"), "{}", ran.stderr);
    assert_eq!(fixture.host.context.content("log"), "once once ");
}

#[test]
fn a_kernel_that_dies_in_every_cell_is_not_restarted_endlessly() {
    let fixture = SessionFixture::new();
    let code = "with open('log', 'a') as file: file.write('x')\nimport os\nos._exit(3)";
    for _ in 0..3 {
        let answer = fixture.eval_json("s", &[code], 2);
        assert_eq!(answer["died"]["exit_code"], 3);
    }
    let refused = fixture.eval("s", &[code]).exits(2);
    assert!(
        refused
            .stderr
            .contains("Python kernel restarted too many times in this session"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--reset"), "{}", refused.stderr);
    assert_eq!(fixture.host.context.content("log"), "xxx");
    // Whoever says so begins anew.
    assert_eq!(text(&fixture.eval_json("s", &["--reset", "1"], 0)), "1");
    // A cell that ends well counts for the kernel.
    for _ in 0..4 {
        fixture.eval("s", &[code]).exits(2);
        fixture.eval("s", &["1"]).exits(0);
    }
}

#[test]
fn kernels_reset_forgives_as_well() {
    let fixture = SessionFixture::with(&[("sessions.restarts", "0")]);
    let code = "import os\nos._exit(3)";
    fixture.eval("s", &[code]).exits(2);
    fixture.eval("s", &["1"]).exits(2);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_lost_session_gets_the_same_python_again() {
    let fixture = SessionFixture::new();
    let python = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    let real = String::from_utf8(python.stdout).unwrap();
    let link = fixture.path("another-python");
    std::os::unix::fs::symlink(real.trim_end(), &link).unwrap();
    let link = link.display().to_string();
    let eval = |arguments: &[&str], code: i32| {
        let mut all = vec!["eval", "--session", "s"];
        all.extend(arguments);
        fixture.run(&all).exits(code).stdout
    };
    let which = "import sys; print(sys.executable)";
    assert_eq!(eval(&["--python", &link, which], 0), format!("{link}\n"));
    // Who names none is content with that one, also when it is lost.
    eval(&["import os; os.kill(os.getpid(), 9)"], 2);
    assert_eq!(eval(&[which], 0), format!("{link}\n"));
    assert_eq!(eval(&["--reset", which], 0), format!("{link}\n"));
}
