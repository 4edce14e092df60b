//! What an agent does with a notebook, from the first look to the last run.

use serde_json::json;

use super::client::{Client, ToolReply};
use crate::context::Context;

/// A notebook with a figure and a mistake.
const TEXT: &str = "\
# %% [markdown]
# Prices
# %% [code]
prices = [3, 1, 2]
# %% [code]
total = sum(price)
total
# %% [code]
from base64 import b64decode
from IPython.display import display, Image
print('drawn')
";

#[test]
fn an_agent_makes_a_notebook_run() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let made = client
        .call(
            "write",
            json!({"path": "p.ipynb", "text": TEXT, "create": true}),
        )
        .ok();
    assert_eq!(made.structured()["total_cells"], 4);
    let listed = client.call("read", json!({"path": "."})).ok();
    assert!(listed.text().contains("p.ipynb"));
    let outline = client.call("read", json!({"path": "p.ipynb:outline"})).ok();
    assert!(
        outline.text().contains("prices = [3, 1, 2]"),
        "{}",
        outline.text()
    );
    // It fails where the mistake is, and says what to do.
    let failed = client.call("run", json!({"path": "p.ipynb"}));
    let words = failed.raised_text();
    assert!(
        words.contains("cell 2") && words.contains("NameError"),
        "{words}"
    );
    assert!(words.contains("\"stale\": true"), "{words}");
    // Look into it, change it, run what is stale.
    let seen = client
        .call("eval", json!({"code": "prices", "session": "p.ipynb"}))
        .ok();
    assert_eq!(seen.printed().trim(), "[3, 1, 2]");
    let edited = client.call(
        "edit",
        json!({"path": "p.ipynb", "old": "sum(price)", "new": "sum(prices)"}),
    );
    let edited = edited.ok();
    assert_eq!(edited.structured()["index"], 2);
    assert!(
        edited.text().contains("+total = sum(prices)"),
        "{}",
        edited.text()
    );
    let outline = client
        .call("notebook", json!({"action": "outline", "path": "p.ipynb"}))
        .ok();
    assert!(outline.text().contains("never run"), "{}", outline.text());
    let ran = client
        .call("run", json!({"path": "p.ipynb", "stale": true}))
        .ok();
    let cells: Vec<(u64, &str)> = ran.structured()["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| {
            (
                cell["index"].as_u64().unwrap(),
                cell["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(cells, [(2, "ok"), (3, "ok")]);
    assert_eq!(ran.printed().trim(), "6");
    assert!(ran.structured()["notebook"]["revision"].is_string());
    // Everything is in the file.
    let stored = client
        .call("read", json!({"path": "p.ipynb:cells=2:outputs"}))
        .ok();
    assert!(stored.text().contains('6'), "{}", stored.text());
    let file: serde_json::Value = serde_json::from_str(&context.content("p.ipynb")).unwrap();
    assert_eq!(file["cells"][2]["outputs"][0]["data"]["text/plain"][0], "6");
}

#[test]
fn cells_are_changed_by_index_and_by_id() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let mut change = |arguments| -> ToolReply { client.call("notebook", arguments).ok() };
    let inserted = change(json!({
        "action": "insert", "path": "a.ipynb", "after": "id:first", "source": "new = 1",
    }));
    assert_eq!(inserted.structured()["index"], 2);
    let id = inserted.structured()["id"].as_str().unwrap().to_owned();
    let id = format!("id:{id}");
    change(json!({"action": "edit", "path": "a.ipynb", "cell": id, "source": "new = 2"}));
    change(json!({"action": "move", "path": "a.ipynb", "cell": id, "to": 0}));
    change(json!({"action": "type", "path": "a.ipynb", "cell": 0, "type": "markdown"}));
    change(json!({"action": "clear", "path": "a.ipynb"}));
    let deleted = change(json!({"action": "delete", "path": "a.ipynb", "cell": "id:last"}));
    assert_eq!(deleted.structured()["total_cells"], 3);
    let read = client.call("read", json!({"path": "a.ipynb:ids"})).ok();
    assert!(read.text().contains("new = 2") && !read.text().contains("answer + 1.0"));
}

#[test]
fn an_edit_for_an_older_revision_is_merged_or_refused() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let read = client.call("read", json!({"path": "a.ipynb"})).ok();
    let rev = read.structured()["revision"].as_str().unwrap().to_owned();
    // Another program changes the notebook first.
    context
        .run(&[
            "edit",
            "a.ipynb",
            "--old",
            "answer + 1.0",
            "--new",
            "answer + 2",
        ])
        .exits(0);
    let edit =
        |new: &str, old: &str| json!({"path": "a.ipynb", "old": old, "new": new, "revision": rev});
    let merged = client.call("edit", edit("answer = 43", "answer = 42")).ok();
    assert!(merged.notices().contains(&"merged"), "{}", merged.text());
    let refused = client
        .call("edit", edit("answer + 3", "answer + 1.0"))
        .error_text();
    assert!(refused.contains("nothing was written"), "{refused}");
    let text = client.call("read", json!({"path": "a.ipynb"})).ok().text();
    assert!(
        text.contains("answer = 43") && text.contains("answer + 2"),
        "{text}"
    );
}

