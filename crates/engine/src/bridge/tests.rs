//! The bridge over HTTP: which requests it accepts, and when.

use cellwright_kernel::StopReason;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// Sends a request. Returns the status and the body.
async fn send(bridge: &Bridge, head: &str, body: &str) -> (u16, Value) {
    let address = bridge.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    // The server may close the connection of a rejected request early.
    stream.write_all(request.as_bytes()).await.ok();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.ok();
    let text = String::from_utf8_lossy(&reply).into_owned();
    let status = text.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn call(bridge: &Bridge, token: &str, call: Value) -> (u16, Value) {
    let head =
        format!("POST /v1/tool HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}");
    send(bridge, &head, &call.to_string()).await
}

fn context(session: &str) -> CallContext {
    CallContext {
        session: session.to_owned(),
        env: Vec::new(),
        cwd: "/".into(),
    }
}

const REFUSED: &str = "`eval` cannot be called from a cell";

/// Rejects every call: these tests are about requests, not about verbs.
fn reject(
    name: &str,
    _named: &Map<String, Value>,
    _positional: &[Value],
) -> Result<BridgeCommand, String> {
    Err(format!("`{name}` cannot be called from a cell"))
}

/// A call that passes all checks of the request and fails before a verb runs.
fn rejected_call() -> Value {
    json!({"name": "eval", "args": {}})
}

fn error(reply: &(u16, Value)) -> &str {
    reply.1["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn only_well_formed_requests_with_a_valid_token_are_accepted() {
    let bridge = Bridge::start(reject).await.unwrap();
    let access = bridge.register(context("a")).unwrap();
    let _cell = access.begin_cell(&StopSignal::never());
    let body = rejected_call().to_string();
    let bearer = format!("Authorization: Bearer {}", access.token());
    let post = "POST /v1/tool HTTP/1.1\r\nHost: localhost:1";
    let good = send(&bridge, &format!("{post}\r\n{bearer}"), &body).await;
    assert_eq!(good.0, 200);
    assert!(error(&good).starts_with(REFUSED), "{good:?}");
    let reversed: String = access.token().chars().rev().collect();
    let short = &access.token()[1..];
    let cases = [
        (403, post.to_owned()),
        (403, format!("{post}\r\nAuthorization: Bearer ")),
        (403, format!("{post}\r\nAuthorization: Bearer {reversed}")),
        (403, format!("{post}\r\nAuthorization: Bearer {short}")),
        (
            403,
            format!("{post}\r\nAuthorization: Basic {}", access.token()),
        ),
        (
            403,
            format!("POST /v1/tool HTTP/1.1\r\nHost: example.org\r\n{bearer}"),
        ),
        (
            403,
            format!("POST /v1/tool HTTP/1.1\r\nHost: 127.0.0.1.example.org:80\r\n{bearer}"),
        ),
        (
            403,
            format!("POST http://example.org/v1/tool HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
        (
            403,
            format!("{post}\r\nOrigin: http://localhost:1\r\n{bearer}"),
        ),
        (
            404,
            format!("GET /v1/tool HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
        (
            404,
            format!("OPTIONS /v1/tool HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
        (
            404,
            format!("POST /v1/tools HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
        (
            404,
            format!("POST / HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
        (
            404,
            format!("POST /v1/../v1/tool HTTP/1.1\r\nHost: localhost\r\n{bearer}"),
        ),
    ];
    for (status, head) in cases {
        let reply = send(&bridge, &head, &body).await;
        assert_eq!((reply.0, &reply.1["ok"]), (status, &json!(false)), "{head}");
    }
    for body in [
        "",
        "{",
        "[]",
        "{}",
        "{\"name\": 1}",
        "{\"name\": \"read\", \"args\": []}",
    ] {
        let reply = send(&bridge, &format!("{post}\r\n{bearer}"), body).await;
        assert_eq!(reply.0, 400, "{body}");
    }
}

#[tokio::test]
async fn connections_without_a_token_do_not_lock_out_calls() {
    let bridge = Bridge::start(reject).await.unwrap();
    let access = bridge.register(context("a")).unwrap();
    let _cell = access.begin_cell(&StopSignal::never());
    let address = bridge.url().trim_start_matches("http://").to_owned();
    let mut others = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let bytes = [
            "",
            "P",
            "POST /v1/tool HTTP/1.1\r\nHost: localhost\r\n",
            "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        ];
        stream
            .write_all(bytes[number % 4].as_bytes())
            .await
            .unwrap();
        others.push(stream);
    }
    let reply = call(&bridge, access.token(), rejected_call()).await;
    assert!(error(&reply).starts_with(REFUSED), "{reply:?}");
    drop(others);
}

#[tokio::test]
async fn an_oversized_body_is_rejected_before_it_is_read() {
    let bridge = Bridge::start(reject).await.unwrap();
    let access = bridge.register(context("a")).unwrap();
    let _cell = access.begin_cell(&StopSignal::never());
    let address = bridge.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let token = access.token();
    let head = format!(
        "POST /v1/tool HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 99000000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_token_is_valid_for_its_session_while_a_cell_runs() {
    let bridge = Bridge::start(reject).await.unwrap();
    let (one, two) = (
        bridge.register(context("one")).unwrap(),
        bridge.register(context("two")).unwrap(),
    );
    assert_ne!(one.token(), two.token());
    let cell = two.begin_cell(&StopSignal::never());
    let no_cell = "no cell of this session is running";
    assert_eq!(
        error(&call(&bridge, one.token(), rejected_call()).await),
        no_cell
    );
    assert!(error(&call(&bridge, two.token(), rejected_call()).await).starts_with(REFUSED));
    let mut named = rejected_call();
    named["session"] = "two".into();
    let other = call(&bridge, one.token(), named.clone()).await;
    assert_eq!(error(&other), "the token is for another session");
    assert!(error(&call(&bridge, two.token(), named).await).starts_with(REFUSED));
    drop(cell);
    assert_eq!(
        error(&call(&bridge, two.token(), rejected_call()).await),
        no_cell
    );
    let token = two.token().to_owned();
    drop(two);
    assert_eq!(call(&bridge, &token, rejected_call()).await.0, 403);
}

#[tokio::test]
async fn a_stop_request_ends_calls() {
    let bridge = Bridge::start(reject).await.unwrap();
    let access = bridge.register(context("a")).unwrap();
    let (stop_handle, stop) = StopSignal::new();
    let _cell = access.begin_cell(&stop);
    stop_handle.stop(StopReason::Cancelled);
    let reply = call(&bridge, access.token(), rejected_call()).await;
    assert_eq!(
        (error(&reply), &reply.1["exit_code"]),
        ("the cell was stopped", &json!(130))
    );
}

#[tokio::test]
async fn dropping_an_older_guard_does_not_end_a_newer_cell() {
    let bridge = Bridge::start(reject).await.unwrap();
    let access = bridge.register(context("a")).unwrap();
    let older = access.begin_cell(&StopSignal::never());
    let _newer = access.begin_cell(&StopSignal::never());
    drop(older);
    assert!(error(&call(&bridge, access.token(), rejected_call()).await).starts_with(REFUSED));
}

#[tokio::test]
async fn the_port_closes_with_the_bridge() {
    let bridge = Bridge::start(reject).await.unwrap();
    let address = bridge.url().trim_start_matches("http://").to_owned();
    assert!(TcpStream::connect(&address).await.is_ok());
    drop(bridge);
    for _ in 0..200 {
        if TcpStream::connect(&address).await.is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the port is still open");
}
