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
    // That stays so, for both.
    let of = |owner: &str| {
        fixture
            .eval("s", &["--owner", owner, "x"])
            .exits(0)
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!((of("a"), of("b")), ("'of both'".into(), "'of b'".into()));
    let mut whose: Vec<_> = fixture
        .kernels()
        .iter()
        .map(|kernel| (kernel["private_to"].clone(), kernel["owners"].clone()))
        .map(|pair| format!("{} {}", pair.0, pair.1))
        .collect();
    whose.sort();
    assert_eq!(whose, [r#""b" ["b"]"#, r#"null ["a"]"#]);
    // Resetting again is for b alone, and takes nothing from a.
    let again = fixture.run(&["kernels", "reset", "s", "--owner", "b", "--json"]);
    assert_eq!(again.exits(0).json()["generation"], 2);
    assert_eq!(of("a"), "'of both'");
    fixture.eval("s", &["--owner", "b", "x"]).exits(1);
    // What is asked about the session is about one's own.
    let names = |owner: &str| {
        fixture
            .run(&["kernels", "variables", "s", "--owner", owner])
            .exits(0)
    };
    assert!(names("a").stdout.contains("'of both'"));
    assert!(!names("b").stdout.contains("'of both'"));
}

#[test]
fn a_reset_within_eval_splits_off_as_well() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["--owner", "a", "x = 1"]).exits(0);
    fixture.eval("s", &["--owner", "b", "x"]).exits(0);
    let fresh = fixture.eval_json("s", &["--owner", "b", "--reset", "x = 2\nx"], 0);
    assert_eq!(text(&fresh), "2");
    assert_eq!(notices(&fresh), [""; 0]);
    let seen = fixture.eval("s", &["--owner", "a", "x"]).exits(0);
    assert_eq!(seen.stdout, "1\n");
    assert_eq!(fixture.kernels().len(), 2);
}

#[test]
fn a_session_ends_with_its_last_owner() {
    let fixture = SessionFixture::new();
    for owner in ["a", "b"] {
        fixture.eval("s", &["--owner", owner, "x = 1"]).exits(0);
    }
    let pid = super::number(&fixture.kernel("s")["pid"]);
    let leave = |owner: &str| {
        let ran = fixture.run(&["kernels", "stop", "s", "--owner", owner, "--json"]);
        ran.exits(0).json()["ended"].clone()
    };
    assert_eq!(leave("a"), false);
    let there = fixture.eval("s", &["--owner", "b", "x"]).exits(0);
    assert_eq!(there.stdout, "1\n");
    assert_eq!(fixture.kernel("s")["owners"], serde_json::json!(["b"]));
    // Somebody who is no owner ends nothing.
    let stranger = fixture
        .run(&["kernels", "stop", "s", "--owner", "c"])
        .exits(2);
    assert!(
        stranger.stderr.contains("its owners are b"),
        "{}",
        stranger.stderr
    );
    assert_eq!(leave("b"), true);
    assert_eq!(fixture.kernels().len(), 0);
    assert!(!crate::survivors::runs(pid), "its kernel is gone");
    // Whoever ended it knows.
    assert_eq!(notices(&fixture.eval_json("s", &["1"], 0)), [""; 0]);
}

#[test]
fn reset_is_a_fresh_kernel() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    let fresh = fixture.eval_json("s", &["--reset", "x"], 1);
    assert_eq!(fresh["kernel"]["generation"], 2);
    assert_eq!(fresh["cells"][0]["error"]["ename"], "NameError");
    assert_eq!(fresh["cells"][0]["execution_count"], 1);
    assert_eq!(notices(&fresh), [""; 0], "whoever asked for it knows");
    // A session that is new is fresh already.
    let new = fixture.eval_json("t", &["--reset", "1"], 0);
    assert_eq!(new["kernel"]["generation"], 1);
}

#[test]
fn resets_at_once_are_one() {
    let fixture = SessionFixture::new();
    let held = fixture.start_busy("s");
    let reset = || {
        let command = fixture.command(&["kernels", "reset", "s", "--json"]);
        super::Terminal::new(&fixture, command)
    };
    let both = [reset(), reset()];
    let generations = both.map(|reset| reset.end().exits(0).json()["generation"].clone());
    // The second may have come when the first was done already; there is nothing to reset then.
    assert_eq!(generations, [2, 2]);
    let cut = held.end().exits(130);
    assert!(cut.stderr.contains("was reset"), "{}", cut.stderr);
    let answer = fixture.eval_json("s", &["1"], 0);
    assert_eq!(answer["kernel"]["generation"], 2);
    assert_eq!(answer["cells"][0]["execution_count"], 1);
}

#[test]
fn a_call_that_waited_during_a_reset_is_notified() {
    let fixture = SessionFixture::new();
    let held = fixture.start_busy("s");
    let waiter = fixture.terminal("s", &["--json", "1"]);
    fixture.wait_for_queue("s", 1);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    held.end().exits(130);
    let answer = waiter.end().exits(0).json();
    assert_eq!(notices(&answer), ["kernel_reset"]);
    assert_eq!(answer["kernel"]["generation"], 2);
}
