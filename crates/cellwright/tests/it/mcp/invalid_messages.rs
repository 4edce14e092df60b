//! Lines that are not valid messages: each one gets a response with its id, and errors repeat a bounded part of them.

use serde_json::{Value, json};

use super::client::Client;
use crate::context::Context;

#[test]
fn invalid_messages_get_errors_with_their_ids() {
    let context = Context::new();
    let mut client = Client::older(&context);
    for (line, id) in [
        (r#"{"jsonrpc":"1.0","id":700,"method":"ping"}"#, json!(700)),
        (r#"{"id":"a","method":"tools/list"}"#, json!("a")),
        (
            r#"{"jsonrpc":"2.0","id":701,"method":"tools/call","params":[]}"#,
            json!(701),
        ),
        (
            r#"{"jsonrpc":"2.0","id":702,"method":"initialize","params":[]}"#,
            json!(702),
        ),
        (
            r#"{"jsonrpc":"2.0","id":703,"method":"tools/call","params":5}"#,
            json!(703),
        ),
        (r#"{"jsonrpc":"2.0","id":704,"method":5}"#, json!(704)),
        (r#"{"jsonrpc":"2.0","id":705}"#, json!(705)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(1.5)),
    ] {
        client.send_line(line);
        let response: Value = serde_json::from_str(&client.next_line()).unwrap();
        assert_eq!(response["id"], id, "{line}: {response}");
        assert!(
            response["error"]["message"].is_string(),
            "{line}: {response}"
        );
    }
    client.assert_served();
}

#[test]
fn each_request_of_a_batch_gets_an_error() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"});
    client.send_line(&json!([ping(800), note, ping(801)]).to_string());
    let responses: Value = serde_json::from_str(&client.next_line()).unwrap();
    let responses = responses.as_array().unwrap();
    let ids: Vec<&Value> = responses.iter().map(|response| &response["id"]).collect();
    assert_eq!(ids, [&json!(800), &json!(801)]);
    client.assert_served();
}

#[test]
fn errors_repeat_a_bounded_part_of_the_input() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let long = "x".repeat(2 << 20);
    for (method, params) in [
        (
            "resources/read",
            json!({"uri": format!("notebook:///{long}")}),
        ),
        (
            "resources/read",
            json!({"uri": format!("artifact://{long}")}),
        ),
        ("resources/read", json!({"uri": format!("kernel://{long}")})),
        ("resources/read", json!({"uri": long})),
        ("resources/subscribe", json!({"uri": long})),
        ("prompts/get", json!({"name": long})),
        ("tools/call", json!({"name": long})),
        (long.as_str(), json!({})),
    ] {
        let error = client.request(method, params).unwrap_err().to_string();
        assert!(
            error.len() < 20_000,
            "{} bytes: {}",
            error.len(),
            &method[..10]
        );
    }
    for (tool, arguments) in [
        ("read", json!({"path": long})),
        ("read", json!({"path": format!("artifact://{long}")})),
        (
            "artifact",
            json!({"action": "search", "id": long, "grep": "x"}),
        ),
        ("artifact", json!({"action": long})),
        ("eval", json!({"code": "1", "cwd": long})),
    ] {
        let reply = client.call(tool, arguments);
        assert!(reply.is_error(), "{tool}");
        let size = reply.result.to_string().len();
        assert!(size < 20_000, "{tool}: {size} bytes");
    }
    client.send(&json!({"jsonrpc": "2.0", "id": long, "method": "ping"}));
    let response = client.next_line();
    assert!(response.len() < 20_000, "{} bytes", response.len());
    client.assert_served();
}
