//! [`Client`]: sends and receives protocol messages line by line, and records all of them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;

/// Time limit for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// The variable of the setting `mcp.structured`.
pub(crate) const STRUCTURED: &str = "CELLWRIGHT_MCP_STRUCTURED";

/// The newer protocol revision, in which every request identifies the client.
pub(crate) const NEWER: &str = "2026-07-28";

/// A client of a server that it has started.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// Metadata that identifies the client, in the newer revision.
    meta: Option<Value>,
    /// Replies that no call has taken yet.
    answers: Vec<Value>,
    /// Notifications of the server.
    pub(crate) notifications: Vec<Value>,
    /// Answer to an elicitation; `None` declines.
    pub(crate) typed: Option<&'static str>,
    /// Whether elicitations stay without an answer.
    pub(crate) ignores: bool,
    /// Parameters of the elicitations.
    pub(crate) asked: Vec<Value>,
    /// Reply to `roots/list`.
    pub(crate) roots: Value,
}

/// The reply of a tool.
#[derive(Debug)]
pub(crate) struct ToolReply {
    pub(crate) result: Value,
}

impl Client {
    /// A client of a protocol revision with `initialize`.
    pub(crate) fn older(context: &Context) -> Self {
        Self::with(context, &["mcp"], &json!({}))
    }

    /// The same, with arguments and capabilities.
    pub(crate) fn with(context: &Context, arguments: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::of(context.command(arguments));
        client.initialize(capabilities);
        client
    }

    /// A client of the newer revision, without `initialize`.
    pub(crate) fn newer(context: &Context, capabilities: &Value) -> Self {
        let mut client = Self::of(context.command(&["mcp"]));
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        client
    }

    /// Starts a server with this command. Sends nothing yet.
    pub(crate) fn of(mut command: Command) -> Self {
        if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
            command.env("CELLWRIGHT_PYTHON", python);
        }
        // Structured content repeats the text, which makes assertions precise. `replies.rs` tests the default.
        if !command.get_envs().any(|(name, _)| name == STRUCTURED) {
            command.env(STRUCTURED, "true");
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
                // The receiver is gone if the test has failed.
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

    pub(crate) fn initialize(&mut self, capabilities: &Value) {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info,
        });
        self.request("initialize", params).unwrap();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Sends a line, which need not be a message.
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

    /// Sends a request. Returns its id.
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

    /// Waits for the reply to a request, or its error. Keeps the replies to other requests.
    pub(crate) fn end(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                let mut answer = self.answers.remove(at);
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].take()),
                };
            }
            let message = self.next(REPLY_TIMEOUT).unwrap();
            if message.get("method").is_none() {
                self.answers.push(message);
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.end(id)
    }

    /// Returns the next message. Answers requests of the server and records notifications. `None` if no message
    /// arrives in time, or the server has exited.
    pub(crate) fn next(&mut self, timeout: Duration) -> Option<Value> {
        let line = match self.lines.recv_timeout(timeout) {
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

    /// Calls a tool. A protocol error fails the test.
    #[expect(clippy::needless_pass_by_value, reason = "created at the call")]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> ToolReply {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", params);
        ToolReply {
            result: result.unwrap_or_else(|error| panic!("{tool}: {error}")),
        }
    }

    /// Starts a call. Returns its id.
    #[expect(clippy::needless_pass_by_value, reason = "created at the call")]
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
        // A failed test must not leave a server behind.
        drop(self.stdin.take());
        if std::thread::panicking() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

impl ToolReply {
    /// Its text blocks, joined as a host does.
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

    /// The text of a reply to code that raised an exception, which is no error of the call.
    pub(crate) fn raised_text(self) -> String {
        let text = self.text();
        assert!(
            !self.is_error() && text.starts_with("error: cell "),
            "{text}"
        );
        text
    }

    /// The artifact that the text names for truncated output.
    pub(crate) fn artifact(&self) -> String {
        let text = self.text();
        let start = text
            .find("all of it: `read` ")
            .unwrap_or_else(|| panic!("{text}"))
            + 18;
        text[start..].split(',').next().unwrap().to_owned()
    }

    /// The text of the first cell.
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
