//! How much reaches a model, and how it comes to the rest; and what stays off the standard output.

use serde_json::json;

use super::client::Client;
use crate::context::Context;

/// What a host gives to its model: every text, and the structured content.
const LIMIT: usize = 10_000;

#[test]
fn long_output_is_cut_and_all_of_it_can_be_read_by_range() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let ran = client
        .call("eval", json!({"code": "for i in range(100_000): print(i)"}))
        .ok();
    let text = ran.text();
    assert!(
        text.chars().count() < LIMIT + 500,
        "{}",
        text.chars().count()
    );
    assert!(ran.structured().to_string().chars().count() < 2 * LIMIT);
    assert!(text.contains("\n0\n1\n") && text.contains("\n99999\n"));
    assert!(ran.blocks("resource_link").is_empty());
    let artifact = ran.artifact();
    assert_eq!(
        ran.structured()["cells"][0]["truncated"]["artifact"],
        json!(artifact)
    );
    assert_eq!(
        ran.structured()["cells"][0]["truncated"]["total_lines"],
        100_000
    );
    assert!(text.contains(&artifact), "{text}");
    let lines = client
        .call("read", json!({"path": format!("{artifact}:50001-50003")}))
        .ok();
    assert!(
        lines.structured()["text"] == "50000\n50001\n50002\n",
        "{}",
        lines.text()
    );
    // From one part to the next, nothing is missing and nothing comes twice.
    let (mut offset, mut all) = (0, String::new());
    for _ in 0..5 {
        let part = client.call("read", json!({"path": artifact, "offset": offset}));
        let part = part.ok();
        all.push_str(part.structured()["text"].as_str().unwrap());
        offset = part.structured()["next_offset"].as_u64().unwrap();
    }
    for (expected, line) in all.lines().enumerate() {
        assert_eq!(line, expected.to_string());
    }
    assert!(all.lines().count() > 5000);
    let found = client.call(
        "artifact",
        json!({"action": "search", "id": artifact, "regex": "^777..$", "max": 3}),
    );
    let found = found.ok();
    assert_eq!(found.structured()["total"], 100);
    assert_eq!(found.structured()["hits"][0]["line"], 77701);
    let listed = client.call("artifact", json!({"action": "list"})).ok();
    assert!(listed.text().contains(&artifact));
}

#[test]
fn what_many_cells_say_fits_together() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let mut text = String::new();
    for cell in 0..150 {
        text.push_str(&format!(
            "# %% [code]\nprint('cell {cell}: ' + 'x' * 2000)\n"
        ));
    }
    client
        .call(
            "write",
            json!({"path": "m.ipynb", "text": text, "create": true}),
        )
        .ok();
    let ran = client.call("run", json!({"path": "m.ipynb"})).ok();
    let length = ran.text().chars().count();
    assert!(length < 2 * LIMIT, "{length}");
    assert!(ran.structured().to_string().len() < 5 * LIMIT);
    assert!(ran.text().contains("ran 150 cells"));
    let cell = client
        .call("read", json!({"path": "m.ipynb:cells=140:outputs"}))
        .ok();
    assert!(cell.text().contains(&"x".repeat(100)));
}

#[test]
fn a_large_notebook_is_read_in_parts() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let mut text = String::new();
    for cell in 0..400 {
        text.push_str(&format!(
            "# %% [code]\nvalue_{cell} = {cell}\nprint(value_{cell})\n"
        ));
    }
    client
        .call(
            "write",
            json!({"path": "l.ipynb", "text": text, "create": true}),
        )
        .ok();
    let whole = context.run(&["read", "l.ipynb"]).exits(0).stdout;
    let (mut offset, mut read) = (0, String::new());
    loop {
        let part = client
            .call("read", json!({"path": "l.ipynb", "offset": offset}))
            .ok();
        let shown = part.structured()["text"].as_str().unwrap();
        assert!(shown.chars().count() <= LIMIT);
        read.push_str(shown);
        match part.structured()["next_offset"].as_u64() {
            Some(next) => {
                assert!(part.notices().contains(&"text_truncated"));
                offset = next;
            }
            None => break,
        }
    }
    assert_eq!(read, whole);
}

