//! Both generations of the protocol, the lists of tools and prompts, configuration snippets.

use serde_json::{Value, json};

use super::client::{Client, NEWER};
use crate::context::Context;

#[test]
fn both_generations_are_served() {
    let context = Context::with_notebook();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::of(context.command(&["mcp"]));
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        });
        let result = client.request("initialize", params).unwrap();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "cellwright");
        let said = result["instructions"].as_str().unwrap();
        assert!(said.contains("Never edit .ipynb"), "{said}");
        assert!(client.disconnect().success());
    }
    let mut client = Client::newer(&context, &json!({}));
    let found = client.request("server/discover", json!({})).unwrap();
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(NEWER)), "{found}");
    let listed = client.request("tools/list", json!({})).unwrap();
    assert_eq!(listed["resultType"], "complete");
    let answer = client.call("read", json!({"path": "a.ipynb"})).ok();
    assert!(answer.text().contains("answer = 42"));
    assert!(client.disconnect().success());
}

#[test]
fn every_tool_says_what_it_takes_gives_and_does() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let listed = client.request("tools/list", json!({})).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    insta::assert_snapshot!(names.join(" "), @"read edit notebook write run eval runs kernels stop artifact");
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(
            tool["description"].as_str().unwrap().contains("Example: {"),
            "{name}"
        );
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let reads = matches!(name, "read" | "runs" | "kernels" | "artifact");
        let hint = &tool["annotations"]["readOnlyHint"];
        assert_eq!(*hint == true, reads, "{name}");
        let open_world = &tool["annotations"]["openWorldHint"];
        let runs_code = matches!(name, "run" | "eval");
        assert_eq!(*open_world != false, runs_code, "{name}");
        let is_main = matches!(name, "read" | "edit" | "notebook" | "run" | "eval");
        let always = &tool["_meta"]["anthropic/alwaysLoad"];
        assert_eq!(*always == true, is_main, "{name}");
        let search = tool["_meta"]["anthropic/searchHint"].as_str().unwrap();
        assert!(search.contains("jupyter"), "{name}");
    }
    // The same in every call, for clients that cache it.
    assert_eq!(client.request("tools/list", json!({})).unwrap(), listed);
}

#[test]
fn invalid_arguments_are_rejected_without_effect() {
    let context = Context::with_notebook();
    let before = context.content("a.ipynb");
    let mut client = Client::older(&context);
    let unknown = client.request("tools/call", json!({"name": "frobnicate", "arguments": {}}));
    assert_eq!(unknown.unwrap_err()["code"], -32602);
    let unknown = client.request("no/such/method", json!({}));
    assert_eq!(unknown.unwrap_err()["code"], -32601);
    for (tool, arguments) in [
        ("read", json!({})),
        ("read", json!({"path": 3})),
        ("read", json!({"path": "missing.ipynb"})),
        ("read", json!({"path": "https://example.org/a.ipynb"})),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "nowhere", "new": "x"}),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "answer", "new": "x"}),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "42", "new": "x", "revision": "nonsense"}),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "42", "new": "x", "file": "y"}),
        ),
        ("notebook", json!({"action": "explode", "path": "a.ipynb"})),
        (
            "notebook",
            json!({"action": "delete", "path": "a.ipynb", "cell": "99"}),
        ),
        (
            "notebook",
            json!({"action": "delete", "path": "a.ipynb", "create": true}),
        ),
        ("write", json!({"path": "a.ipynb", "text": ""})),
        (
            "write",
            json!({"path": "new.ipynb", "text": "# %% [code]\n1"}),
        ),
        ("eval", json!({})),
        ("eval", json!({"code": "1", "cells": [{"code": "2"}]})),
        ("eval", json!({"code": "1", "timeout": -1})),
        ("eval", json!({"code": "1", "kernel": "no-such-kernel"})),
        ("eval", json!({"code": "1", "backend": "abacus"})),
        ("eval", json!({"code": "1", "session": "two words"})),
        ("run", json!({"path": "a.ipynb", "cells": "77"})),
        ("runs", json!({"action": "wait", "run": "r99"})),
        ("runs", json!({"action": "wait"})),
        (
            "kernels",
            json!({"action": "variables", "session": "unknown"}),
        ),
        ("kernels", json!({"action": "fly"})),
        (
            "artifact",
            json!({"action": "search", "id": "artifact://999", "grep": "x"}),
        ),
        (
            "artifact",
            json!({"action": "search", "id": "artifact://1"}),
        ),
    ] {
        let words = client.call(tool, arguments.clone()).error_text();
        assert!(words.starts_with("error: "), "{tool} {arguments}: {words}");
    }
    assert_eq!(context.content("a.ipynb"), before);
    assert!(!context.path("new.ipynb").exists());
    // The server still works.
    assert_eq!(
        client
            .call("eval", json!({"code": "6 * 7"}))
            .ok()
            .printed()
            .trim(),
        "42"
    );
}

