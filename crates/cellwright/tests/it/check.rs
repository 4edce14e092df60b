//! `check`: compares the outputs of a run with the saved outputs.

use serde_json::{Value, json};

use crate::context::Context;

/// A notebook of code cells with their outputs and execution counts.
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

fn stdout_outputs(text: &str) -> Value {
    json!([{"output_type": "stream", "name": "stdout", "text": text}])
}

const RUNNER: &[&str] = &["--backend", "runner"];

fn run(context: &Context, extra: &[&str]) -> crate::context::CommandOutput {
    let arguments = [&["check", "a.ipynb"], RUNNER, extra].concat();
    context.run(&arguments)
}

#[test]
fn a_notebook_with_equal_outputs_passes_and_is_not_written() {
    let context = Context::new();
    let text = notebook(&[
        (
            "x = object()\nprint(x)",
            stdout_outputs("<object object at 0x7f0000000001>\n"),
            Some(1),
        ),
        ("print(6 * 7)", stdout_outputs("42\n"), Some(2)),
    ]);
    context.file("a.ipynb", &text);
    let result = run(&context, &[]).exits(0);
    assert_eq!(
        result.stdout,
        "2 cells ran in order and produced the same outputs\n"
    );
    assert_eq!(context.content("a.ipynb"), text);
    let exact = run(&context, &["--exact", "addresses", "--json"]).exits(1);
    let report: Value = serde_json::from_str(&exact.stdout).unwrap();
    assert_eq!(report["same"], false);
    assert_eq!(report["cells"][0]["status"], "different");
    assert_eq!(report["cells"][1]["status"], "same");
}

#[test]
fn a_difference_is_reported_with_both_values() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook(&[("print(41 + 1)", stdout_outputs("41\n"), Some(1))]),
    );
    let result = run(&context, &["--quiet"]).exits(1);
    assert_eq!(
        result.stdout,
        "FAIL  cell 0 id:c0: output 0, stdout, line 1: was `41`, is `42`\n\
         1 of 1 cell differ; 0 ran out of order or not at all\n"
    );
    // A closed pipe does not change the exit code.
    let mut command = context.command(&[&["check", "a.ipynb"], RUNNER].concat());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
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
    let report = run(&context, &["--json"]).exits(1);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let kinds: Vec<(&str, u64)> = report["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["kind"].as_str().unwrap(),
                entry["index"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(kinds, [("out_of_order", 1), ("never_run", 2)]);
}

#[test]
fn exceptions_fail_the_check_unless_they_are_allowed() {
    let context = Context::new();
    let error = |name: &str| json!([{"output_type": "error", "ename": name, "evalue": "division by zero", "traceback": []}]);
    context.file(
        "a.ipynb",
        notebook(&[
            ("1 / 0", error("ZeroDivisionError"), Some(1)),
            ("print('after')", stdout_outputs("after\n"), Some(2)),
        ]),
    );
    let result = run(&context, &["--quiet"]).exits(1);
    assert_eq!(
        result.stdout,
        "FAIL  cell 0 id:c0: raised ZeroDivisionError: division by zero\n\
         2 cells ran in order and produced the same outputs; 1 cell raised an exception\n      \
         next: tag cells that may raise `raises-exception`, or allow all exceptions with `--allow-errors`\n"
    );
    let report = run(&context, &["--json"]).exits(1).json();
    assert_eq!(report["same"], true);
    assert_eq!(report["passed"], false);
    assert_eq!(report["raised"], 1);
    assert_eq!(report["cells"][0]["error"]["ename"], "ZeroDivisionError");
    let allowed = run(&context, &["--allow-errors"]).exits(0);
    assert_eq!(
        allowed.stdout,
        "2 cells ran in order and produced the same outputs; 1 cell raised an exception\n"
    );
    let mut tagged: Value = serde_json::from_str(&context.content("a.ipynb")).unwrap();
    tagged["cells"][0]["metadata"]["tags"] = json!(["raises-exception"]);
    context.file("a.ipynb", tagged.to_string());
    run(&context, &[]).exits(0);
    context.file("a.ipynb", notebook(&[("1 / 0", json!([]), Some(1))]));
    let result = run(&context, &["--quiet"]).exits(1);
    assert!(result.stdout.contains("error, is new"), "{}", result.stdout);
}

#[test]
fn numbers_may_differ_by_the_tolerance() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook(&[(
            "print('loss', 0.1 + 0.2, 3)",
            stdout_outputs("loss 0.3 3\n"),
            Some(1),
        )]),
    );
    run(&context, &[]).exits(1);
    run(&context, &["--tolerance", "1e-6"]).exits(0);
    run(&context, &["--tolerance", "1e-6", "--exact", "all"]).exits(0);
    run(&context, &["--tolerance", "2"]).exits(2);
    let mut command = context.command(&[&["check", "a.ipynb"], RUNNER].concat());
    command.env("CELLWRIGHT_CHECK_TOLERANCE", "1e-6");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn a_kernel_that_dies_and_an_unknown_rule_are_errors() {
    let context = Context::new();
    context.file(
        "a.ipynb",
        notebook(&[("import os; os._exit(3)", json!([]), Some(1))]),
    );
    let result = run(&context, &["--quiet"]).exits(2);
    assert!(
        result.stdout.contains("did not finish"),
        "{}",
        result.stdout
    );
    let result = run(&context, &["--exact", "nonsense"]).exits(2);
    assert!(
        result.stderr.contains("There is no rule `nonsense`"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_notebook_without_code_passes() {
    let context = Context::new();
    context.file("a.ipynb", notebook(&[("  ", json!([]), None)]));
    let result = run(&context, &[]).exits(0);
    assert_eq!(
        result.stdout,
        "0 cells ran in order and produced the same outputs\n"
    );
}