#[test]
fn an_edit_and_its_run_are_one_call() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    client.call("run", json!({"path": "a.ipynb"})).ok();
    let ran = client.call(
        "run",
        json!({"path": "a.ipynb", "edit_cell": "id:first", "source": "answer = 1", "and_below": true}),
    );
    let ran = ran.ok();
    let last = &ran.structured()["cells"][1];
    assert_eq!(last["text"].as_str().unwrap().trim(), "2.0");
    let edits = json!([
        {"action": "edit", "cell": "1", "source": "answer = 7"},
        {"action": "insert", "after": "1", "source": "answer += 1"},
    ]);
    let ran = client.call(
        "run",
        json!({"path": "a.ipynb", "edits": edits, "and_below": true}),
    );
    let ran = ran.ok();
    assert_eq!(
        ran.structured()["cells"][2]["text"]
            .as_str()
            .unwrap()
            .trim(),
        "9.0"
    );
    let ran = client.call(
        "run",
        json!({"path": "a.ipynb", "params": {"answer": 5}, "restart": true, "output": "out.ipynb"}),
    );
    ran.ok();
    assert!(context.content("out.ipynb").contains("answer = 5"));
    assert!(!context.content("a.ipynb").contains("answer = 5"));
}

#[test]
fn several_cells_run_one_after_the_other() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let ran = client.call(
        "eval",
        json!({"cells": [
            {"code": "a = 1", "title": "begin"}, {"code": "print(a)"}, {"code": "1 / 0"}, {"code": "never"},
        ]}),
    );
    assert!(!ran.is_error());
    let statuses: Vec<&str> = ran.structured()["cells"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|cell| cell["status"].as_str())
        .collect();
    assert_eq!(statuses, ["ok", "ok", "error", "skipped"]);
    assert!(ran.text().contains("ZeroDivisionError"));
    let alone = client.call("eval", json!({"code": "a", "per_call": true}));
    assert!(alone.raised_text().contains("NameError"));
    let reset = client
        .call("eval", json!({"code": "'a' in globals()", "reset": true}))
        .ok();
    assert_eq!(reset.printed().trim(), "False");
}

#[test]
fn a_kernel_can_be_looked_into() {
    let context = Context::new();
    let mut client = Client::older(&context);
    client
        .call(
            "eval",
            json!({"code": "import json\nnumbers = [1, 2, 3]", "session": "work"}),
        )
        .ok();
    let mut look = |action: &str, code: Option<&str>| {
        let tool = match action {
            "reset" | "end" => "stop",
            _ => "kernels",
        };
        let arguments = json!({"action": action, "session": "work", "code": code});
        client.call(tool, arguments).ok().text()
    };
    assert!(look("variables", None).contains("numbers"));
    assert!(look("inspect", Some("json.dumps")).contains("Serialize"));
    assert!(look("complete", Some("json.du")).contains("dumps"));
    assert!(look("list", None).contains("work"));
    assert!(look("reset", None).contains("fresh kernel"));
    assert!(look("variables", None).contains("no variables"));
    assert!(look("end", None).contains("ended"));
    let specs = client.call("kernels", json!({"action": "specs"})).ok();
    assert_eq!(specs.structured()["specs"][0]["backend"], "runner");
}

#[test]
fn a_rejected_run_is_an_error() {
    let context = Context::with_notebook();
    let before = context.content("a.ipynb");
    let mut client = Client::older(&context);
    let refused = client.call(
        "run",
        json!({"path": "a.ipynb", "edit_cell": "1", "source": "x", "revision": "00000000"}),
    );
    let kind = &refused.structured()["error"]["kind"];
    assert_eq!(kind, "conflict", "{}", refused.text());
    assert!(refused.is_error());
    for arguments in [
        json!({"path": "a.ipynb", "params": {"a=b": 1}}),
        json!({"path": "a.ipynb", "and_below": true}),
    ] {
        let words = client.call("run", arguments).error_text();
        assert!(!words.contains("--"), "{words}");
    }
    let words = client
        .call("run", json!({"path": "a.ipynb:cells=1"}))
        .error_text();
    assert!(words.contains("selector"), "{words}");
    assert_eq!(context.content("a.ipynb"), before);
}
