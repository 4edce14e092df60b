//! The documents of the verbs that run no code, and of those that inspect sessions.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;

use serde_json::{Value, json};

use super::collector::Collector;
use crate::context::THREE_CELLS;

#[test]
fn documents_about_notebooks_conform() {
    let mut collector = Collector::new();
    let context = &collector.context;
    context.file(
        "b.ipynb",
        THREE_CELLS
            .replace("a tour", "another tour")
            .replace("42", "43"),
    );
    context.file(
        "old.ipynb",
        include_str!("../../../../notebook/tests/notebooks/v3.ipynb"),
    );
    context.file("broken.ipynb", "{\n \"cells\": [}");
    context.file("x.txt", "plain");
    context.file("images.ipynb", notebook_with_image());
    let revision = context.revision("a.ipynb");
    for (verb, arguments, code) in [
        ("read", &["read", "a.ipynb"][..], 0),
        ("read", &["read", "a.ipynb:outputs"], 0),
        ("read", &["read", "a.ipynb:raw"], 0),
        ("read", &["read", "a.ipynb:outline"], 0),
        ("read", &["read", "a.ipynb:images"], 0),
        ("read", &["read", "x.txt"], 0),
        ("notebook outline", &["notebook", "outline", "a.ipynb"], 0),
        ("diff", &["diff", "a.ipynb", "b.ipynb", "--outputs"], 1),
        ("diff", &["diff", "a.ipynb", "a.ipynb"], 0),
        (
            "edit",
            &[
                "edit",
                "a.ipynb",
                "--old",
                "answer = 42",
                "--new",
                "answer = 6",
            ],
            0,
        ),
        // Merged with the change before it.
        (
            "notebook edit",
            &[
                "notebook", "edit", "a.ipynb", "2", "--source", "1", "--rev", &revision,
            ],
            0,
        ),
        (
            "notebook insert",
            &["notebook", "insert", "a.ipynb", "--source", "2"],
            0,
        ),
        (
            "notebook move",
            &["notebook", "move", "a.ipynb", "3", "--to", "0"],
            0,
        ),
        (
            "notebook type",
            &["notebook", "type", "a.ipynb", "0", "markdown"],
            0,
        ),
        ("notebook clear", &["notebook", "clear", "a.ipynb"], 0),
        (
            "notebook delete",
            &["notebook", "delete", "a.ipynb", "0"],
            0,
        ),
        ("notebook undo", &["notebook", "undo", "a.ipynb"], 0),
        ("notebook redo", &["notebook", "redo", "a.ipynb"], 0),
        ("notebook meta", &["notebook", "meta", "a.ipynb", "k=1"], 0),
        ("notebook meta", &["notebook", "meta", "a.ipynb", "1"], 0),
        ("notebook figures", &["notebook", "figures", "a.ipynb"], 0),
        (
            "notebook figures",
            &["notebook", "figures", "images.ipynb", "-o", "figures"],
            0,
        ),
        ("read", &["read", "images.ipynb:images"], 0),
        (
            "notebook parameters",
            &["notebook", "parameters", "a.ipynb"],
            0,
        ),
        ("notebook where", &["notebook", "where", "a.ipynb"], 0),
        ("notebook upgrade", &["notebook", "upgrade", "old.ipynb"], 0),
        ("git textconv", &["git", "textconv", "a.ipynb"], 0),
        (
            "git merge",
            &["git", "merge", "b.ipynb", "a.ipynb", "b.ipynb"],
            0,
        ),
        ("config list", &["config", "list"], 0),
        ("config get", &["config", "get", "eval.timeout"], 0),
        ("config path", &["config", "path"], 0),
        ("trust", &["trust", "--list"], 0),
        ("artifact list", &["artifact", "list", "--all"], 0),
        ("completions", &["completions", "bash"], 0),
        ("mcp", &["mcp", "--print-config", "claude"], 0),
        ("schema", &["schema"], 0),
    ] {
        collector.run(verb, arguments, code);
    }
    // Flags precede the cell.
    let arguments = ["--json", "notebook", "tag", "a.ipynb", "1", "slow"];
    let command = collector.context.command(&arguments);
    collector.collect("notebook tag", &arguments, command, 0);
    let tag = ["notebook", "tag", "a.ipynb", "1", "slow", "--json"];
    let rejected = collector.context.run(&tag).exits(2).stderr;
    assert!(rejected.contains("`--json` is not a tag"), "{rejected}");
    collector.run("notebook tag", &["notebook", "tag", "a.ipynb"], 0);
    let text = collector.context.run(&["read", "b.ipynb"]).exits(0).stdout;
    collector.context.file(
        "new.txt",
        format!("{text}\n# %% [sql]\n# %% [code] cell:99\n"),
    );
    collector.run("write", &["write", "b.ipynb", "new.txt"], 0);
    for (arguments, code) in [
        (&["read", "missing.ipynb"][..], 2),
        (&["read", "broken.ipynb"], 2),
        (&["edit", "a.ipynb", "--old", "nowhere", "--new", ""], 2),
        (
            &[
                "notebook", "edit", "a.ipynb", "1", "--source", "x", "--rev", &revision,
            ],
            3,
        ),
        (&["config", "get", "no.such"], 2),
        (&["artifact", "show", "99"], 2),
        (&["raed"], 2),
        (&["run", "a.ipynb", "--cells", "99"], 2),
        (&["eval", "1", "--full"], 2),
    ] {
        collector.fail(arguments, code);
    }
    collector.validate();
}

