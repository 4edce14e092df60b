//! Notebooks, full outputs and kernels as resources, and notifications of their changes.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use crate::context::Context;

fn uri_of(client: &mut Client, scheme: &str) -> String {
    let listed = client.request("resources/list", json!({})).unwrap();
    let found = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|resource| resource["uri"].as_str())
        .find(|uri| uri.starts_with(scheme));
    found.unwrap_or_else(|| panic!("{listed}")).to_owned()
}

fn text_of(client: &mut Client, uri: &str) -> String {
    let read = client
        .request("resources/read", json!({"uri": uri}))
        .unwrap();
    read["contents"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn everything_can_be_read_by_its_address() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let notebook = uri_of(&mut client, "notebook://");
    let whole = context.run(&["read", "a.ipynb"]).exits(0).stdout;
    assert_eq!(text_of(&mut client, &notebook), whole);
    assert!(text_of(&mut client, &format!("{notebook}:outline")).contains("# A tour"));
    client
        .call("eval", json!({"code": "for i in range(100_000): print(i)"}))
        .ok();
    let kernel = uri_of(&mut client, "kernel://");
    let state: Value = serde_json::from_str(&text_of(&mut client, &kernel)).unwrap();
    assert_eq!(state["session"], "main");
    let artifact = uri_of(&mut client, "artifact://");
    assert_eq!(
        text_of(&mut client, &format!("{artifact}:10-11")),
        "9\n10\n"
    );
    assert_eq!(text_of(&mut client, &artifact).lines().count(), 100_000);
    for missing in [
        "notebook:///nowhere.ipynb",
        "artifact://999999",
        "kernel://77",
        "kernel://x",
        "https://example.org",
        "file:///etc/passwd",
    ] {
        let error = client
            .request("resources/read", json!({"uri": missing}))
            .unwrap_err();
        assert_eq!(error["code"], -32002, "{missing}: {error}");
    }
    let templates = client
        .request("resources/templates/list", json!({}))
        .unwrap();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 3);
}

/// Waits for the notification that a resource has changed.
fn await_notification(client: &mut Client, uri: &str) {
    loop {
        let message = client.next(Duration::from_secs(30)).unwrap();
        if message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
        {
            return;
        }
    }
}

#[test]
fn subscribers_are_notified_of_changes() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let notebook = uri_of(&mut client, "notebook://");
    client
        .request("resources/subscribe", json!({"uri": notebook}))
        .unwrap();
    context
        .run(&[
            "edit",
            "a.ipynb",
            "--old",
            "answer = 42",
            "--new",
            "answer = 43",
        ])
        .exits(0);
    await_notification(&mut client, &notebook);
    client
        .request("resources/unsubscribe", json!({"uri": notebook}))
        .unwrap();
    for missing in [
        "nonsense",
        "notebook:///nowhere.ipynb",
        "kernel://99",
        "artifact://99999",
    ] {
        client
            .request("resources/subscribe", json!({"uri": missing}))
            .unwrap_err();
    }
    // No notification arrives without a subscription.
    let before = client.notifications.len();
    context
        .run(&[
            "edit",
            "a.ipynb",
            "--old",
            "answer = 43",
            "--new",
            "answer = 44",
        ])
        .exits(0);
    std::thread::sleep(Duration::from_millis(1500));
    client.request("tools/list", json!({})).unwrap();
    assert_eq!(client.notifications.len(), before);
}

#[test]
fn listeners_are_notified_of_changes() {
    let context = Context::with_notebook();
    let mut client = Client::newer(&context, &json!({}));
    client.call("eval", json!({"code": "1"})).ok();
    let kernel = uri_of(&mut client, "kernel://");
    let wanted = json!({"notifications": {"resourceSubscriptions": [kernel]}});
    let id = client.begin("subscriptions/listen", wanted);
    let first = client.next(Duration::from_secs(30)).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    std::thread::sleep(Duration::from_millis(300));
    let run = client.begin(
        "tools/call",
        json!({"name": "eval", "arguments": {"code": "2"}}),
    );
    await_notification(&mut client, &kernel);
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
    }));
    let _ = run;
    client.call("eval", json!({"code": "3"})).ok();
}

#[test]
fn one_change_is_notified_once() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let notebook = uri_of(&mut client, "notebook://");
    let outline = format!("{notebook}:outline");
    for _ in 0..10 {
        client
            .request("resources/subscribe", json!({"uri": notebook}))
            .unwrap();
        client
            .request("resources/unsubscribe", json!({"uri": notebook}))
            .unwrap();
    }
    for uri in [&notebook, &outline] {
        client
            .request("resources/subscribe", json!({"uri": uri}))
            .unwrap();
    }
    let edit = json!({"path": "a.ipynb", "old": "answer = 42", "new": "answer = 43"});
    client.call("edit", edit).ok();
    std::thread::sleep(Duration::from_millis(2500));
    client.request("tools/list", json!({})).unwrap();
    let notified = |uri: &str| {
        let all = client.notifications.iter();
        all.filter(|note| note["params"]["uri"] == uri).count()
    };
    assert_eq!((notified(&notebook), notified(&outline)), (1, 1));
}
