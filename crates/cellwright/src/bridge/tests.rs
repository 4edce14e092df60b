//! The door from outside: who gets in, and when.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use cellwright_kernel::StopReason;

/// Sends a request as it is; gives the status and the body.
async fn send(bridge: &Bridge, head: &str, body: &str) -> (u16, Value) {
    let address = bridge.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    // Whoever is refused early may be cut off.
    stream.write_all(request.as_bytes()).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn call(bridge: &Bridge, token: &str, call: Value) -> (u16, Value) {
    let head =
        format!("POST /v1/tool HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}");
    send(bridge, &head, &call.to_string()).await
}

fn door(session: &str) -> Door {
    Door {
        session: session.to_owned(),
        env: Vec::new(),
        cwd: "/".into(),
    }
}

const REFUSED: &str = "`eval` cannot be called from a cell";

/// A call that gets as far as a call can without a verb being run.
fn harmless() -> Value {
    json!({"name": "eval", "args": {}})
}

fn error(answer: &(u16, Value)) -> &str {
    answer.1["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn only_the_right_form_with_the_right_token_comes_in() {
    let bridge = Bridge::start().await.unwrap();
    let pass = bridge.admit(door("a")).unwrap();
    let _open = pass.open(&Stop::never());
    let body = harmless().to_string();
    let bearer = format!("Authorization: Bearer {}", pass.token());
    let post = "POST /v1/tool HTTP/1.1\r\nHost: localhost:1";
    let good = send(&bridge, &format!("{post}\r\n{bearer}"), &body).await;
    assert_eq!(good.0, 200);
    assert!(error(&good).starts_with(REFUSED), "{good:?}");
    let swapped: String = pass.token().chars().rev().collect();
    let short = &pass.token()[1..];
    let cases = [
        (403, post.to_owned()),
        (403, format!("{post}\r\nAuthorization: Bearer ")),
        (403, format!("{post}\r\nAuthorization: Bearer {swapped}")),
        (403, format!("{post}\r\nAuthorization: Bearer {short}")),
        (
            403,
            format!("{post}\r\nAuthorization: Basic {}", pass.token()),
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
        let answer = send(&bridge, &head, &body).await;
        assert_eq!(
            (answer.0, &answer.1["ok"]),
            (status, &json!(false)),
            "{head}"
        );
    }
    for body in [
        "",
        "{",
        "[]",
        "{}",
        "{\"name\": 1}",
        "{\"name\": \"read\", \"args\": []}",
    ] {
        let answer = send(&bridge, &format!("{post}\r\n{bearer}"), body).await;
        assert_eq!(answer.0, 400, "{body}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let bridge = Bridge::start().await.unwrap();
    let pass = bridge.admit(door("a")).unwrap();
    let _open = pass.open(&Stop::never());
    let address = bridge.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let token = pass.token();
    let head = format!(
        "POST /v1/tool HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 99000000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_token_is_good_for_its_own_session_alone_and_while_a_cell_runs() {
    let bridge = Bridge::start().await.unwrap();
    let (one, two) = (
        bridge.admit(door("one")).unwrap(),
        bridge.admit(door("two")).unwrap(),
    );
    assert_ne!(one.token(), two.token());
    let open = two.open(&Stop::never());
    let outside = "no cell of this session is running";
    assert_eq!(
        error(&call(&bridge, one.token(), harmless()).await),
        outside
    );
    assert!(error(&call(&bridge, two.token(), harmless()).await).starts_with(REFUSED));
    let mut named = harmless();
    named["session"] = "two".into();
    let other = call(&bridge, one.token(), named.clone()).await;
    assert_eq!(error(&other), "the token is for another session");
    assert!(error(&call(&bridge, two.token(), named).await).starts_with(REFUSED));
    drop(open);
    assert_eq!(
        error(&call(&bridge, two.token(), harmless()).await),
        outside
    );
    let token = two.token().to_owned();
    drop(two);
    assert_eq!(call(&bridge, &token, harmless()).await.0, 403);
}

#[tokio::test]
async fn a_stop_that_was_pulled_ends_calls() {
    let bridge = Bridge::start().await.unwrap();
    let pass = bridge.admit(door("a")).unwrap();
    let (stopper, stop) = Stop::new();
    let _open = pass.open(&stop);
    stopper.stop(StopReason::Cancelled);
    let answer = call(&bridge, pass.token(), harmless()).await;
    assert_eq!(
        (error(&answer), &answer.1["exit_code"]),
        ("the cell was stopped", &json!(130))
    );
}

#[tokio::test]
async fn an_older_guard_does_not_close_a_newer_cell() {
    let bridge = Bridge::start().await.unwrap();
    let pass = bridge.admit(door("a")).unwrap();
    let older = pass.open(&Stop::never());
    let _newer = pass.open(&Stop::never());
    drop(older);
    assert!(error(&call(&bridge, pass.token(), harmless()).await).starts_with(REFUSED));
}

#[tokio::test]
async fn the_door_closes_with_the_bridge() {
    let bridge = Bridge::start().await.unwrap();
    let address = bridge.url().trim_start_matches("http://").to_owned();
    assert!(TcpStream::connect(&address).await.is_ok());
    drop(bridge);
    for _ in 0..200 {
        if TcpStream::connect(&address).await.is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it is still open");
}
