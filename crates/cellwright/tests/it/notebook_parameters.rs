//! `notebook parameters`: what a notebook accepts, without running it.

use serde_json::{Value, json};

use crate::context::Context;
use crate::mcp::client::Client;

/// A notebook with a title and code cells; the tags belong to the first code cell.
fn notebook(language: &str, tags: &[&str], sources: &[&str]) -> String {
    let code = |(index, source): (usize, &&str)| {
        let tags = if index == 0 { tags } else { &[] };
        json!({
            "cell_type": "code", "id": format!("c{index}"), "metadata": {"tags": tags}, "execution_count": null,
            "outputs": [], "source": source,
        })
    };
    let title = json!({"cell_type": "markdown", "id": "title", "metadata": {}, "source": "x = 1"});
    let mut cells = vec![title];
    cells.extend(sources.iter().enumerate().map(code));
    let metadata = json!({"language_info": {"name": language}});
    json!({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

const DEFAULTS: &str = "\
open('ran', 'w')
epochs = 20
lr: float = 0.1  # Learning rate
names = [
    'a # b',
    'c',
]
path: str";

#[test]
fn the_tagged_cell_declares_the_parameters() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook("python", &["parameters"], &[DEFAULTS, "other = 1"]),
    );
    let listed = context.run(&["notebook", "parameters", "a.ipynb"]).exits(0);
    assert_eq!(
        listed.stdout,
        "\
NAME    TYPE   DEFAULT            HELP
epochs  -      20
lr      float  0.1                Learning rate
names   -      [ 'a # b', 'c', ]
path    str    -
"
    );
    assert!(
        listed.stderr.contains("cell 1 sets the defaults"),
        "{}",
        listed.stderr
    );
    let report = context
        .run(&["notebook", "parameters", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&report["index"], &report["id"], &report["language"]),
        (&json!(1), &json!("c0"), &json!("python"))
    );
    assert_eq!(
        report["parameters"][1],
        json!({"name": "lr", "default": "0.1", "type_hint": "float", "help": "Learning rate"})
    );
    assert_eq!(
        report["parameters"][2]["default"],
        "[\n    'a # b',\n    'c',\n]"
    );
    assert_eq!(report["parameters"][3]["default"], Value::Null);
    assert!(!context.path("ran").exists());
    // From stdin.
    let content = context.content("a.ipynb");
    let piped = context
        .run_with_input(&["notebook", "parameters", "-", "-q"], content.as_bytes())
        .exits(0);
    assert_eq!(piped.stdout, listed.stdout);
}

#[test]
fn a_notebook_without_the_tag_is_answered_with_the_command_that_sets_it() {
    let context = Context::new();
    context.file("a.ipynb", notebook("python", &[], &["x = 1"]));
    let listed = context
        .run(&["notebook", "parameters", "a.ipynb", "-q"])
        .exits(0);
    assert_eq!(listed.stdout, "");
    assert_eq!(
        listed.stderr,
        "notice: no cell is tagged `parameters`: `notebook tag a.ipynb CELL parameters` tags the cell with the default \
         values\n"
    );
    context
        .run(&["notebook", "tag", "a.ipynb", "1", "parameters"])
        .exits(0);
    let listed = context
        .run(&["notebook", "parameters", "a.ipynb", "-q"])
        .exits(0);
    assert_eq!(listed.stdout, "NAME  TYPE  DEFAULT  HELP\nx     -     1\n");
    // A cell without assignments, and a language without parameters.
    context.file(
        "a.ipynb",
        notebook("python", &["parameters"], &["print(1)"]),
    );
    let empty = context.run(&["notebook", "parameters", "a.ipynb"]).exits(0);
    assert_eq!(empty.stdout, "");
    assert!(
        empty
            .stderr
            .contains("cell 1 is tagged `parameters` and assigns no variable"),
        "{}",
        empty.stderr
    );
    context.file(
        "a.ipynb",
        notebook("scala", &["parameters"], &["val x = 1"]),
    );
    let refused = context.run(&["notebook", "parameters", "a.ipynb"]).exits(2);
    assert!(
        refused.stderr.contains("in scala, only in Python, R"),
        "{}",
        refused.stderr
    );
}

#[test]
fn parameters_of_other_languages_are_listed() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook("R", &["parameters"], &["n <- 1000 # Rows\nlabel = \"x\""]),
    );
    let listed = context
        .run(&["notebook", "parameters", "a.ipynb", "-q"])
        .exits(0);
    assert_eq!(
        listed.stdout,
        "NAME   TYPE  DEFAULT  HELP\nn      -     1000     Rows\nlabel  -     \"x\"\n"
    );
}

#[test]
fn mcp_lists_parameters_and_servers() {
    let context = Context::new();
    context.file("a.ipynb", notebook("python", &["parameters"], &[DEFAULTS]));
    context.file("b.ipynb", notebook("python", &[], &["x = 1"]));
    let mut client = Client::older(&context);
    let reply = client.call(
        "notebook",
        json!({"action": "parameters", "path": "a.ipynb"}),
    );
    assert!(
        reply
            .text()
            .contains("lr      float  0.1                Learning rate"),
        "{}",
        reply.text()
    );
    let reply = client.call(
        "notebook",
        json!({"action": "parameters", "path": "b.ipynb"}),
    );
    assert!(
        reply
            .text()
            .contains("notice (no_parameters_cell): no cell is tagged"),
        "{}",
        reply.text()
    );
    let reply = client.call("notebook", json!({"action": "where", "path": "a.ipynb"}));
    assert!(
        reply.text().contains("is not open in a Jupyter server"),
        "{}",
        reply.text()
    );
}
