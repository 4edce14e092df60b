//! MCP sessions over HTTP: how many there are, and when they and their kernels end.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::http_server::{HttpServer, INITIALIZE, last_message};
use crate::context::Context;

const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

/// Code that prints the id of its process.
const PRINT_PID: &str = "import os; print('pid', os.getpid())";

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}");
}

/// Runs code in a session. Returns the id of its kernel's process.
fn kernel_pid(server: &HttpServer, session: &str) -> u32 {
    let text = server.eval(session, PRINT_PID);
    let pid = text
        .split("pid ")
        .nth(1)
        .unwrap_or_else(|| panic!("{text}"));
    let end = pid.find(|c: char| !c.is_ascii_digit()).unwrap_or(pid.len());
    pid[..end].parse().unwrap()
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether the session exists.
fn exists(server: &HttpServer, session: &str) -> bool {
    match server.post(Some(session), LIST_TOOLS) {
        (200, _) => true,
        (404, _) => false,
        (_, answer) => panic!("{answer}"),
    }
}

/// Starts a call in a session and closes the connection when its code runs.
fn abandon_call(context: &Context, server: &HttpServer, session: &str) {
    let started = context.path("started");
    let code = format!(
        "import os, time\nopen({started:?}, 'w').close()\nwhile not os.path.exists({go:?}): time.sleep(0.02)",
        started = started.to_str().unwrap(),
        go = context.path("go").to_str().unwrap(),
    );
    let params = json!({"name": "eval", "arguments": {"code": code, "timeout": 0}});
    let body = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": params});
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        server.bearer(),
        body.len(),
    );
    let mut connection = TcpStream::connect(&server.address).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    wait_until("the code runs", || started.exists());
}

#[test]
fn a_session_that_is_not_used_ends_with_its_kernels() {
    let context = Context::new();
    let server = HttpServer::with(&context, &[], &[("CELLWRIGHT_MCP_HTTP_IDLE", "1")]);
    let with_stream = server.initialize();
    let stream = server.open_stream(&with_stream);
    let with_call = server.initialize();
    abandon_call(&context, &server, &with_call);
    // All others have not been used for a longer time.
    let unused = server.initialize();
    let pid = kernel_pid(&server, &unused);
    wait_until("the kernel ends", || !is_running(pid));
    wait_until("the session ends", || !exists(&server, &unused));
    assert!(exists(&server, &with_stream));
    assert!(exists(&server, &with_call));
    context.file("go", "");
    drop(stream);
}

#[test]
fn a_new_session_ends_the_one_that_was_not_used_longest() {
    let context = Context::new();
    let server = HttpServer::with(&context, &[], &[("CELLWRIGHT_MCP_HTTP_SESSIONS", "2")]);
    // A client that connects again and again without ending its sessions.
    for _ in 0..20 {
        server.initialize();
    }
    let first = server.initialize();
    let pid = kernel_pid(&server, &first);
    let second = server.initialize();
    let third = server.initialize();
    assert!(!exists(&server, &first));
    wait_until("the kernel ends", || !is_running(pid));
    // Sessions with open streams do not make room.
    let streams = [server.open_stream(&second), server.open_stream(&third)];
    let (status, answer) = server.post(None, INITIALIZE);
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("retry-after: "), "{answer}");
    let error = last_message(&answer);
    assert_eq!(error["id"], 1, "{error}");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("`mcp.http_sessions`"), "{message}");
    assert!(exists(&server, &second) && exists(&server, &third));
    let [stream, _other] = streams;
    drop(stream);
    wait_until("there is room", || server.post(None, INITIALIZE).0 == 200);
    assert!(!exists(&server, &second) && exists(&server, &third));
}

#[test]
fn the_limit_on_kernels_holds_for_all_clients_together() {
    let context = Context::new();
    let server = HttpServer::with(&context, &[], &[("CELLWRIGHT_SESSIONS_MAX", "2")]);
    let clients = [(); 3].map(|()| server.initialize());
    let pids = clients
        .each_ref()
        .map(|session| kernel_pid(&server, session));
    wait_until("the first kernel ends", || !is_running(pids[0]));
    assert!(is_running(pids[1]) && is_running(pids[2]));
    let text = server.eval(&clients[0], "1 + 1");
    assert!(text.contains("notice"), "{text}");
    wait_until("the second kernel ends", || !is_running(pids[1]));
}

#[test]
fn sessions_that_ended_leave_neither_threads_nor_descriptors() {
    let context = Context::new();
    let server = HttpServer::with(&context, &[], &[("CELLWRIGHT_MCP_HTTP_SESSIONS", "4")]);
    let count = |what: &str| {
        let dir = format!("/proc/{}/{what}", server.pid());
        std::fs::read_dir(dir).unwrap().count()
    };
    for _ in 0..8 {
        server.initialize();
    }
    let (threads, descriptors) = (count("task"), count("fd"));
    for _ in 0..60 {
        server.initialize();
    }
    wait_until("threads and descriptors are released", || {
        count("task") <= threads + 8 && count("fd") <= descriptors + 16
    });
}
