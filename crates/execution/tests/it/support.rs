//! Shared by these tests: notebooks, and a process that replies to each line with a line.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Path of a file of these tests.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(name)
}

/// The Python interpreter of these tests; any Python 3 will do.
pub(crate) fn python() -> Command {
    let named = std::env::var_os("CELLWRIGHT_TEST_PYTHON");
    let mut command = Command::new(named.unwrap_or_else(|| "python3".into()));
    command
        .env("PYTHONIOENCODING", "utf-8")
        .arg("-X")
        .arg("utf8");
    command
}

/// A process that replies to each line of JSON with one line of JSON.
pub(crate) struct Oracle(RefCell<(Child, ChildStdin, BufReader<ChildStdout>)>);

impl Oracle {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self(RefCell::new((child, input, output)))
    }

    pub(crate) fn evaluate(&self, request: &Value) -> Value {
        let (_, input, output) = &mut *self.0.borrow_mut();
        input.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut reply = String::new();
        output.read_line(&mut reply).unwrap();
        serde_json::from_str(&reply)
            .unwrap_or_else(|_| panic!("{reply:?} is not a reply to {request}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let (child, _, _) = self.0.get_mut();
        child.kill().ok();
        child.wait().ok();
    }
}

/// A notebook of code cells with these sources, all with outputs. Their ids are `c` and the index.
pub(crate) fn document(sources: &[&str]) -> Value {
    let old = json!([{"name": "stdout", "output_type": "stream", "text": ["old\n"]}]);
    let cell = |(index, source): (usize, &&str)| {
        json!({
            "cell_type": "code", "execution_count": 99, "id": format!("c{index}"), "metadata": {},
            "outputs": old, "source": [source],
        })
    };
    let cells: Vec<Value> = sources.iter().enumerate().map(cell).collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
}

/// JSON in the layout that Jupyter writes.
pub(crate) fn jupyter_layout(document: &Value) -> String {
    use serde::Serialize;
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    document.serialize(&mut serializer).unwrap();
    String::from_utf8(out).unwrap() + "\n"
}

/// The outputs of each cell on one line: text unchanged, exceptions as `!` and their name, results after `=`.
pub(crate) fn output_summary(document: &Value) -> Vec<String> {
    let lines = |text: &Value| match text {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let output = |output: &Value| match output["output_type"].as_str() {
        Some("stream") => lines(&output["text"])
            .replace('\n', " ")
            .trim_end()
            .to_owned(),
        Some("error") => format!("!{}", output["ename"].as_str().unwrap_or_default()),
        _ => format!("={}", lines(&output["data"]["text/plain"])),
    };
    let cells = document["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            let outputs = cell["outputs"].as_array().unwrap().iter();
            outputs.map(output).collect::<Vec<_>>().join(" ")
        })
        .collect()
}
