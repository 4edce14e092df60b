//! `check`: whether a notebook puts out what it says it does.

use serde_json::{Value, json};

use crate::context::Context;

/// A notebook of code cells with what they put out and counted when they ran.
fn notebook(cells: &[(&str, Value, Option<u32>)]) -> String {
    let cell = |(index, (source, outputs, count)): (usize, &(&str, Value, Option<u32>))| {
        json!({
            "cell_type": "code", "id": format!("c{index}"), "metadata": {}, "source": source,
            "outputs": outputs, "execution_count": count,
        })
    };
    let cells: Vec<Value> = cells.iter().enumerate().map(cell).collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

fn printed(text: &str) -> Value {
    json!([{"output_type": "stream", "name": "stdout", "text": text}])
}

const RUNNER: &[&str] = &["--backend", "runner"];

fn run(context: &Context, extra: &[&str]) -> crate::context::CommandOutput {
    let words = [&["check", "a.ipynb"], RUNNER, extra].concat();
    context.run(&words)
}

#[test]
fn a_notebook_with_equal_outputs_passes_and_is_not_written() {
    let context = Context::new();
    let text = notebook(&[
        (
            "x = object()\nprint(x)",
            printed("<object object at 0x7f0000000001>\n"),
            Some(1),
        ),
        ("print(6 * 7)", printed("42\n"), Some(2)),
    ]);
    context.file("a.ipynb", &text);
    let ran = run(&context, &[]).exits(0);
    assert_eq!(
        ran.stdout,
        "2 cells ran in order and produced the same outputs\n"
    );
    assert_eq!(context.content("a.ipynb"), text);
    let exact = run(&context, &["--exact", "addresses", "--json"]).exits(1);
    let answer: Value = serde_json::from_str(&exact.stdout).unwrap();
    assert_eq!(answer["same"], false);
    assert_eq!(answer["cells"][0]["status"], "different");
    assert_eq!(answer["cells"][1]["status"], "same");
}

#[test]
fn what_differs_is_named_with_both_sides() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook(&[("print(41 + 1)", printed("41\n"), Some(1))]),
    );
    let ran = run(&context, &["--quiet"]).exits(1);
    assert_eq!(
        ran.stdout,
        "FAIL  cell 0 id:c0: output 0, stdout, line 1: was `41`, is `42`\n\
         1 of 1 cell differ; 0 ran out of order or not at all\n"
    );
}

#[test]
fn cells_that_never_ran_or_ran_out_of_order_are_named() {
    let context = Context::new();
    let none = json!([]);
    context.file(
        "a.ipynb",
        notebook(&[
            ("a = 1", none.clone(), Some(5)),
            ("b = 2", none.clone(), Some(3)),
            ("c = 3", none, None),
        ]),
    );
    let answer = run(&context, &["--json"]).exits(1);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let kinds: Vec<(&str, u64)> = answer["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["kind"].as_str().unwrap(), one["cell"].as_u64().unwrap()))
        .collect();
    assert_eq!(kinds, [("out_of_order", 1), ("never_run", 2)]);
}

#[test]
fn an_exception_that_was_there_before_is_no_difference_and_a_new_one_is() {
    let context = Context::new();
    let error = |name: &str| json!([{"output_type": "error", "ename": name, "evalue": "division by zero", "traceback": []}]);
    context.file(
        "a.ipynb",
        notebook(&[
            ("1 / 0", error("ZeroDivisionError"), Some(1)),
            ("print('after')", printed("after\n"), Some(2)),
        ]),
    );
    run(&context, &[]).exits(0);
    context.file("a.ipynb", notebook(&[("1 / 0", json!([]), Some(1))]));
    let ran = run(&context, &["--quiet"]).exits(1);
    assert!(ran.stdout.contains("error, is new"), "{}", ran.stdout);
}

#[test]
fn a_kernel_that_dies_is_told_and_so_is_a_rule_that_is_not_there() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook(&[("import os; os._exit(3)", json!([]), Some(1))]),
    );
    let ran = run(&context, &["--quiet"]).exits(2);
    assert!(ran.stdout.contains("did not finish"), "{}", ran.stdout);
    let ran = run(&context, &["--exact", "nonsense"]).exits(2);
    assert!(
        ran.stderr.contains("There is no rule `nonsense`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_notebook_without_code_is_as_it_was() {
    let context = Context::new();
    context.file("a.ipynb", notebook(&[("  ", json!([]), None)]));
    let ran = run(&context, &[]).exits(0);
    assert_eq!(
        ran.stdout,
        "0 cells ran in order and produced the same outputs\n"
    );
}
