//! The documents of the verbs that run code.

use serde_json::{Value, json};

use super::collector::Collector;

/// A notebook with these code cells.
pub(super) fn notebook(sources: &[&str]) -> String {
    let cell = |(index, source): (usize, &&str)| {
        json!({
            "cell_type": "code", "id": format!("c{index}"), "metadata": {}, "execution_count": null,
            "outputs": [], "source": source,
        })
    };
    let cells: Vec<Value> = sources.iter().enumerate().map(cell).collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

/// Code that displays an image of one pixel, JSON and HTML.
pub(super) const DISPLAYS: &str = "\
import base64
png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
display({'image/png': png, 'text/plain': '<Figure>'}, raw=True)
display({'application/json': {'a': [1, None]}, 'text/plain': '{}'}, raw=True)
display({'text/html': '<b>bold</b>'}, raw=True)
phase('one')";

#[test]
fn documents_of_executions_conform() {
    let mut collector = Collector::new();
    let ok = collector.run("eval", &["eval", DISPLAYS], 0);
    assert_eq!(ok["error"], Value::Null);
    assert_eq!(ok["cells"][0]["images"][0]["width"], 1, "{ok}");
    collector.run(
        "eval",
        &["eval", "--cell", "1", "--cell", "1/0", "--cell", "2"],
        1,
    );
    collector.run("eval", &["eval", "import os; os.kill(os.getpid(), 9)"], 2);
    collector.run("eval", &["eval", "raise SystemExit(3)"], 1);
    collector.run("eval", &["eval", "input('?')"], 1);
    let failed = collector.fail(&["eval", "--python", "/no/such/python", "1"], 2);
    assert_eq!(failed["error"]["kind"], "kernel", "{failed}");
    collector.context.file(
        "n.ipynb",
        notebook(&["print(1)", DISPLAYS, "'b' in {} or {}['b']", "2"]),
    );
    collector.run("run", &["run", "n.ipynb"], 1);
    collector.run(
        "run",
        &["run", "n.ipynb", "--keep-going", "-o", "out.ipynb"],
        1,
    );
    collector.run(
        "run",
        &["run", "n.ipynb", "--cells", "0", "--session", "s"],
        0,
    );
    collector.run("check", &["check", "n.ipynb"], 1);
    collector.context.file("empty.ipynb", notebook(&[]));
    collector.run("run", &["run", "empty.ipynb"], 0);
    collector.validate();
}

#[test]
fn a_failed_run_names_its_notebook_its_start_and_the_exception() {
    let mut collector = Collector::new();
    collector
        .context
        .file("n.ipynb", notebook(&["1", "{}['b']"]));
    let report = collector.run("run", &["run", "n.ipynb", "-o", "out.ipynb"], 1);
    let path = |name: &str| collector.context.dir().join(name).display().to_string();
    let (source, output) = (path("n.ipynb"), path("out.ipynb"));
    assert!(
        report["path"].as_str().unwrap().ends_with(&source),
        "{report}"
    );
    assert!(
        report["notebook"]["path"]
            .as_str()
            .unwrap()
            .ends_with(&output),
        "{report}"
    );
    assert!(
        report["started_at"].as_str().unwrap().ends_with('Z'),
        "{report}"
    );
    let cells: f64 = [0, 1]
        .map(|at| report["cells"][at]["duration_ms"].as_f64().unwrap())
        .iter()
        .sum();
    assert!(report["duration_ms"].as_f64().unwrap() >= cells, "{report}");
    let error = &report["error"];
    assert_eq!(
        [
            &error["kind"],
            &error["ename"],
            &error["evalue"],
            &error["cell"],
            &error["exit_code"]
        ],
        [
            &json!("raised"),
            &json!("KeyError"),
            &json!("'b'"),
            &json!({"index": 1, "id": "c1"}),
            &json!(1)
        ]
    );
}

#[test]
fn no_outputs_leaves_one_traceback() {
    let mut collector = Collector::new();
    let code = format!("{DISPLAYS}\nraise ValueError('only once')");
    let count = |document: &Value| document.to_string().matches("raise ValueError").count();
    let full = collector.run("eval", &["eval", &code], 1);
    assert_eq!(count(&full), 3, "{full}");
    for session in [&[][..], &["--session", "s"]] {
        let mut arguments = vec!["eval", &code, "--no-outputs"];
        arguments.extend(session);
        let report = collector.run("eval", &arguments, 1);
        assert_eq!(count(&report), 1, "{report}");
        assert_eq!(report["cells"][0]["outputs"], Value::Null);
        assert!(!report.to_string().contains("iVBORw0KGgo"), "{report}");
        assert_eq!(report["cells"][0]["error"]["evalue"], "only once");
    }
    collector.context.file("n.ipynb", notebook(&[&code]));
    let report = collector.run("run", &["run", "n.ipynb", "--no-outputs"], 1);
    assert_eq!(count(&report), 1, "{report}");
    collector
        .context
        .run(&["eval", "1", "--no-outputs"])
        .exits(2);
    collector.validate();
}

#[test]
fn a_single_cell_that_raises_has_the_error_too() {
    let mut collector = Collector::new();
    let report = collector.run("eval", &["eval", "1/0"], 1);
    assert_eq!(report["error"]["ename"], "ZeroDivisionError");
    assert_eq!(
        report["error"]["message"],
        "Cell 0 raised ZeroDivisionError"
    );
    assert_eq!(report["error"]["cell"], json!({"index": 0, "id": null}));
}

#[test]
fn a_cell_that_times_out_has_an_error_object() {
    let mut collector = Collector::new();
    let code = "import time\nwhile True: time.sleep(1)";
    let report = collector.run("eval", &["eval", "--timeout", "1.5", code], 124);
    assert_eq!(
        report["cells"][0]["error"]["ename"], "CellTimeout",
        "{report}"
    );
    assert_eq!(report["error"]["kind"], "timed_out", "{report}");
    assert_eq!(report["error"]["cell"]["index"], 0, "{report}");
    collector.validate();
}
