//! A client of the shared host uses the sessions and runs in its roots only.

use serde_json::json;

use super::client::Client;
use crate::host::TestHost;

#[test]
fn sessions_and_runs_of_other_projects_are_out_of_reach() {
    let test_host = TestHost::new();
    let context = &test_host.context;
    for dir in ["first/.git", "second/.git"] {
        std::fs::create_dir_all(context.path(dir)).unwrap();
    }
    test_host.start();
    let connect =
        |dir: &str| Client::with(context, &["mcp", "--shared", "--root", dir], &json!({}));
    let mut first = connect("first");
    let code = "private_value = 1\nimport os; print(os.getcwd())";
    first
        .call("eval", json!({"session": "private", "code": code}))
        .ok();
    let slow = json!({"session": "private", "code": "import time; time.sleep(600)", "timeout": 0, "background": true});
    let started = first.call("eval", slow).ok();
    let run = started.structured()["run"].as_str().unwrap().to_owned();

    let mut second = connect("second");
    for (tool, arguments) in [
        (
            "kernels",
            json!({"action": "variables", "session": "private"}),
        ),
        (
            "kernels",
            json!({"action": "history", "session": "private"}),
        ),
        ("kernels", json!({"action": "variables", "session": "@1"})),
        ("eval", json!({"session": "@1", "code": "1"})),
        ("stop", json!({"action": "interrupt", "session": "private"})),
        ("stop", json!({"action": "end", "session": "private"})),
        ("stop", json!({"action": "cancel", "run": run})),
        ("runs", json!({"action": "tail", "run": run})),
        ("runs", json!({"action": "wait", "run": run, "wait": 1})),
    ] {
        let reply = second.call(tool, arguments.clone());
        assert!(reply.is_error(), "{tool} {arguments}: {}", reply.text());
    }
    let sessions = second.call("kernels", json!({"action": "list"})).ok();
    assert!(!sessions.text().contains("private"), "{}", sessions.text());
    let runs = second.call("runs", json!({"action": "list"})).ok();
    assert_eq!(runs.structured()["runs"], json!([]));
    // The same name is another session.
    let code = "print('private_value' in globals())\nimport os; print(os.getcwd())";
    let own = second
        .call("eval", json!({"session": "private", "code": code}))
        .ok();
    let printed = own.printed().to_owned();
    assert!(
        printed.starts_with("False\n") && printed.trim_end().ends_with("second"),
        "{printed}"
    );
    let runs = first.call("runs", json!({"action": "list"})).ok();
    assert_eq!(runs.structured()["runs"].as_array().unwrap().len(), 1);
    first
        .call("stop", json!({"action": "cancel", "run": run}))
        .ok();
}
