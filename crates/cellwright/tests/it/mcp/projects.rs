//! Clients see the artifacts of their project only.

use serde_json::{Value, json};

use super::client::Client;
use crate::context::Context;

/// Code whose output is stored as an artifact.
const LONG_OUTPUT: &str = "for i in range(20_000): print('line', i)";

/// The addresses of the listed artifacts: of the tool, and of the resources.
fn listed(client: &mut Client) -> (Vec<String>, Vec<String>) {
    let texts = |values: &Value, field: &str| -> Vec<String> {
        let values = values.as_array().unwrap().iter();
        let texts = values.map(|value| value[field].as_str().unwrap().to_owned());
        texts
            .filter(|text| text.starts_with("artifact://"))
            .collect()
    };
    let reply = client.call("artifact", json!({"action": "list"})).ok();
    let resources = client.request("resources/list", json!({})).unwrap();
    (
        texts(&reply.structured()["artifacts"], "artifact"),
        texts(&resources["resources"], "uri"),
    )
}

/// Runs code with a long output. Returns the address of its artifact.
fn store_output(client: &mut Client, arguments: &Value) -> String {
    let mut all = json!({"code": LONG_OUTPUT});
    all.as_object_mut()
        .unwrap()
        .extend(arguments.as_object().unwrap().clone());
    let reply = client.call("eval", all).ok();
    reply.artifact()
}

#[test]
fn artifacts_of_another_project_are_neither_listed_nor_read() {
    let context = Context::new();
    for dir in ["first/.git", "second/.git", "second/nested/.git"] {
        std::fs::create_dir_all(context.path(dir)).unwrap();
    }
    let mut first = Client::with(&context, &["mcp", "--root", "first"], &json!({}));
    let other = store_output(&mut first, &json!({}));
    let mut second = Client::with(&context, &["mcp"], &json!({"roots": {}}));
    let root = format!("file://{}", context.path("second").display());
    second.roots = json!([{"uri": root}]);
    assert_eq!(listed(&mut second), (vec![], vec![]));
    let own = store_output(&mut second, &json!({}));
    assert_eq!(
        listed(&mut first),
        (vec![other.clone()], vec![other.clone()])
    );
    assert_eq!(listed(&mut second), (vec![own.clone()], vec![own.clone()]));

    let message = format!("{other} belongs to another project");
    for (tool, arguments) in [
        ("read", json!({"path": other})),
        ("read", json!({"path": format!("{other}:1-3")})),
        (
            "artifact",
            json!({"action": "search", "id": other, "grep": "line"}),
        ),
    ] {
        let error = second.call(tool, arguments).error_text();
        assert!(error.contains(&message), "{error}");
    }
    for method in ["resources/read", "resources/subscribe"] {
        let error = second.request(method, json!({"uri": other})).unwrap_err();
        let error = error["message"].as_str().unwrap();
        assert!(error.contains(&message), "{method}: {error}");
    }
    let missing = second.call("read", json!({"path": "artifact://999"}));
    let missing = missing.error_text();
    assert!(missing.contains(&own), "{missing}");
    assert!(!missing.contains(&other), "{missing}");

    // The first root decides, not the directory in which the code runs.
    let nested = store_output(&mut second, &json!({"cwd": "nested", "per_call": true}));
    let read = second.call("read", json!({"path": format!("{nested}:2")}));
    assert!(read.ok().text().contains("line 1\n"));
    // The command line shows the same list.
    let mut command = context.command(&["artifact", "list", "--json"]);
    let output = command
        .current_dir(context.path("second"))
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["artifacts"].as_array().unwrap().len(), 2, "{list}");
}

#[test]
fn artifacts_of_older_versions_are_read_but_not_listed() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let own = store_output(&mut client, &json!({}));
    let path = context.run(&["artifact", "path", &own]).exits(0).stdout;
    let dir = std::path::Path::new(path.trim()).parent().unwrap();
    std::fs::write(dir.join("7.log"), "old output\n").unwrap();
    assert_eq!(listed(&mut client), (vec![own.clone()], vec![own]));
    let read = client.call("read", json!({"path": "artifact://7"})).ok();
    assert!(read.text().contains("old output"), "{}", read.text());
}
