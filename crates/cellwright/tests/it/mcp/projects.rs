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

/// Fails the test unless no tool and no resource returns the artifact, or names it.
fn assert_unreadable(client: &mut Client, artifact: &str) {
    let message = format!("{artifact} belongs to another project");
    for (tool, arguments) in [
        ("read", json!({"path": artifact})),
        ("read", json!({"path": format!("{artifact}:1-3")})),
        (
            "artifact",
            json!({"action": "search", "id": artifact, "grep": "line"}),
        ),
    ] {
        let error = client.call(tool, arguments).error_text();
        assert!(error.contains(&message), "{error}");
    }
    for method in ["resources/read", "resources/subscribe"] {
        let error = client.request(method, json!({"uri": artifact}));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&message), "{method}: {error}");
    }
    let (by_tool, as_resources) = listed(client);
    assert!(!by_tool.contains(&artifact.to_owned()), "{by_tool:?}");
    assert!(
        !as_resources.contains(&artifact.to_owned()),
        "{as_resources:?}"
    );
    let missing = client.call("read", json!({"path": "artifact://999"}));
    let missing = missing.error_text();
    assert!(!missing.contains(&format!("{artifact},")), "{missing}");
}

#[test]
fn a_root_in_a_larger_project_sees_only_its_artifacts() {
    let context = Context::new();
    for dir in ["repo/.git", "repo/sub", "repo/secret", "repo/sub/deep"] {
        std::fs::create_dir_all(context.path(dir)).unwrap();
    }
    let mut secret = Client::with(&context, &["mcp", "--root", "repo/secret"], &json!({}));
    let other = store_output(&mut secret, &json!({}));
    let mut whole = Client::with(&context, &["mcp", "--root", "repo"], &json!({}));
    let above = store_output(&mut whole, &json!({}));
    let deep = store_output(&mut whole, &json!({"cwd": "sub/deep", "per_call": true}));
    let mut sub = Client::with(&context, &["mcp", "--root", "repo/sub"], &json!({}));
    let own = store_output(&mut sub, &json!({}));
    assert_unreadable(&mut sub, &other);
    assert_unreadable(&mut sub, &above);
    let visible = vec![own.clone(), deep.clone()];
    assert_eq!(listed(&mut sub), (visible.clone(), visible));
    for artifact in [own, deep] {
        sub.call("read", json!({"path": artifact})).ok();
    }
    // Without code, the same holds.
    let mut command = context.command(&["mcp", "--root", "repo/sub"]);
    command.env("CELLWRIGHT_EVAL_ENABLED", "false");
    let mut reader = Client::of(command);
    reader.initialize(&json!({}));
    assert_unreadable(&mut reader, &other);
    // The whole project sees all of them.
    assert_eq!(listed(&mut whole).0.len(), 4);
}

#[test]
fn a_client_sees_the_artifacts_of_all_its_roots() {
    let context = Context::new();
    for dir in ["first/.git", "second/.git", "third/.git"] {
        std::fs::create_dir_all(context.path(dir)).unwrap();
    }
    let artifacts = ["first", "second", "third"].map(|root| {
        let mut client = Client::with(&context, &["mcp", "--root", root], &json!({}));
        store_output(&mut client, &json!({}))
    });
    let roots = ["mcp", "--root", "first", "--root", "second"];
    let mut client = Client::with(&context, &roots, &json!({}));
    for artifact in &artifacts[..2] {
        client.call("read", json!({"path": artifact})).ok();
    }
    assert_unreadable(&mut client, &artifacts[2]);
    assert_eq!(listed(&mut client).0.len(), 2);
}

#[test]
fn artifacts_of_older_versions_are_read_on_the_command_line_only() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let own = store_output(&mut client, &json!({}));
    let path = context.run(&["artifact", "path", &own]).exits(0).stdout;
    let dir = std::path::Path::new(path.trim()).parent().unwrap();
    std::fs::write(dir.join("7.log"), "old output\n").unwrap();
    assert_unreadable(&mut client, "artifact://7");
    assert_eq!(listed(&mut client), (vec![own.clone()], vec![own]));
    let read = context.run(&["artifact", "show", "7"]).exits(0);
    assert!(read.stdout.contains("old output"), "{}", read.stdout);
}
