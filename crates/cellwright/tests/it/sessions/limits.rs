//! Limits of sessions: number, idle time, queue and memory.

use super::{LONG_CELL, SessionFixture, notices, text};
use crate::host::wait_until;

#[test]
fn the_session_with_the_longest_idle_time_is_evicted_and_reported() {
    let fixture = SessionFixture::with(&[("sessions.max", "2")]);
    fixture.eval("a", &["x = 'a'"]).exits(0);
    fixture.eval("b", &["x = 'b'"]).exits(0);
    fixture.eval("a", &["x"]).exits(0);
    let third = fixture.eval_json("c", &["1"], 0);
    assert_eq!(notices(&third), [""; 0]);
    let mut names: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|kernel| kernel["session"].to_string())
        .collect();
    names.sort();
    assert_eq!(names, [r#""a""#, r#""c""#]);
    let evicted = fixture.eval_json("b", &["'x' in globals()"], 0);
    assert_eq!(text(&evicted), "False");
    assert_eq!(notices(&evicted), ["session_evicted"]);
    let message = evicted["notices"][0]["text"].as_str().unwrap();
    assert!(message.contains("more than 2 (sessions.max)"), "{message}");
    assert_eq!(notices(&fixture.eval_json("b", &["1"], 0)), [""; 0]);
}

#[test]
fn a_busy_session_is_not_evicted() {
    let fixture = SessionFixture::with(&[("sessions.max", "1")]);
    let running_client = fixture.start_busy("a");
    let refused = fixture.eval("b", &["1"]).exits(2);
    assert!(
        refused.stderr.contains("All 1 sessions are busy"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("sessions.max"),
        "{}",
        refused.stderr
    );
    let report = fixture.eval_json("b", &["1"], 2);
    assert_eq!(report["status"], "not_started");
    let reason = report["error"]["message"].as_str().unwrap();
    assert!(reason.contains("sessions are busy"), "{reason}");
    running_client.signal("-INT");
    running_client.wait().exits(130);
    assert_eq!(fixture.eval_stdout("b", "1"), "1\n");
    assert_eq!(
        notices(&fixture.eval_json("a", &["1"], 0)),
        ["session_evicted"]
    );
}

#[test]
fn an_unused_session_is_ended_and_its_loss_reported() {
    let fixture = SessionFixture::with(&[("sessions.idle", "1")]);
    fixture.eval("a", &["x = 1"]).exits(0);
    let pid = super::number(&fixture.kernel("a")["pid"]);
    wait_until("the session is not evicted", || {
        fixture.kernels().is_empty()
    });
    wait_until("the kernel still runs", || {
        !crate::process_cleanup::is_running(pid)
    });
    let report = fixture.eval_json("a", &["1"], 0);
    assert_eq!(notices(&report), ["session_evicted"]);
    let message = report["notices"][0]["text"].as_str().unwrap();
    assert!(
        message.contains("1 s without use (sessions.idle)"),
        "{message}"
    );
    // The time of a running cell is not idle time.
    fixture
        .eval("a", &["import time\ntime.sleep(2.5)"])
        .exits(0);
    assert_eq!(fixture.eval_stdout("a", "time.__name__"), "'time'\n");
}

#[test]
fn the_queue_of_a_session_is_limited() {
    let fixture = SessionFixture::with(&[("sessions.queue", "2")]);
    let running_client = fixture.start_busy("s");
    let waiting_clients =
        [1, 2].map(|number| fixture.start_client("s", &[&number.to_string(), "--timeout", "0"]));
    fixture.wait_for_queue("s", 2);
    let refused = fixture.eval("s", &["3"]).exits(2);
    assert!(
        refused
            .stderr
            .contains("2 calls are waiting for this session already"),
        "{}",
        refused.stderr
    );
    running_client.signal("-INT");
    running_client.wait().exits(130);
    for client in waiting_clients {
        client.wait().exits(0);
    }
}

#[test]
fn memory_above_the_warning_causes_a_notice_and_above_the_limit_a_restart() {
    let fixture = SessionFixture::with(&[
        ("kernel.memory_limit", "200 MB"),
        ("kernel.memory_warning", "50"),
    ]);
    let allocate = |megabytes: u32| {
        format!("x = bytearray({megabytes} * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])")
    };
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
    let high = fixture.eval_json("s", &[&allocate(120)], 0);
    assert_eq!(notices(&high), ["memory_high"]);
    // The cell succeeds, and the kernel is replaced.
    let over = fixture.eval_json("s", &[&allocate(300)], 0);
    assert_eq!(notices(&over), ["memory_exceeded"]);
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_cell_that_exceeds_the_memory_limit_is_stopped() {
    let fixture = SessionFixture::with(&[("kernel.memory_limit", "200 MB")]);
    let code = "import time\nx = []\nfor i in range(1000):\n    x.append(b'x' * 10_000_000)\n    time.sleep(0.02)";
    let report = fixture.eval_json("s", &[code, "--timeout", "60"], 130);
    assert_eq!(report["status"], "cancelled");
    let message = report["notices"][0]["text"].as_str().unwrap();
    assert!(message.contains("190.7 MiB"), "{message}");
    // The kernel is replaced, and the next report has a notice.
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn an_idle_host_ends_only_without_sessions() {
    let fixture = SessionFixture::with(&[("host.idle_exit", "1")]);
    fixture.eval("s", &["1"]).exits(0);
    let pid = fixture.host_pid();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(
        crate::process_cleanup::is_running(pid),
        "the host ended although it has a session"
    );
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    wait_until("the host still runs", || {
        !crate::process_cleanup::is_running(pid)
    });
    let run = fixture.start_background("s", &[LONG_CELL, "--timeout", "0"]);
    fixture.wait_until_started();
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(ended.stderr.contains("Cancelled"), "{}", ended.stderr);
}
