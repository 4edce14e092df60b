//! How calls and servers end: cancelled, too long, killed; and what is left then.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use crate::context::Context;

/// Whether a process is there.
fn lives(pid: u64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    // A zombie counts as ended.
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// Waits until a process is gone.
fn gone(pid: u64) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while lives(pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    !lives(pid)
}

fn kernel_of(client: &mut Client) -> u64 {
    let ran = client.call("eval", json!({"code": "kept = 1"})).ok();
    ran.structured()["kernel"]["pid"].as_u64().unwrap()
}

const LONG: &str = "import time\nprint('begun', flush=True)\ntime.sleep(600)";

#[test]
fn a_cancelled_call_interrupts_the_kernel_and_the_next_one_says_so() {
    let context = Context::new();
    for mut client in [Client::older(&context), Client::newer(&context, &json!({}))] {
        let pid = kernel_of(&mut client);
        let id = client.start_call("eval", json!({"code": LONG, "timeout": 0}), "t");
        // It says that it runs before it is stopped.
        while client.notifications.is_empty() {
            client.next(Duration::from_secs(30)).unwrap();
        }
        let progress = &client.notifications[0]["params"];
        assert_eq!(progress["progressToken"], "t");
        assert!(
            progress["message"].as_str().unwrap().contains("begun"),
            "{progress}"
        );
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
        });
        client.send(&cancel);
        let after = client.call("eval", json!({"code": "kept"})).ok();
        assert_eq!(after.printed().trim(), "1");
        assert_eq!(after.structured()["kernel"]["pid"], json!(pid));
        assert!(
            after.notices().contains(&"call_cancelled"),
            "{}",
            after.text()
        );
        assert!(
            after.text().contains("variables are kept"),
            "{}",
            after.text()
        );
        // It is reported once.
        let again = client.call("eval", json!({"code": "kept"})).ok();
        assert!(again.notices().is_empty());
        assert!(client.disconnect().success());
        assert!(gone(pid));
    }
}

#[test]
fn long_calls_continue_as_runs() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let started = client
        .call("eval", json!({"code": LONG, "timeout": 0, "wait": 0.2}))
        .ok();
    assert_eq!(started.structured()["status"], "running");
    let run = started.structured()["run"].as_str().unwrap().to_owned();
    assert!(started.text().contains(&run));
    let waited = client
        .call("runs", json!({"action": "wait", "run": run, "wait": 0.2}))
        .ok();
    assert_eq!(waited.structured()["status"], "running");
    let tail = client
        .call("runs", json!({"action": "tail", "run": run}))
        .ok();
    assert!(tail.text().contains("begun"), "{}", tail.text());
    let listed = client.call("runs", json!({"action": "list"})).ok();
    assert!(listed.text().contains(&run));
    client
        .call("stop", json!({"action": "cancel", "run": run}))
        .ok();
    let ended = client.call("runs", json!({"action": "wait", "run": run}));
    assert_eq!(ended.structured()["status"], "cancelled");
    assert!(ended.text().contains("begun"));
    let background = client
        .call("eval", json!({"code": "6 * 7", "background": true}))
        .ok();
    let run = background.structured()["run"].as_str().unwrap().to_owned();
    let ended = client
        .call("runs", json!({"action": "wait", "run": run}))
        .ok();
    assert_eq!(ended.printed().trim(), "42");
}

#[test]
fn a_client_that_stops_waiting_for_a_run_does_not_stop_it() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let code = "import time\ntime.sleep(2)\n'done'";
    let started = client
        .call("eval", json!({"code": code, "background": true}))
        .ok();
    let run = started.structured()["run"].as_str().unwrap().to_owned();
    let arguments = json!({"action": "wait", "run": run});
    let id = client.start_call("runs", arguments.clone(), "t");
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
    });
    client.send(&cancel);
    assert_eq!(
        client.call("runs", arguments).ok().printed().trim(),
        "'done'"
    );
}

#[test]
fn a_client_that_goes_takes_its_kernels_along() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let pid = kernel_of(&mut client);
    let code = "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '600']).pid";
    let child: u64 = client
        .call("eval", json!({"code": code}))
        .ok()
        .printed()
        .trim()
        .parse()
        .unwrap();
    client.start_call("eval", json!({"code": LONG, "timeout": 0}), "t");
    assert!(client.disconnect().success());
    assert!(gone(pid) && gone(child));
    // Also if it is killed, with the server at work.
    let mut client = Client::older(&context);
    let pid = kernel_of(&mut client);
    client.start_call("eval", json!({"code": LONG, "timeout": 0}), "t");
    client.kill();
    assert!(gone(pid));
}

#[test]
fn shared_kernels_stay() {
    let test_host = crate::host::TestHost::new();
    let context = &test_host.context;
    test_host.start();
    let mut client = Client::with(context, &["mcp", "--shared"], &json!({}));
    let pid = kernel_of(&mut client);
    assert!(client.disconnect().success());
    assert!(lives(pid));
    let ran = context
        .run(&["eval", "--session", "main", "kept + 1", "--json"])
        .exits(0)
        .json();
    assert_eq!(ran["kernel"]["pid"], json!(pid));
    assert_eq!(ran["cells"][0]["text"].as_str().unwrap().trim(), "2");
}

#[test]
fn a_kernel_that_dies_is_told_and_replaced() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let died = client.call(
        "eval",
        json!({"code": "print('before', flush=True)\nimport os\nos.kill(os.getpid(), 9)"}),
    );
    assert_eq!(died.structured()["status"], "died");
    let words = died.error_text();
    assert!(
        words.contains("signal 9") && words.contains("before"),
        "{words}"
    );
    let next = client.call("eval", json!({"code": "1"})).ok();
    assert!(
        next.notices().contains(&"kernel_restarted"),
        "{}",
        next.text()
    );
    let late = client.call("eval", json!({"code": LONG, "timeout": 0.3}));
    assert_eq!(late.structured()["status"], "timeout");
    assert_eq!(
        client
            .call("eval", json!({"code": "2"}))
            .ok()
            .printed()
            .trim(),
        "2"
    );
}