/// A notebook with an image in an output.
fn notebook_with_image() -> String {
    let output = json!({"output_type": "display_data", "metadata": {}, "data": {"image/png": PNG}});
    let cell = json!({
        "cell_type": "code", "id": "one", "metadata": {}, "execution_count": 1, "source": "", "outputs": [output],
    });
    json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn documents_about_repositories_conform() {
    let mut collector = Collector::new();
    let dir = collector.context.dir().to_owned();
    let git = Command::new("git")
        .args(["init", "-q", "."])
        .current_dir(&dir)
        .status();
    assert!(git.unwrap().success());
    collector.run("git setup", &["git", "setup", "--check"], 1);
    collector.run("git setup", &["git", "setup", "--clean"], 0);
    collector.run("git setup", &["git", "setup", "--check"], 0);
    collector.run("git setup", &["git", "setup", "--undo"], 0);
    fs::create_dir_all(dir.join(".cellwright/modules")).unwrap();
    fs::write(dir.join(".cellwright/config.toml"), "[eval]\ntimeout = 5\n").unwrap();
    fs::write(
        dir.join(".cellwright/modules/own.py"),
        "def own():\n    'Own.'\n",
    )
    .unwrap();
    collector.run("config list", &["config", "list"], 0);
    collector.run("trust", &["trust"], 0);
    collector.run("config get", &["config", "get", "eval.timeout"], 0);
    collector.run("helpers", &["helpers"], 0);
    collector.run("trust", &["trust", "--remove"], 0);
    collector.run("doctor", &["doctor"], 0);
    collector.run("kernels specs", &["kernels", "specs"], 0);
    collector.validate();
}

#[test]
fn documents_about_the_shared_gateway_conform() {
    let mut collector = Collector::new();
    collector.run("gateway status", &["gateway", "status"], 0);
    collector.run("gateway stop", &["gateway", "stop"], 0);
    if !cellwright_test_support::Engine::KernelGateway.is_installed() {
        return collector.validate();
    }
    let python = cellwright_test_support::python().unwrap();
    let python = python.display().to_string();
    let start = ["gateway", "start", "--python", &python];
    collector.run("gateway start", &start, 0);
    collector.run("gateway status", &["gateway", "status"], 0);
    collector.run("gateway stop", &["gateway", "stop"], 0);
    collector.validate();
}

#[test]
fn documents_about_sessions_conform() {
    let mut collector = Collector::new();
    collector.run("host status", &["host", "status"], 0);
    collector.run("host start", &["host", "start"], 0);
    collector.run("eval", &["eval", "-s", "one", "x = [1]; x"], 0);
    for (verb, arguments) in [
        ("host status", &["host", "status"][..]),
        ("host log", &["host", "log"]),
        ("kernels list", &["kernels", "list"]),
        ("kernels variables", &["kernels", "variables", "one"]),
        ("kernels inspect", &["kernels", "inspect", "one", "len"]),
        ("kernels complete", &["kernels", "complete", "one", "x.app"]),
        ("kernels history", &["kernels", "history", "one"]),
        ("kernels export", &["kernels", "export", "one", "out.ipynb"]),
        ("kernels interrupt", &["kernels", "interrupt", "one"]),
        ("kernels reset", &["kernels", "reset", "one"]),
    ] {
        collector.run(verb, arguments, 0);
    }
    // A run that waits for the test.
    let fifo = collector.context.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let code = "open('fifo').read()";
    let started = collector.run("eval", &["eval", "-s", "one", "--background", code], 0);
    let run = started["run"].as_str().unwrap().to_owned();
    let list = collector.run("runs list", &["runs", "list"], 0);
    assert_eq!(list["runs"][0]["total"], 1, "{list}");
    collector.run("runs tail", &["runs", "tail", &run], 0);
    collector.run("runs wait", &["runs", "wait", &run, "--wait", "0.01"], 124);
    collector.run("kernels list", &["kernels", "list"], 0);
    collector.run("runs cancel", &["runs", "cancel", &run], 0);
    let cancelled = collector.run("runs wait", &["runs", "wait", &run], 130);
    assert_eq!(cancelled["error"]["kind"], "cancelled", "{cancelled}");
    collector.run("kernels stop", &["kernels", "stop", "one"], 0);
    collector.run("kernels stop", &["kernels", "stop", "--all"], 0);
    collector.fail(&["kernels", "variables", "one"], 2);
    collector.fail(&["runs", "wait", "r99"], 2);
    collector.run("host stop", &["host", "stop"], 0);
    collector.run("host stop", &["host", "stop"], 0);
    collector.validate();
}

#[test]
fn documents_about_artifacts_conform() {
    let mut collector = Collector::new();
    let printed = collector.run("eval", &["eval", "for n in range(20000): print(n)"], 0);
    let artifact = printed["cells"][0]["truncated"]["artifact"]
        .as_str()
        .unwrap()
        .to_owned();
    let list = collector.run("artifact list", &["artifact", "list"], 0);
    assert_eq!(list["artifacts"][0]["artifact"], json!(artifact));
    collector.run("artifact path", &["artifact", "path", &artifact], 0);
    collector.run(
        "artifact show",
        &["artifact", "show", &format!("{artifact}:1-3")],
        0,
    );
    collector.run(
        "artifact show",
        &[
            "artifact",
            "show",
            &artifact,
            "--grep",
            "1999",
            "--context",
            "1",
        ],
        0,
    );
    collector.run("read", &["read", &format!("{artifact}:1-3")], 0);
    collector.validate();
}

#[test]
fn the_document_of_the_mcp_server_conforms() {
    let mut collector = Collector::new();
    let mut command = collector.command(&["mcp", "--http", "127.0.0.1:0"]);
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let text: String = lines
        .by_ref()
        .map(Result::unwrap)
        .take_while(|line| line != "}")
        .collect();
    server.kill().unwrap();
    server.wait().unwrap();
    let document: Value = serde_json::from_str(&format!("{text}}}")).unwrap();
    collector.add("mcp", "mcp --http", &document);
    collector.validate();
}
