//! Clients, kernels and hosts that are killed.

use super::{LONG_CELL, SessionFixture, notices, number, text};
use crate::host::{signal, wait_until};
use crate::process_cleanup::is_running;

/// Starts a process in another process session and prints its process id.
const DETACHED_PROCESS: &str =
    "import subprocess\nprint(subprocess.Popen(['sleep', '120'], start_new_session=True).pid)";

#[test]
fn killing_a_client_stops_its_cell_and_keeps_the_session() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 'kept'"]).exits(0);
    let code = format!(
        "try:\n    {}\nfinally:\n    open('ended', 'w').close()",
        LONG_CELL.replace('\n', "\n    ")
    );
    let client = fixture.start_client("s", &[&code, "--timeout", "0"]);
    fixture.wait_until_started();
    client.kill();
    wait_until("the cell still runs", || fixture.path("ended").exists());
    let report = fixture.eval_json("s", &["x"], 0);
    assert_eq!(text(&report), "'kept'");
    assert_eq!(report["kernel"]["generation"], 1);
    assert_eq!(notices(&report), [""; 0]);
}

#[test]
fn killing_a_client_during_output_stops_its_cell_and_keeps_the_session() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 'kept'"]).exits(0);
    let endless_output = "open('begun', 'w').close()\nwhile True: print('x' * 1000)";
    let client = fixture.start_client("s", &[endless_output, "--full", "--timeout", "0"]);
    fixture.wait_until_started();
    // A stopped client does not read, so that the host waits in the middle of sending output.
    client.signal("-STOP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.kill();
    wait_until("the cell still runs", || {
        fixture.kernel("s")["state"] == "idle"
    });
    assert_eq!(fixture.eval_stdout("s", "x"), "'kept'\n");
    let runs = fixture.run(&["runs", "list", "--json"]).exits(0).json();
    let running = |run: &&serde_json::Value| run["status"] == "running";
    let runs = runs["runs"].as_array().unwrap().iter();
    assert_eq!(runs.filter(running).count(), 0);
}

#[test]
fn the_call_of_a_killed_waiting_client_never_runs() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    let waiting_client = fixture.start_client("s", &["open('wrong', 'w')", "--timeout", "0"]);
    fixture.wait_for_queue("s", 1);
    waiting_client.kill();
    fixture.wait_for_queue("s", 0);
    running_client.signal("-INT");
    running_client.wait().exits(130);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
    assert!(!fixture.path("wrong").exists());
}

#[test]
fn a_killed_host_leaves_no_process_and_its_sessions_are_reported_once() {
    let fixture = SessionFixture::new();
    let detached: u32 = fixture
        .eval_stdout("s", DETACHED_PROCESS)
        .trim()
        .parse()
        .unwrap();
    fixture.eval("t", &["y = 1"]).exits(0);
    let mut pids: Vec<u32> = ["s", "t"]
        .map(|session| number(&fixture.kernel(session)["pid"]))
        .to_vec();
    pids.push(detached);
    let running_client = fixture.start_busy("t");
    assert!(pids.iter().all(|pid| is_running(*pid)));
    fixture.kill_host();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while pids.iter().any(|pid| is_running(*pid)) && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_running(**pid)).collect();
    assert!(alive.is_empty(), "{alive:?} of {pids:?}");
    // The command that waited for its cell reports the loss.
    let lost = running_client.wait().exits(2);
    assert!(lost.stderr.contains("host"), "{}", lost.stderr);

    for session in ["s", "t"] {
        let report = fixture.eval_json(session, &["1"], 0);
        assert_eq!(notices(&report), ["host_lost"], "{session}");
        assert_eq!(notices(&fixture.eval_json(session, &["1"], 0)), [""; 0]);
    }
    assert_eq!(notices(&fixture.eval_json("new", &["1"], 0)), [""; 0]);
    // A later host does not report a loss again.
    fixture.kill_host();
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), ["host_lost"]);
    fixture.run(&["kernels", "stop", "t"]);
    fixture.run(&["host", "stop"]).exits(0);
    assert_eq!(
        notices(&fixture.eval_json("s", &["1"], 0)),
        [""; 0],
        "a stopped host is not a loss"
    );
}

