//! What code asks with `input()`, in both generations of the protocol.

use serde_json::json;

use super::client::Client;
use crate::context::Context;

const ASKS: &str = "name = input('Who? ')\nprint('Hello', name)";

#[test]
fn a_client_that_can_asks_its_user() {
    let context = Context::new();
    let can = json!({"elicitation": {}});
    let mut client = Client::with(&context, &["mcp"], &can);
    client.typed = Some("World");
    let ran = client.call("eval", json!({"code": ASKS})).ok();
    assert!(ran.printed().contains("Hello World"), "{}", ran.printed());
    let message = client.asked[0]["message"].as_str().unwrap();
    assert!(message.contains("Who?"), "{message}");
    // What was given along comes first.
    let ran = client
        .call("eval", json!({"code": ASKS, "answer": ["given"]}))
        .ok();
    assert!(ran.printed().contains("Hello given"));
    assert_eq!(client.asked.len(), 1);
    // Without an answer, the code gets the exception.
    client.typed = None;
    let words = client.call("eval", json!({"code": ASKS})).raised_text();
    assert!(words.contains("no answer is available"), "{words}");
    assert_eq!(client.asked.len(), 2);
    client.assert_served();
}

#[test]
fn one_that_cannot_is_told_at_once() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let refused = client.call("eval", json!({"code": ASKS}));
    assert!(refused.notices().contains(&"input_refused"));
    assert!(refused.raised_text().contains("no answer is available"));
}

#[test]
fn in_the_newer_revision_the_call_is_made_again_with_the_answer() {
    let context = Context::new();
    let mut client = Client::newer(&context, &json!({"elicitation": {"form": {}}}));
    let call = |state: Option<&str>, typed: Option<&str>| {
        let mut params = json!({"name": "eval", "arguments": {"code": ASKS}});
        if let Some(state) = state {
            params["requestState"] = json!(state);
        }
        if let Some(typed) = typed {
            params["inputResponses"] =
                json!({"answer": {"action": "accept", "content": {"answer": typed}}});
        }
        params
    };
    let first = client.request("tools/call", call(None, None)).unwrap();
    assert_eq!(first["resultType"], "input_required");
    let asked = &first["inputRequests"]["answer"];
    assert_eq!(asked["method"], "elicitation/create");
    assert!(
        asked["params"]["message"]
            .as_str()
            .unwrap()
            .contains("Who?"),
        "{asked}"
    );
    let state = first["requestState"].as_str().unwrap().to_owned();
    let second = client
        .request("tools/call", call(Some(&state), Some("World")))
        .unwrap();
    let printed = second["structuredContent"]["cells"][0]["text"]
        .as_str()
        .unwrap();
    assert!(printed.contains("Hello World"), "{second}");
    // A handle is valid once, and cannot be guessed.
    for state in [state.as_str(), "made up"] {
        let refused = client.request("tools/call", call(Some(state), Some("x")));
        assert_eq!(refused.unwrap_err()["code"], -32602);
    }
    // Without an answer, the code continues without one.
    let first = client.request("tools/call", call(None, None)).unwrap();
    let state = first["requestState"].as_str().unwrap().to_owned();
    let refused = client
        .request("tools/call", call(Some(&state), None))
        .unwrap();
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("error: cell 0 raised StdinNotImplementedError"),
        "{text}"
    );
    client.assert_served();
}

#[test]
fn kernels_of_jupyter_ask_too() {
    if cellwright_test_support::python().is_none() {
        return;
    }
    let context = Context::new();
    let mut client = Client::with(&context, &["mcp"], &json!({"elicitation": {}}));
    client.typed = Some("World");
    let ran = client
        .call("eval", json!({"code": ASKS, "backend": "jupyter"}))
        .ok();
    assert!(ran.printed().contains("Hello World"), "{}", ran.printed());
    client.typed = None;
    let refused = client.call("eval", json!({"code": ASKS, "backend": "jupyter"}));
    assert!(refused.raised_text().contains("no answer is available"));
    let code = "from getpass import getpass\nlen(getpass('Secret: '))";
    client.typed = Some("hush");
    let ran = client
        .call("eval", json!({"code": code, "backend": "jupyter"}))
        .ok();
    assert_eq!(ran.printed().trim(), "4");
    let message = client.asked.last().unwrap()["message"].as_str().unwrap();
    assert!(message.contains("will not be shown"), "{message}");
}

#[test]
fn an_unanswered_input_request_blocks_nothing() {
    let context = Context::new();
    let mut client = Client::with(&context, &["mcp"], &json!({"elicitation": {}}));
    client.ignores = true;
    // It times out, or is cancelled.
    let late = client.call("eval", json!({"code": ASKS, "timeout": 0.5}));
    assert_eq!(late.structured()["status"], "timeout");
    let id = client.start_call("eval", json!({"code": ASKS, "timeout": 0}), "t");
    while client.asked.len() < 2 {
        client.next(std::time::Duration::from_secs(30)).unwrap();
    }
    client
        .call("stop", json!({"action": "end", "session": "main"}))
        .ok();
    let ended = client.end(id).unwrap();
    assert_eq!(ended["isError"], true, "{ended}");
}

#[test]
fn what_became_of_a_call_that_was_asked_and_cancelled_is_told() {
    let context = Context::new();
    let mut client = Client::newer(&context, &json!({"elicitation": {"form": {}}}));
    let code = "input('Go? ')\nimport time\ntime.sleep(600)";
    let params = json!({"name": "eval", "arguments": {"code": code, "timeout": 0}});
    let first = client.request("tools/call", params.clone()).unwrap();
    let mut again = params;
    again["requestState"] = first["requestState"].clone();
    again["inputResponses"] = json!({"answer": {"action": "accept", "content": {"answer": "yes"}}});
    let id = client.begin("tools/call", again);
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
    }));
    let after = client.call("eval", json!({"code": "1"})).ok();
    assert!(
        after.notices().contains(&"call_cancelled"),
        "{}",
        after.text()
    );
}
