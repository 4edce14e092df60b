//! The server over HTTP: it accepts requests with the token and rejects all others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::json;

use super::http_server::{HttpServer, INITIALIZE, last_message};
use crate::context::Context;

const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

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
    let two = [
        ("Authorization", bearer.as_str()),
        ("Authorization", "Bearer x"),
    ];
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
        (vec![("Authorization", &other)], 401),
        (two.to_vec(), 401),
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
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend([("Host", "localhost")]);
    let (status, answer) = server.ask("POST", "http://evil.example/mcp", &all, INITIALIZE);
    assert_eq!(status, 403, "{answer}");
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
    let mut all = vec![("Authorization", small.as_str())];
    all.extend(json);
    assert_eq!(server.ask("POST", "/mcp", &all, INITIALIZE).0, 200);
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

#[test]
fn connections_without_the_token_do_not_lock_out_clients() {
    let context = Context::new();
    let server = HttpServer::new(&context);
    let foreign = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
    let slow_body = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{",
        server.address
    );
    let session = server.initialize();
    let mut stream = server.open_stream(&session);
    let mut held = Vec::new();
    for number in 0..400 {
        let mut connection = TcpStream::connect(&server.address).unwrap();
        let bytes = ["P", "", foreign, slow_body.as_str()][number % 4];
        connection.write_all(bytes.as_bytes()).unwrap();
        held.push(connection);
    }
    let (status, answer) = server.post(Some(&session), LIST_TOOLS);
    assert_eq!(status, 200, "{answer}");
    // The rejected ones are closed, and the stream is not.
    for connection in held.iter_mut().skip(2).step_by(4) {
        let mut rest = Vec::new();
        connection.read_to_end(&mut rest).ok();
    }
    stream.set_nonblocking(true).unwrap();
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn pages_of_allowed_origins_may_read_responses() {
    let context = Context::new();
    let server = HttpServer::new(&context);
    let preflight = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "authorization,content-type,mcp-session-id",
            ),
        ];
        server.ask("OPTIONS", "/mcp", &headers, "")
    };
    let (status, answer) = preflight("https://pages.example");
    assert_eq!(status, 204, "{answer}");
    for header in [
        "access-control-allow-origin: https://pages.example\r\n",
        "access-control-allow-methods: GET, POST, DELETE\r\n",
        "vary: Origin",
    ] {
        assert!(answer.contains(header), "{answer}");
    }
    let (status, answer) = preflight("https://evil.example");
    assert_eq!(status, 403);
    assert!(!answer.contains("access-control"), "{answer}");
    let bearer = server.bearer();
    for (origin, token) in [
        ("https://pages.example", true),
        ("https://pages.example", false),
        ("\0", true),
    ] {
        let authorization = if token { bearer.as_str() } else { "Bearer x" };
        let headers = [
            ("Origin", origin),
            ("Authorization", authorization),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let (status, answer) = server.ask("POST", "/mcp", &headers, INITIALIZE);
        assert_eq!(status, if token { 200 } else { 401 }, "{answer}");
        let from_page = origin != "\0";
        let allowed = "access-control-allow-origin: https://pages.example\r\n";
        assert_eq!(answer.contains(allowed), from_page, "{answer}");
        let exposed = "access-control-expose-headers: Mcp-Session-Id";
        assert_eq!(answer.contains(exposed), from_page, "{answer}");
        assert!(answer.contains("vary: Origin\r\n"), "{answer}");
    }
    // Without an allowed origin there are no such headers.
    let server = HttpServer::with(&context, &[], &[]);
    let (_, answer) = server.post(None, INITIALIZE);
    assert!(
        !answer.contains("access-control") && !answer.contains("vary"),
        "{answer}"
    );
    for origin in ["*", "null", "pages.example", "https://pages.example/path"] {
        let arguments = ["mcp", "--http", "127.0.0.1:0", "--allow-origin", origin];
        let ran = context.run(&arguments).exits(2);
        assert!(ran.stderr.contains("https://example.org"), "{}", ran.stderr);
    }
}

#[test]
fn invalid_messages_get_errors_with_their_ids() {
    let context = Context::new();
    let server = HttpServer::new(&context);
    let session = server.initialize();
    for (body, id) in [
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","id":8,"method":"#, json!(8)),
    ] {
        let (status, answer) = server.post(Some(&session), body);
        assert_eq!(status, 400, "{answer}");
        assert!(
            answer.contains("content-type: application/json"),
            "{answer}"
        );
        assert_eq!(last_message(&answer)["id"], id, "{answer}");
    }
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let (status, answer) = server.post(Some(&session), batch);
    assert_eq!(status, 400, "{answer}");
    let errors = last_message(&answer);
    assert_eq!((&errors[0]["id"], &errors[1]["id"]), (&json!(1), &json!(2)));
    // Headers are repeated in errors.
    let bearer = server.bearer();
    let long = "x".repeat(100_000);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", long.as_str()),
    ];
    let (status, answer) = server.ask("POST", "/mcp", &headers, INITIALIZE);
    assert_eq!(status, 431, "{answer}");
    assert!(answer.len() < 1000, "{answer}");
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
