//! [`Client`]: speaks the protocol line by line, and sees everything that comes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// The newer revision, in which a client says with each request who it is.
pub(crate) const NEWER: &str = "2026-07-28";

/// A client of a server that it has started.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// What says who it is, in the newer revision.
    meta: Option<Value>,
    /// Answers that nobody has asked for yet.
    answers: Vec<Value>,
    /// What came besides answers.
    pub(crate) notifications: Vec<Value>,
    /// What it types when it is asked.
    pub(crate) typed: Option<&'static str>,
    /// Whether it does not react to questions at all.
    pub(crate) ignores: bool,
    /// What it was asked.
    pub(crate) asked: Vec<Value>,
    /// What its roots are.
    pub(crate) roots: Value,
}

/// The reply of a tool.
#[derive(Debug)]
pub(crate) struct ToolReply {
    pub(crate) result: Value,
}

impl Client {
    /// One that introduces itself as clients of 2025 do.
    pub(crate) fn older(context: &Context) -> Self {
        Self::with(context, &["mcp"], &json!({}))
    }

    /// The same with arguments and capabilities.
    pub(crate) fn with(context: &Context, arguments: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::of(context.command(arguments));
        client.initialize(capabilities);
        client
    }

    /// One of the newer revision, which does not introduce itself.
    pub(crate) fn newer(context: &Context, capabilities: &Value) -> Self {
        let mut client = Self::of(context.command(&["mcp"]));
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        client
    }

    /// A client of this command, which has said nothing yet.
    pub(crate) fn of(mut command: Command) -> Self {
        if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
            command.env("CELLWRIGHT_PYTHON", python);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                // A test that has failed does not listen.
                sender.send(line.unwrap()).ok();
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            last: 0,
            meta: None,
            answers: Vec::new(),
            notifications: Vec::new(),
            typed: None,
            ignores: false,
            asked: Vec::new(),
            roots: json!([]),
        }
    }

    fn initialize(&mut self, capabilities: &Value) {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info,
        });
        self.request("initialize", params).unwrap();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Sends what may be no message at all.
    pub(crate) fn send_line(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Fails the test unless the server still runs code.
    pub(crate) fn assert_served(&mut self) {
        let answer = self.call("eval", json!({"code": "1"})).ok();
        assert_eq!(answer.printed().trim(), "1");
    }

    /// Asks for something without waiting; says the number of the request.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if let Some(Value::Object(meta)) = &self.meta {
            let mut all = meta.clone();
            if let Some(Value::Object(more)) = params.get("_meta") {
                all.extend(more.clone());
            }
            params["_meta"] = Value::Object(all);
        }
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The answer to a request, or its error. Those of others are kept.
    pub(crate) fn end(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                let mut answer = self.answers.remove(at);
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].take()),
                };
            }
            let message = self.next(PATIENCE).unwrap();
            if message.get("method").is_none() {
                self.answers.push(message);
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.end(id)
    }

    /// The next message; requests of the server are answered, the rest is remembered. `None` when nothing
    /// more came in time, or ever will.
    pub(crate) fn next(&mut self, patience: Duration) -> Option<Value> {
        let line = match self.lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("not the protocol: {line:?} ({error})"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        match message["method"].as_str() {
            Some("elicitation/create") => {
                self.asked.push(message["params"].clone());
                if self.ignores {
                    return Some(message);
                }
                let result = match self.typed {
                    Some(typed) => json!({"action": "accept", "content": {"answer": typed}}),
                    None => json!({"action": "decline"}),
                };
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            Some("roots/list") => {
                let result = json!({"roots": self.roots});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            Some(_) => self.notifications.push(message.clone()),
            None => {}
        }
        Some(message)
    }

    /// Calls a tool; whatever goes wrong is in its answer.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is made where it is passed"
    )]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> ToolReply {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", params);
        ToolReply {
            result: result.unwrap_or_else(|error| panic!("{tool}: {error}")),
        }
    }

    /// Calls a tool without waiting.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is made where it is passed"
    )]
    pub(crate) fn start_call(&mut self, tool: &str, arguments: Value, token: &str) -> u64 {
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": {"progressToken": token},
        });
        self.begin("tools/call", params)
    }

    /// Closes the connection and waits until the server ends.
    pub(crate) fn disconnect(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind.
        drop(self.stdin.take());
        if std::thread::panicking() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

impl ToolReply {
    /// Its texts, one after the other, as a host puts them together.
    pub(crate) fn text(&self) -> String {
        let blocks = self.result["content"].as_array().unwrap();
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        texts.join("\n")
    }

    /// The blocks of a type.
    pub(crate) fn blocks(&self, kind: &str) -> Vec<&Value> {
        let blocks = self.result["content"].as_array().unwrap();
        blocks
            .iter()
            .filter(|block| block["type"] == kind)
            .collect()
    }

    pub(crate) fn structured(&self) -> &Value {
        &self.result["structuredContent"]
    }

    pub(crate) fn is_error(&self) -> bool {
        self.result["isError"] == true
    }

    /// Fails the test if it is an error.
    pub(crate) fn ok(self) -> Self {
        assert!(!self.is_error(), "{}", self.text());
        self
    }

    /// The text of the error. Fails the test if there is none.
    pub(crate) fn error_text(self) -> String {
        assert!(self.is_error(), "{}", self.text());
        self.text()
    }

    /// What the first cell printed.
    pub(crate) fn printed(&self) -> &str {
        self.structured()["cells"][0]["text"].as_str().unwrap()
    }

    /// The kinds of its notices.
    pub(crate) fn notices(&self) -> Vec<&str> {
        let notices = self.structured()["notices"].as_array();
        let kinds = notices.into_iter().flatten();
        kinds.filter_map(|notice| notice["kind"].as_str()).collect()
    }
}