#[test]
fn prompts_have_their_arguments_in_place() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let listed = client.request("prompts/list", json!({})).unwrap();
    assert_eq!(listed["prompts"].as_array().unwrap().len(), 3);
    let got = client.request(
        "prompts/get",
        json!({"name": "fix-notebook", "arguments": {"path": "deep/a.ipynb"}}),
    );
    let text = got.unwrap()["messages"][0]["content"]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.contains("`run` deep/a.ipynb with \"restart\": true"),
        "{text}"
    );
    for params in [json!({"name": "fix-notebook"}), json!({"name": "nothing"})] {
        let error = client.request("prompts/get", params).unwrap_err();
        assert_eq!(error["code"], -32602);
    }
}

#[test]
fn every_client_is_told_what_to_paste() {
    let context = Context::new();
    let program = env!("CARGO_BIN_EXE_cellwright");
    for client in [
        "claude", "codex", "cursor", "vscode", "zed", "gemini", "qwen", "copilot", "cline",
        "opencode", "vibe", "continue",
    ] {
        let ran = context.run(&["mcp", "--print-config", client]).exits(0);
        let shown = ran.output_masked().replace(program, "[PROGRAM]");
        insta::assert_snapshot!(format!("config_{client}"), shown);
        if !matches!(client, "codex" | "vibe" | "continue") {
            serde_json::from_str::<Value>(&ran.stdout).unwrap();
        }
        let file = context.path("token");
        let file = file.to_str().unwrap();
        let http = [
            "mcp",
            "--http",
            "127.0.0.1:8484",
            "--token-file",
            file,
            "--print-config",
            client,
        ];
        let ran = context.run(&http).exits(0);
        insta::assert_snapshot!(format!("config_http_{client}"), ran.output_masked());
    }
    context.run(&["mcp", "--print-config", "emacs"]).exits(2);
}

#[test]
fn another_protocol_gets_an_error() {
    let context = Context::new();
    let ran = context.run_with_input(&["mcp"], "hello\n");
    assert!(!ran.stdout.contains("hello"), "{}", ran.stdout);
    // Nothing at all is no mistake: the client went before it said anything.
    context.run_with_input(&["mcp"], "").exits(0);
    context.run(&["mcp", "--root", "nowhere"]).exits(2);
}

#[test]
fn what_cannot_be_read_is_answered() {
    let context = Context::new();
    let mut client = Client::older(&context);
    for line in [
        "garbage",
        "{\"jsonrpc\": \"2.0\", \"id\": 77, \"method\": \"tools/call\", \"params\": {\"x\": \"\\ud800\"}}",
    ] {
        client.send_line(line);
        let answer = client.next(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
    }
    let wrong = client
        .request("tools/call", json!({"name": 3}))
        .unwrap_err();
    assert_eq!(wrong["code"], -32602);
    client.assert_served();
}
