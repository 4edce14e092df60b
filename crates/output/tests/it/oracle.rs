//! Comparison with Python's nbformat: it writes the same outputs with the same bytes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cellwright_output::{Bundle, Capture, Data, Event, JsonStyle, Limits, Sink, Stream, Traceback};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// An interpreter with nbformat.
fn python() -> PathBuf {
    let configured = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = configured.unwrap_or_else(|| root.join("target/venv/bin/python"));
    assert!(
        python.is_file(),
        "there is no Python with nbformat at {}: run scripts/test, which makes one, or set \
         CELLWRIGHT_TEST_PYTHON",
        python.display()
    );
    python
}

/// Text with all characters that JSON or nbformat treat specially.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[a-zé日\u{1f600} \t\n]{0,60}",
        1 => any::<String>(),
        1 => "[\r\n\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}\"\\\\\u{7f}\u{1b}\u{8}a]{0,12}",
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-30..30_i32).prop_map(|power| json!(10_f64.powi(power))),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            members(inner).prop_map(Value::Object),
        ]
    })
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((text(), inner), 0..5).prop_map(|members| members.into_iter().collect())
}

fn bundle() -> impl Strategy<Value = Bundle> {
    let part = prop_oneof![
        (
            prop::sample::select(vec![
                "text/plain",
                "text/html",
                "image/svg+xml",
                "image/png",
                "application/javascript",
                "application/x-a"
            ]),
            text()
        )
            .prop_map(|(mime, text)| (mime, Data::Text(text))),
        prop::collection::vec(any::<u8>(), 0..50)
            .prop_map(|bytes| ("image/jpeg", Data::Bytes(bytes))),
        tree().prop_map(|value| ("application/vnd.x+json", Data::Json(value))),
    ];
    (prop::collection::vec(part, 0..4), members(tree())).prop_map(|(parts, metadata)| {
        let data = parts
            .into_iter()
            .map(|(mime, data)| (mime.to_owned(), data));
        Bundle {
            data: data.collect(),
            metadata,
        }
    })
}

#[derive(Clone, Debug)]
enum Step {
    Text(Stream, String),
    Display(Bundle, Option<u32>),
    Raised(String, Vec<String>),
}

fn step() -> impl Strategy<Value = Step> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    prop_oneof![
        2 => (stream, text()).prop_map(|(stream, text)| Step::Text(stream, text)),
        3 => (bundle(), prop::option::of(any::<u32>())).prop_map(|(bundle, count)| Step::Display(bundle, count)),
        1 => (text(), prop::collection::vec(text(), 0..4)).prop_map(|(name, lines)| Step::Raised(name, lines)),
    ]
}

/// A notebook with the outputs of these steps.
fn notebook(steps: &[Step], style: &JsonStyle, limits: Limits) -> String {
    let mut capture = Capture::new(limits, None);
    for step in steps {
        match step {
            Step::Text(stream, text) => capture.push(Event::Text {
                stream: *stream,
                bytes: text.as_bytes(),
            }),
            Step::Display(bundle, result) => capture.push(Event::Display {
                bundle: bundle.clone(),
                id: None,
                result: *result,
            }),
            Step::Raised(name, lines) => capture.push(Event::Raised(Traceback {
                name: name.clone(),
                value: name.clone(),
                lines: lines.clone(),
            })),
        }
    }
    let mut outputs = Vec::new();
    let captured = capture.finish();
    captured.outputs.write(&mut outputs, style, 3).unwrap();
    let outputs = String::from_utf8(outputs).unwrap();
    format!(
        r#"{{
 "cells": [
  {{
   "cell_type": "code",
   "execution_count": null,
   "id": "a",
   "metadata": {{}},
   "outputs": {outputs},
   "source": []
  }}
 ],
 "metadata": {{}},
 "nbformat": 4,
 "nbformat_minor": 5
}}"#
    )
}

#[test]
fn nbformat_writes_the_same_bytes() {
    const CHECK: &str = "import json, sys, nbformat
for text, ascii in json.load(sys.stdin):
    again = nbformat.writes(nbformat.reads(text, as_version=4), ensure_ascii=ascii)
    if again != text:
        print(text, again, sep='\\n--- nbformat:\\n')
        break
";
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 0..6);
    let mut notebooks = Vec::new();
    for at in 0..400 {
        let steps = steps.new_tree(&mut runner).unwrap().current();
        let ascii = at % 2 == 0;
        let style = JsonStyle {
            ascii,
            ..JsonStyle::default()
        };
        // The memory limit does not change the result.
        let whole = notebook(&steps, &style, Limits::default());
        let small = Limits {
            display_bytes: 0,
            ..Limits::default()
        };
        assert_eq!(notebook(&steps, &style, small), whole);
        notebooks.push(json!([whole, ascii]));
    }
    let mut python = Command::new(python())
        .args(["-W", "ignore", "-c", CHECK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin
        .write_all(Value::Array(notebooks).to_string().as_bytes())
        .unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let difference = String::from_utf8_lossy(&output.stdout);
    assert!(difference.is_empty(), "{difference}");
}
