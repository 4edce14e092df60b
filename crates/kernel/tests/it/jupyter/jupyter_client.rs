//! [`JupyterClient`]: Jupyter's own Python client in another process.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::python;

/// Jupyter's own client. Dropping this ends it and the kernel that it has started.
pub(super) struct JupyterClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl JupyterClient {
    /// Starts a client with this runtime directory.
    pub(super) fn new(runtime: &Path) -> Self {
        let mut child = Command::new(python())
            .args(["-c", include_str!("jupyter_client.py")])
            .env("JUPYTER_RUNTIME_DIR", runtime)
            // Sockets with a relative path are created in the working directory.
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

    /// Sends a command, and waits for its result.
    pub(super) fn command(&mut self, request: &Value) -> Value {
        self.send_command(request);
        self.read_result()
    }

    fn send_command(&mut self, request: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
    }

    fn read_result(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("a result")
    }

    /// Runs code on its kernel. Returns the status and the output.
    pub(super) fn run(&mut self, code: &str) -> (String, String) {
        let id = self.send(code);
        self.wait(&id)
    }

    /// Sends code to its kernel.
    pub(super) fn send(&mut self, code: &str) -> Value {
        self.command(&json!({"do": "send", "code": code}))
    }

    /// Waits for code that was sent.
    pub(super) fn wait(&mut self, id: &Value) -> (String, String) {
        let result = self.command(&json!({"do": "wait", "id": id}));
        let text = |name: &str| result[name].as_str().unwrap().to_owned();
        (text("status"), text("output"))
    }
}

impl Drop for JupyterClient {
    fn drop(&mut self) {
        self.input = None;
        self.child.wait().ok();
    }
}
