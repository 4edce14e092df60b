//! The server over HTTP: it accepts requests with the token and rejects all others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;

/// A server over HTTP, which ends with the test.
struct HttpServer {
    child: Child,
    address: String,
    token: String,
}

impl HttpServer {
    fn new(context: &Context) -> Self {
        let file = context.path("token");
        let file = file.to_str().unwrap();
        let mut command = context.command(&[
            "mcp",
            "--http",
            "127.0.0.1:0",
            "--token-file",
            file,
            "--json",
            "--allow-origin",
            "https://pages.example",
        ]);
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
    fn raw(&self, request: &str) -> (u16, String) {
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
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
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

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// A request of the newer revision.
    fn call(&self, method: &str, mut params: Value) -> Value {
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
        let line = answer
            .lines()
            .filter_map(|line| {
                line.strip_prefix("data: ")
                    .or(line.starts_with('{').then_some(line))
            })
            .rfind(|line| line.contains("\"result\"") || line.contains("\"error\""));
        serde_json::from_str(line.unwrap_or_else(|| panic!("{answer}"))).unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        Command::new("kill").arg(&pid).status().unwrap();
        self.child.wait().unwrap();
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[test]
fn requests_without_the_token_are_rejected() {
    let context = Context::new();
    let server = HttpServer::new(&context);
    let bearer = server.bearer();
    let half = &bearer[..bearer.len() - 1];
    let longer = format!("{bearer}0");
    let (small, other) = (
        bearer.replace("Bearer", "bearer"),
        bearer.replace("Bearer", "Basic"),
    );
    let at_evil = format!(
        "evil.example:{}",
        server.address.rsplit(':').next().unwrap()
    );
    let own_port = server.address.rsplit(':').next().unwrap().to_owned();
    let neighbour = "http://127.0.0.1:1".to_owned();
    // What is wrong, and the status it gets. NUL: the header is not sent.
    let wrong: Vec<(Vec<(&str, &str)>, u16)> = vec![
        (vec![], 401),
        (vec![("Authorization", "")], 401),
        (vec![("Authorization", "Bearer")], 401),
        (vec![("Authorization", "Bearer wrong")], 401),
        (vec![("Authorization", half)], 401),
        (vec![("Authorization", &longer)], 401),
        (vec![("Authorization", &small)], 401),
        (vec![("Authorization", &other)], 401),
        (
            vec![("Authorization", &bearer), ("Host", "evil.example")],
            403,
        ),
        (vec![("Authorization", &bearer), ("Host", &at_evil)], 403),
        (
            vec![
                ("Authorization", &bearer),
                ("Host", "127.0.0.1.evil.example"),
            ],
            403,
        ),
        (vec![("Authorization", &bearer), ("Host", "")], 403),
        (
            vec![
                ("Authorization", &bearer),
                ("Host", "localhost"),
                ("Host", "evil.example"),
            ],
            403,
        ),
        (
            vec![
                ("Authorization", &bearer),
                ("Origin", "https://evil.example"),
            ],
            403,
        ),
        (vec![("Authorization", &bearer), ("Origin", "null")], 403),
        (
            vec![("Authorization", &bearer), ("Origin", &neighbour)],
            403,
        ),
        (
            vec![
                ("Authorization", &bearer),
                ("Origin", "https://pages.example.evil.example"),
            ],
            403,
        ),
        (
            vec![
                ("Authorization", &bearer),
                ("Origin", "http://pages.example"),
            ],
            403,
        ),
        // One allowed origin does not cover for another.
        (
            vec![
                ("Authorization", &bearer),
                ("Origin", "https://pages.example"),
                ("Origin", "https://evil.example"),
            ],
            403,
        ),
        (vec![("Origin", "null")], 403),
        (vec![("Host", "evil.example")], 403),
    ];
    let routes = [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("HEAD", "/mcp"),
        ("GET", "/"),
        ("POST", "/"),
        ("GET", "/mcp/"),
        ("POST", "/mcp/x"),
        ("POST", "//mcp"),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/sse"),
        ("POST", "/messages"),
        ("GET", "/../mcp"),
        ("POST", "/%6dcp"),
    ];
    let json = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for (headers, expected) in &wrong {
        for (method, path) in routes {
            let mut all = headers.clone();
            all.extend(json);
            let (status, answer) = server.ask(method, path, &all, INITIALIZE);
            assert_eq!(status, *expected, "{method} {path} {headers:?}: {answer}");
            assert!(!answer.contains("serverInfo"), "{answer}");
        }
    }
    // With it, the one place answers, also to its own page and the one that was allowed.
    let own = format!("http://127.0.0.1:{own_port}");
    for origin in ["\0", own.as_str(), "https://pages.example"] {
        let mut all = vec![("Authorization", bearer.as_str()), ("Origin", origin)];
        all.extend(json);
        let (status, answer) = server.ask("POST", "/mcp", &all, INITIALIZE);
        assert_eq!(status, 200, "{origin:?}: {answer}");
        assert!(answer.contains("serverInfo"), "{answer}");
    }
    let (status, _) = server.ask("GET", "/else", &[("Authorization", bearer.as_str())], "");
    assert_eq!(status, 404);
}

#[test]
fn a_token_that_others_can_read_is_not_used() {
    let context = Context::new();
    let file = context.file("token", "0123456789abcdef0123456789abcdef\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let arguments = [
        "mcp",
        "--http",
        "127.0.0.1:0",
        "--token-file",
        file.to_str().unwrap(),
    ];
    let ran = context.run(&arguments).exits(2);
    assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let ran = context.run(&["mcp", "--http", address]).exits(2);
        assert!(ran.stderr.contains("--allow-remote"), "{}", ran.stderr);
    }
    context.run(&["mcp", "--http", "nonsense"]).exits(2);
}

#[test]
fn calls_of_the_newer_revision_need_no_session() {
    let context = Context::with_notebook();
    let server = HttpServer::new(&context);
    let eval = |code: &str| {
        let params = json!({"name": "eval", "arguments": {"code": code}});
        let answer = server.call("tools/call", params);
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        let mut output = text
            .split('\n')
            .skip_while(|line| !line.starts_with("<output "));
        output.nth(1).unwrap_or_default().to_owned()
    };
    eval("x = 20");
    // What a call left behind is there for the next one, which comes over another connection.
    assert_eq!(eval("x + 1"), "21");
    let params = json!({"name": "read", "arguments": {"path": "a.ipynb"}});
    let answer = server.call("tools/call", params);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("3 cells"), "{text}");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn a_client_that_hangs_up_has_its_code_stopped() {
    let context = Context::new();
    let server = HttpServer::new(&context);
    let marker = context.path("interrupted");
    let code = format!(
        "import time\ntry:\n    open({started:?}, 'w').close()\n    time.sleep(600)\nfinally:\n    open({marker:?}, 'w').close()",
        started = context.path("started").to_str().unwrap(),
        marker = marker.to_str().unwrap(),
    );
    let params = json!({
        "name": "eval", "arguments": {"code": code, "timeout": 0},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: eval\r\nContent-Length: {}\r\n\r\n",
        server.address,
        server.bearer(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    wait_for(&context.path("started"));
    drop(stream);
    wait_for(&marker);
}

fn wait_for(file: &std::path::Path) {
    for _ in 0..1500 {
        if file.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} did not come", file.display());
}
