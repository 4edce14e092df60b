//! How many sessions, how long, how much.

use super::{LONG, SessionFixture, notices, text};
use crate::host::wait_until;

#[test]
fn the_session_that_was_idle_longest_makes_room_and_is_missed() {
    let fixture = SessionFixture::with(&[("sessions.max", "2")]);
    fixture.eval("a", &["x = 'a'"]).exits(0);
    fixture.eval("b", &["x = 'b'"]).exits(0);
    fixture.eval("a", &["x"]).exits(0);
    let third = fixture.eval_json("c", &["1"], 0);
    assert_eq!(notices(&third), [""; 0]);
    let mut names: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|it| it["session"].to_string())
        .collect();
    names.sort();
    assert_eq!(names, [r#""a""#, r#""c""#]);
    let missed = fixture.eval_json("b", &["'x' in globals()"], 0);
    assert_eq!(text(&missed), "False");
    assert_eq!(notices(&missed), ["session_evicted"]);
    let words = missed["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("more than 2 (sessions.max)"), "{words}");
    assert_eq!(notices(&fixture.eval_json("b", &["1"], 0)), [""; 0]);
}

#[test]
fn a_session_that_is_busy_never_makes_room() {
    let fixture = SessionFixture::with(&[("sessions.max", "1")]);
    let held = fixture.start_busy("a");
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
    let answer = fixture.eval_json("b", &["1"], 2);
    assert_eq!(answer["status"], "not_started");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("sessions are busy"), "{why}");
    held.signal("-INT");
    held.end().exits(130);
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
    wait_until("it stays", || fixture.kernels().is_empty());
    wait_until("its kernel stays", || !crate::survivors::runs(pid));
    let answer = fixture.eval_json("a", &["1"], 0);
    assert_eq!(notices(&answer), ["session_evicted"]);
    let words = answer["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("1 s without use (sessions.idle)"), "{words}");
    // A cell that takes longer than that is no idleness.
    fixture
        .eval("a", &["import time\ntime.sleep(2.5)"])
        .exits(0);
    assert_eq!(fixture.eval_stdout("a", "time.__name__"), "'time'\n");
}

#[test]
fn only_so_many_calls_wait_for_a_session() {
    let fixture = SessionFixture::with(&[("sessions.queue", "2")]);
    let held = fixture.start_busy("s");
    let waiters =
        [1, 2].map(|number| fixture.terminal("s", &[&number.to_string(), "--timeout", "0"]));
    fixture.wait_for_queue("s", 2);
    let refused = fixture.eval("s", &["3"]).exits(2);
    assert!(
        refused
            .stderr
            .contains("2 calls are waiting for this session already"),
        "{}",
        refused.stderr
    );
    held.signal("-INT");
    held.end().exits(130);
    for waiter in waiters {
        waiter.end().exits(0);
    }
}

#[test]
fn a_kernel_that_uses_much_memory_is_warned_of_and_then_replaced() {
    let fixture = SessionFixture::with(&[
        ("kernel.memory_limit", "200 MB"),
        ("kernel.memory_warning", "50"),
    ]);
    let take = |megabytes: u32| {
        format!("x = bytearray({megabytes} * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])")
    };
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
    let high = fixture.eval_json("s", &[&take(120)], 0);
    assert_eq!(notices(&high), ["memory_high"]);
    // What ended is kept, but not the kernel.
    let over = fixture.eval_json("s", &[&take(300)], 0);
    assert_eq!(notices(&over), ["memory_exceeded"]);
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_cell_that_takes_ever_more_memory_is_stopped() {
    let fixture = SessionFixture::with(&[("kernel.memory_limit", "200 MB")]);
    let code = "import time\nx = []\nfor i in range(1000):\n    x.append(b'x' * 10_000_000)\n    time.sleep(0.02)";
    let answer = fixture.eval_json("s", &[code, "--timeout", "60"], 130);
    assert_eq!(answer["status"], "cancelled");
    let words = answer["notices"][0]["text"].as_str().unwrap();
    assert!(words.contains("190.7 MiB"), "{words}");
    // Interrupted or not: what holds the memory is gone, and said to be.
    let next = fixture.eval_json("s", &["'x' in globals()"], 0);
    assert_eq!(text(&next), "False");
    assert_eq!(notices(&next), ["kernel_restarted"]);
}

#[test]
fn a_host_with_nothing_to_do_ends_but_not_one_with_sessions() {
    let fixture = SessionFixture::with(&[("host.idle_exit", "1")]);
    fixture.eval("s", &["1"]).exits(0);
    let pid = fixture.host_pid();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(crate::survivors::runs(pid), "it has a session");
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    wait_until("it stays", || !crate::survivors::runs(pid));
    let run = fixture.start_background("s", &[LONG, "--timeout", "0"]);
    fixture.wait_until_started();
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    let ended = fixture.run(&["runs", "wait", &run]).exits(130);
    assert!(ended.stderr.contains("Cancelled"), "{}", ended.stderr);
}