#[test]
fn a_stopped_host_stops_runs_and_notifies_waiting_callers() {
    let fixture = SessionFixture::with(&[("kernel.interrupt_grace", "0.5")]);
    let running_client = fixture.start_busy("s");
    let waiting_client = fixture.start_client("s", &["1", "--timeout", "0"]);
    fixture.wait_for_queue("s", 1);
    let pid = number(&fixture.kernel("s")["pid"]);
    fixture.run(&["host", "stop"]).exits(0);
    assert!(!is_running(pid));
    let stopped = running_client.wait().exits(130);
    assert!(stopped.stderr.contains("Cancelled"), "{}", stopped.stderr);
    let stderr = waiting_client.wait().stderr;
    assert!(stderr.contains("error:"), "{stderr}");
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
fn the_death_of_an_idle_kernel_is_reported_once() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    let pid = number(&fixture.kernel("s")["pid"]);
    signal(pid, "-KILL");
    wait_until("the host does not notice the death", || {
        fixture.kernel("s")["state"] == "empty"
    });
    let report = fixture.eval_json("s", &["'y'"], 0);
    assert_eq!(text(&report), "'y'");
    assert_eq!(notices(&report), ["kernel_restarted"]);
    let message = report["notices"][0]["text"].as_str().unwrap();
    assert!(message.contains("signal 9, SIGKILL"), "{message}");
    assert_eq!(report["kernel"]["generation"], 2);
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn the_death_of_a_busy_kernel_is_reported_and_no_cell_runs_twice() {
    let fixture = SessionFixture::new();
    let code = "with open('log', 'a') as file: file.write('once ')\nimport os\nprint('before', flush=True)\nos.kill(os.getpid(), 11)";
    let report = fixture.eval_json("s", &[code], 2);
    assert_eq!(report["status"], "died");
    assert_eq!(report["died"]["signal"], 11);
    assert_eq!(text(&report), "before");
    assert_eq!(notices(&report), ["kernel_died"]);
    let next = fixture.eval_json("s", &["1"], 0);
    assert_eq!(notices(&next), ["kernel_restarted"]);
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
    let result = fixture.eval("s", &[code]).exits(2);
    assert!(result.stderr.contains("signal 11"), "{}", result.stderr);
    assert_eq!(fixture.host.context.content("log"), "once once ");
}

#[test]
fn a_kernel_that_dies_in_every_cell_is_not_restarted_endlessly() {
    let fixture = SessionFixture::new();
    let code = "with open('log', 'a') as file: file.write('x')\nimport os\nos._exit(3)";
    for _ in 0..3 {
        let report = fixture.eval_json("s", &[code], 2);
        assert_eq!(report["died"]["exit_code"], 3);
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
    // A reset permits a new kernel.
    assert_eq!(text(&fixture.eval_json("s", &["--reset", "1"], 0)), "1");
    // A successful cell resets the number of restarts.
    for _ in 0..4 {
        fixture.eval("s", &[code]).exits(2);
        fixture.eval("s", &["1"]).exits(0);
    }
}

#[test]
fn kernels_reset_permits_a_new_kernel() {
    let fixture = SessionFixture::with(&[("sessions.restarts", "0")]);
    let code = "import os\nos._exit(3)";
    fixture.eval("s", &[code]).exits(2);
    fixture.eval("s", &["1"]).exits(2);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    assert_eq!(fixture.eval_stdout("s", "1"), "1\n");
}

#[test]
fn a_session_keeps_its_interpreter_after_a_loss() {
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
    // A call without `--python` uses the interpreter of the session, also after a loss.
    eval(&["import os; os.kill(os.getpid(), 9)"], 2);
    assert_eq!(eval(&[which], 0), format!("{link}\n"));
    assert_eq!(eval(&["--reset", which], 0), format!("{link}\n"));
}
