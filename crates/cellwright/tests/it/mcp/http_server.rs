//! [`HttpServer`]: a server over HTTP, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;

pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server over HTTP, which ends with the test.
pub(super) struct HttpServer {
    child: Child,
    pub(super) address: String,
    token: String,
}

impl HttpServer {
    pub(super) fn new(context: &Context) -> Self {
        Self::with(context, &["--allow-origin", "https://pages.example"], &[])
    }

    /// A server with these arguments and environment variables.
    pub(super) fn with(context: &Context, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let file = context.path("token");
        let file = file.to_str().unwrap();
        let mut command = context.command(&[
            "mcp",
            "--http",
            "127.0.0.1:0",
            "--token-file",
            file,
            "--json",
        ]);
        command.args(arguments).envs(variables.iter().copied());
        if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
            command.env("CELLWRIGHT_PYTHON", python);
        }
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut printed = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        while !printed.trim_end().ends_with('}') {
            assert!(stdout.read_line(&mut printed).unwrap() > 0, "{printed}");
        }
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let url = printed["url"].as_str().unwrap();
        let address = url
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let token = context.content("token").trim().to_owned();
        Self {
            child,
            address: address.to_owned(),
            token,
        }
    }

    /// Sends a request as it is; gives the status and everything that came.
    pub(super) fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // Streams stay open; what has come tells enough.
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.unwrap_or(0), answer)
    }

    /// A request with these headers, and this body.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != "\0") {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        self.raw(&request)
    }

    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a message of a revision with sessions.
    pub(super) fn post(&self, session: Option<&str>, body: &str) -> (u16, String) {
        let bearer = self.bearer();
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        headers.extend(session.map(|id| ("Mcp-Session-Id", id)));
        self.ask("POST", "/mcp", &headers, body)
    }

    /// Initializes a session. Returns its id.
    pub(super) fn initialize(&self) -> String {
        let (status, answer) = self.post(None, INITIALIZE);
        assert_eq!(status, 200, "{answer}");
        let id = answer
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.unwrap_or_else(|| panic!("{answer}")).trim().to_owned();
        let (status, answer) = self.post(Some(&id), INITIALIZED);
        assert_eq!(status, 202, "{answer}");
        id
    }

    /// Runs code in a session. Returns the text of the reply.
    pub(super) fn eval(&self, session: &str, code: &str) -> String {
        let params = json!({"name": "eval", "arguments": {"code": code}});
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params});
        let (status, answer) = self.post(Some(session), &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let result = last_message(&answer);
        let text = result["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Opens the stream of a session.
    pub(super) fn open_stream(&self, session: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nAccept: text/event-stream\r\n\
             Mcp-Session-Id: {session}\r\n\r\n",
            self.address,
            self.bearer(),
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        stream
    }

    /// A request of the newer revision.
    pub(super) fn call(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let bearer = self.bearer();
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        let (status, answer) = self.ask("POST", "/mcp", &headers, &body);
        assert_eq!(status, 200, "{answer}");
        last_message(&answer)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        Command::new("kill").arg(&pid).status().unwrap();
        self.child.wait().unwrap();
    }
}

/// The last response in a stream of events or in a body.
pub(super) fn last_message(answer: &str) -> Value {
    let line = answer
        .lines()
        .filter_map(|line| {
            line.strip_prefix("data: ")
                .or(line.starts_with(['{', '[']).then_some(line))
        })
        .rfind(|line| line.contains("\"result\"") || line.contains("\"error\""));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{answer}"))).unwrap()
}