#[test]
fn how_much_comes_is_a_setting() {
    let context = Context::new();
    let mut command = context.command(&["mcp"]);
    command.env("CELLWRIGHT_MCP_TEXT", "1000");
    let mut client = Client::of(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.request("initialize", params).unwrap();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let ran = client
        .call("eval", json!({"code": "print('x\\n' * 5000)"}))
        .ok();
    assert!(ran.text().len() < 1500, "{}", ran.text().len());
}

#[test]
fn standard_output_is_the_protocol_alone() {
    // The client takes every line for the protocol, and fails if one is not.
    let context = Context::new();
    let mut client = Client::older(&context);
    let code = "\
import os, subprocess, sys
print('printed')
os.write(1, b'written\\n')
os.write(2, b'written to the other\\n')
subprocess.run(['echo', 'from a child'])
sys.__stdout__.write('by the back door\\n')
os.system('echo from a shell')
open('/dev/stdout', 'w').write('by name\\n') if os.path.exists('/dev/stdout') else None
";
    let ran = client.call("eval", json!({"code": code})).ok();
    for said in [
        "printed",
        "written\n",
        "from a child",
        "by the back door",
        "from a shell",
    ] {
        assert!(ran.printed().contains(said), "{said}: {}", ran.printed());
    }
    // Also late output of a thread that outlives its cell.
    let late = "import threading\nthreading.Timer(0.1, lambda: (print('late'), os.write(1, b'late\\n'))).start()";
    client.call("eval", json!({"code": late})).ok();
    std::thread::sleep(std::time::Duration::from_millis(400));
    client.call("eval", json!({"code": "1"})).ok();
    assert!(client.disconnect().success());
}

#[test]
fn a_line_that_is_longer_than_an_answer_can_be_read_to_its_end() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let code = "print(''.join(str(i % 10) for i in range(30_000)))";
    let ran = client.call("eval", json!({"code": code})).ok();
    let artifact = json!(ran.artifact());
    let source = format!("long = '{}'", "äb".repeat(10_000));
    let insert = json!({"action": "insert", "path": "l.ipynb", "source": source, "create": true});
    client.call("notebook", insert).ok();
    for (path, expected) in [
        (artifact, 30_000),
        (json!("l.ipynb:cells=0"), 20_000 + 9 + 19 + 1),
    ] {
        let (mut offset, mut length) = (json!(0), 0);
        while !offset.is_null() {
            let part = client
                .call("read", json!({"path": path, "offset": offset}))
                .ok();
            length += part.structured()["text"]
                .as_str()
                .unwrap()
                .trim_end()
                .chars()
                .count();
            offset = part.structured()["next_offset"].clone();
        }
        assert!(length.abs_diff(expected) <= 3, "{path}: {length}");
    }
}

#[test]
fn what_is_quoted_is_short() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let long = "n".repeat(60_000);
    let bad = format!("raise type('{long}', (Exception,), {{}})('{long}')");
    let titled: Vec<_> = (0..60)
        .map(|_| json!({"code": "print(1)", "title": long[..3000].to_owned()}))
        .collect();
    for (tool, arguments) in [
        ("eval", json!({"cells": titled})),
        ("eval", json!({"cells": [{"code": "1"}, {"code": bad}]})),
        ("eval", json!({"code": "1", "kernel": long})),
        ("read", json!({"path": long})),
        ("kernels", json!({"action": long})),
        ("stop", json!({"action": "end", "session": long})),
        ("runs", json!({"action": "wait", "run": long})),
        (
            "eval",
            json!({"code": format!("globals()['{long}'*2] = 1")}),
        ),
        ("kernels", json!({"action": "variables", "session": "main"})),
    ] {
        let answer = client.call(tool, arguments);
        let (text, structured) = (answer.text().len(), answer.structured().to_string().len());
        assert!(
            text < 3 * LIMIT && structured < 3 * LIMIT,
            "{tool}: {text}, {structured}"
        );
    }
}
