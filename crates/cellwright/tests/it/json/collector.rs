//! [`Collector`]: the documents that commands printed, and their validation.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::context::{CommandOutput, Context};

/// Validates each document with Python's `jsonschema`; prints the problems.
const VALIDATOR: &str = r#"
import json, sys
from jsonschema import Draft202012Validator, FormatChecker
given = json.load(sys.stdin)
validators = {}
for name, schema in given["schemas"].items():
    Draft202012Validator.check_schema(schema)
    validators[name] = Draft202012Validator(schema, format_checker=FormatChecker())
for entry in given["documents"]:
    for error in validators[entry["schema"]].iter_errors(entry["document"]):
        causes = sorted(error.context or [], key=lambda cause: len(cause.path)) or [error]
        texts = ["%s: %s" % (cause.json_path, cause.message[:300]) for cause in causes]
        print("%s\n    %s" % (entry["command"], "\n    ".join(texts)))
"#;

/// Runs commands and collects their documents. Stops the host at the end.
pub(super) struct Collector {
    pub(super) context: Context,
    documents: Vec<Value>,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            context: Context::with_notebook(),
            documents: Vec::new(),
        }
    }

    /// Runs a command with `--json`, whose document must have this schema.
    pub(super) fn run(&mut self, schema: &str, arguments: &[&str], code: i32) -> Value {
        let command = self.command(arguments);
        self.collect(schema, arguments, command, code)
    }

    /// Runs a command that fails with an error document.
    pub(super) fn fail(&mut self, arguments: &[&str], code: i32) -> Value {
        let document = self.run("error", arguments, code);
        assert_eq!(document["error"]["exit_code"], code, "{arguments:?}");
        document
    }

    /// The binary with these arguments, `--json`, and the interpreter of the tests.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.context.command(arguments);
        command.arg("--json");
        if let Some(python) = std::env::var_os(cellwright_test_support::PYTHON) {
            command.env("CELLWRIGHT_PYTHON_INTERPRETER", python);
        }
        command
    }

    /// Runs a prepared command and collects its document.
    pub(super) fn collect(
        &mut self,
        schema: &str,
        arguments: &[&str],
        mut command: Command,
        code: i32,
    ) -> Value {
        let output = CommandOutput::new(&self.context, &command.output().unwrap()).exits(code);
        let document = output.json();
        assert!(document.is_object(), "{arguments:?}: {document}");
        self.add(schema, &arguments.join(" "), &document);
        document
    }

    /// Adds a document that a command printed.
    pub(super) fn add(&mut self, schema: &str, command: &str, document: &Value) {
        assert_eq!(document["version"], 1, "{command}");
        let entry = json!({"schema": schema, "command": command, "document": document});
        self.documents.push(entry);
    }

    /// The schemas of the collected documents.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let names = self.documents.iter().map(|entry| &entry["schema"]);
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    /// Compares all documents with the schemas that the binary prints.
    pub(super) fn validate(&self) {
        let Some(python) = cellwright_test_support::python() else {
            return;
        };
        let schemas: Map<String, Value> = self
            .names()
            .into_iter()
            .map(|name| (name.clone(), schema(&self.context, &name)))
            .collect();
        let input = json!({"schemas": schemas, "documents": self.documents});
        let mut validator = Command::new(python)
            .args(["-c", VALIDATOR])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = validator.stdin.take().unwrap();
        stdin.write_all(input.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = validator.wait_with_output().unwrap();
        assert!(output.status.success());
        let problems = String::from_utf8_lossy(&output.stdout);
        assert!(problems.is_empty(), "{problems}");
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.context.run(&["host", "stop"]);
    }
}

/// The schema that the binary prints.
pub(super) fn schema(context: &Context, name: &str) -> Value {
    let mut arguments = vec!["schema"];
    arguments.extend(name.split(' '));
    context.run(&arguments).exits(0).json()
}

/// The names of all schemas.
pub(super) fn schema_names(context: &Context) -> BTreeSet<String> {
    let names = context.run(&["schema"]).exits(0).stdout;
    names.lines().map(str::to_owned).collect()
}
