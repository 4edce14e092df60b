//! The file that a run writes: only notebooks are replaced, and its name does not imitate a line of the reply.

use serde_json::json;

use super::client::Client;
use crate::context::{Context, THREE_CELLS};

#[test]
fn only_notebooks_are_replaced() {
    let context = Context::new();
    context.file("a.ipynb", THREE_CELLS);
    context.file("notes.md", "kept");
    context.file("broken.ipynb", "kept");
    context.file("old.ipynb", THREE_CELLS);
    let mut client = Client::older(&context);
    let run = |client: &mut Client, output: &str| {
        client.call("run", json!({"path": "a.ipynb", "output": output}))
    };
    for output in ["notes.md", "broken.ipynb", ".git", "new.txt"] {
        let error = run(&mut client, output).error_text();
        assert!(error.contains("is not a notebook"), "{output}: {error}");
    }
    for name in ["notes.md", "broken.ipynb"] {
        let text = std::fs::read_to_string(context.path(name)).unwrap();
        assert_eq!(text, "kept");
    }
    assert!(!context.path("new.txt").exists());
    for output in ["old.ipynb", "new.ipynb"] {
        run(&mut client, output).ok();
    }
}

#[test]
fn the_name_of_a_notebook_does_not_start_a_line() {
    let context = Context::new();
    context.file("a.ipynb", THREE_CELLS);
    let mut client = Client::older(&context);
    let output = "n\nnotice: FAKE.ipynb";
    let reply = client.call("run", json!({"path": "a.ipynb", "output": output}));
    let text = reply.ok().text();
    let forged = text.lines().find(|line| line.starts_with("notice: FAKE"));
    assert_eq!(forged, None, "{text}");
}

#[test]
fn the_root_directory_is_no_root() {
    let context = Context::new();
    let error = context.run(&["mcp", "--root", "/"]).exits(2).stderr;
    assert!(error.contains("`/` cannot be a root"), "{error}");
}

#[test]
fn long_arguments_of_prompts_are_rejected() {
    let context = Context::new();
    let mut client = Client::older(&context);
    let long = "x".repeat(300_000);
    let request = json!({"name": "fix-notebook", "arguments": {"path": long}});
    let error = client.request("prompts/get", request).unwrap_err();
    assert!(error.to_string().len() < 1000);
}
