//! [`Other`]: Jupyter's own client, as another program.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::python;

/// Jupyter's own client. It ends with this, and a kernel that it has started, too.
pub(super) struct Other {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Other {
    /// One whose runtime folder is this.
    pub(super) fn new(runtime: &Path) -> Self {
        let mut child = Command::new(python())
            .args(["-c", include_str!("other.py")])
            .env("JUPYTER_RUNTIME_DIR", runtime)
            // Sockets without a folder are in the working directory.
            .current_dir(runtime)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    /// Tells it to do something, and waits until it has.
    pub(super) fn ask(&mut self, request: &Value) -> Value {
        self.tell(request);
        self.answer()
    }

    fn tell(&mut self, request: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("an answer")
    }

    /// Runs code on its kernel: how it ended, and what it said.
    pub(super) fn run(&mut self, code: &str) -> (String, String) {
        let id = self.send(code);
        self.wait(&id)
    }

    /// Sends code to its kernel.
    pub(super) fn send(&mut self, code: &str) -> Value {
        self.ask(&json!({"do": "send", "code": code}))
    }

    /// Waits for code that was sent.
    pub(super) fn wait(&mut self, id: &Value) -> (String, String) {
        let answer = self.ask(&json!({"do": "wait", "id": id}));
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (text("status"), text("said"))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.input = None;
        self.child.wait().ok();
    }
}
