//! Several owners of one session, and resets.

use super::{SessionFixture, notices, text};

#[test]
fn a_reset_of_a_shared_session_gives_the_caller_a_separate_one() {
    let fixture = SessionFixture::new();
    fixture
        .eval("s", &["--owner", "a", "x = 'of both'"])
        .exits(0);
    let shared = fixture.eval("s", &["--owner", "b", "x"]).exits(0);
    assert_eq!(shared.stdout, "'of both'\n");
    assert_eq!(
        fixture.kernel("s")["owners"],
        serde_json::json!(["a", "b"]),
        "one session"
    );
    let reset = fixture.run(&["kernels", "reset", "s", "--owner", "b", "--json"]);
    assert_eq!(reset.exits(0).json()["private"], true);
    fixture.eval("s", &["--owner", "b", "x"]).exits(1);
    fixture.eval("s", &["--owner", "b", "x = 'of b'"]).exits(0);
    // Each owner keeps its session.
    let value_for = |owner: &str| {
        fixture
            .eval("s", &["--owner", owner, "x"])
            .exits(0)
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!(
        (value_for("a"), value_for("b")),
        ("'of both'".into(), "'of b'".into())
    );
    let mut owners: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|kernel| (kernel["private_to"].clone(), kernel["owners"].clone()))
        .map(|pair| format!("{} {}", pair.0, pair.1))
        .collect();
    owners.sort();
    assert_eq!(owners, [r#""b" ["b"]"#, r#"null ["a"]"#]);
    // Another reset by b does not affect a.
    let again = fixture.run(&["kernels", "reset", "s", "--owner", "b", "--json"]);
    assert_eq!(again.exits(0).json()["generation"], 2);
    assert_eq!(value_for("a"), "'of both'");
    fixture.eval("s", &["--owner", "b", "x"]).exits(1);
    // `kernels variables` uses the session of the owner.
    let variables = |owner: &str| {
        fixture
            .run(&["kernels", "variables", "s", "--owner", owner])
            .exits(0)
    };
    assert!(variables("a").stdout.contains("'of both'"));
    assert!(!variables("b").stdout.contains("'of both'"));
}

#[test]
fn eval_with_reset_gives_the_caller_a_separate_session() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["--owner", "a", "x = 1"]).exits(0);
    fixture.eval("s", &["--owner", "b", "x"]).exits(0);
    let after_reset = fixture.eval_json("s", &["--owner", "b", "--reset", "x = 2\nx"], 0);
    assert_eq!(text(&after_reset), "2");
    assert_eq!(notices(&after_reset), [""; 0]);
    let value_of_a = fixture.eval("s", &["--owner", "a", "x"]).exits(0);
    assert_eq!(value_of_a.stdout, "1\n");
    assert_eq!(fixture.kernels().len(), 2);
}

#[test]
fn a_session_ends_with_its_last_owner() {
    let fixture = SessionFixture::new();
    for owner in ["a", "b"] {
        fixture.eval("s", &["--owner", owner, "x = 1"]).exits(0);
    }
    let pid = super::number(&fixture.kernel("s")["pid"]);
    let stop = |owner: &str| {
        let result = fixture.run(&["kernels", "stop", "s", "--owner", owner, "--json"]);
        result.exits(0).json()["ended"].clone()
    };
    assert_eq!(stop("a"), false);
    let remaining = fixture.eval("s", &["--owner", "b", "x"]).exits(0);
    assert_eq!(remaining.stdout, "1\n");
    assert_eq!(fixture.kernel("s")["owners"], serde_json::json!(["b"]));
    // A stop on behalf of another owner is rejected.
    let other_owner = fixture
        .run(&["kernels", "stop", "s", "--owner", "c"])
        .exits(2);
    assert!(
        other_owner.stderr.contains("its owners are b"),
        "{}",
        other_owner.stderr
    );
    assert_eq!(stop("b"), true);
    assert_eq!(fixture.kernels().len(), 0);
    assert!(
        !crate::process_cleanup::is_running(pid),
        "its kernel still runs"
    );
    // The owner that stopped the session receives no notice.
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn reset_starts_a_new_kernel() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    let after_reset = fixture.eval_json("s", &["--reset", "x"], 1);
    assert_eq!(after_reset["kernel"]["generation"], 2);
    assert_eq!(after_reset["cells"][0]["error"]["ename"], "NameError");
    assert_eq!(after_reset["cells"][0]["execution_count"], 1);
    assert_eq!(
        notices(&after_reset),
        [""; 0],
        "a requested reset causes no notice"
    );
    // A new session has a new kernel already.
    let new = fixture.eval_json("t", &["--reset", "1"], 0);
    assert_eq!(new["kernel"]["generation"], 1);
}

#[test]
fn concurrent_resets_start_one_kernel() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    let reset = || {
        let command = fixture.command(&["kernels", "reset", "s", "--json"]);
        super::ClientProcess::new(&fixture, command)
    };
    let both = [reset(), reset()];
    let generations = both.map(|reset| reset.wait().exits(0).json()["generation"].clone());
    // If the second reset arrives after the end of the first, there is nothing to reset.
    assert_eq!(generations, [2, 2]);
    let cancelled = running_client.wait().exits(130);
    assert!(
        cancelled.stderr.contains("was reset"),
        "{}",
        cancelled.stderr
    );
    let report = fixture.eval_json("s", &["1"], 0);
    assert_eq!(report["kernel"]["generation"], 2);
    assert_eq!(report["cells"][0]["execution_count"], 1);
}

#[test]
fn a_call_that_waited_during_a_reset_is_notified() {
    let fixture = SessionFixture::new();
    let running_client = fixture.start_busy("s");
    let waiting_client = fixture.start_client("s", &["--json", "1"]);
    fixture.wait_for_queue("s", 1);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    running_client.wait().exits(130);
    let report = waiting_client.wait().exits(0).json();
    assert_eq!(notices(&report), ["kernel_reset"]);
    assert_eq!(report["kernel"]["generation"], 2);
}
