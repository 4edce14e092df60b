//! Which connections stay open, and for how long. Requests with the header `x-token` are authenticated.

use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::loopback::closing;

/// Limits without timeouts that a test could reach.
const PATIENT: ConnectionLimits = ConnectionLimits {
    connections_max: 3,
    head_timeout: Duration::from_hours(1),
    idle_timeout: Duration::from_hours(1),
};

const REJECTED: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const ACCEPTED: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nx-token: yes\r\n\r\n";
const STREAM: &str = "GET /stream HTTP/1.1\r\nHost: localhost\r\nx-token: yes\r\n\r\n";

async fn handle(
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
) -> Response {
    let _request = connection.begin_request();
    if !request.headers().contains_key("x-token") {
        return closing("rejected".into_response());
    }
    connection.set_authenticated();
    if request.uri().path() == "/stream" {
        std::future::pending::<()>().await;
    }
    "accepted".into_response()
}

/// Starts a server. Returns its address and its connections.
async fn serve(limits: ConnectionLimits) -> (SocketAddr, Arc<Connections>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = LimitedListener::new(listener, limits);
    let connections = Arc::clone(&listener.connections);
    let router = Router::new().fallback(handle);
    let service = router.into_make_service_with_connect_info::<ConnectionHandle>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    (address, connections)
}

async fn send(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

/// Reads until the text has arrived. Fails if the connection is closed before.
async fn expect(stream: &mut TcpStream, text: &str) {
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains(text) {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "closed after {received:?}");
        received.extend(&buffer[..count]);
    }
}

/// Waits until the server has closed the connection.
async fn expect_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A connection may be reset.
    stream.read_to_end(&mut rest).await.ok();
}

/// Waits until the server has accepted this number of connections.
async fn wait_for_count(connections: &Connections, count: usize) {
    while connections.count() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_without_a_token_make_room() {
    let (address, connections) = serve(PATIENT).await;
    let mut idle = send(address, "").await;
    wait_for_count(&connections, 1).await;
    let mut slow = send(address, "G").await;
    wait_for_count(&connections, 2).await;
    let mut stream = send(address, STREAM).await;
    wait_for_count(&connections, 3).await;
    // The oldest one first.
    let mut client = send(address, ACCEPTED).await;
    expect(&mut client, "accepted").await;
    expect_end(&mut idle).await;
    let mut other = send(address, ACCEPTED).await;
    expect(&mut other, "accepted").await;
    expect_end(&mut slow).await;
    assert_eq!(connections.count(), 3);
    // Then idle connections that were authenticated.
    let mut third = send(address, ACCEPTED).await;
    expect(&mut third, "accepted").await;
    expect_end(&mut client).await;
    // A response in progress stays.
    drop((other, third));
    wait_for_count(&connections, 1).await;
    let nothing = tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

#[tokio::test]
async fn a_flood_of_silent_connections_does_not_lock_out_clients() {
    let (address, _connections) = serve(PATIENT).await;
    let mut flood = Vec::new();
    for round in 0..20 {
        for bytes in ["", "P", "POST /mcp HTTP/1.1\r\nHost: ", REJECTED] {
            flood.push(send(address, bytes).await);
        }
        let mut client = send(address, ACCEPTED).await;
        expect(&mut client, "accepted").await;
        assert_eq!(flood.len(), (round + 1) * 4);
    }
}

#[tokio::test]
async fn the_connection_of_a_rejected_request_is_closed() {
    let (address, connections) = serve(PATIENT).await;
    let mut rejected = send(address, REJECTED).await;
    expect_end(&mut rejected).await;
    let mut half_closed = send(address, REJECTED).await;
    half_closed.shutdown().await.unwrap();
    expect_end(&mut half_closed).await;
    wait_for_count(&connections, 0).await;
    // Others stay open for the next request.
    let mut client = send(address, ACCEPTED).await;
    expect(&mut client, "accepted").await;
    client.write_all(ACCEPTED.as_bytes()).await.unwrap();
    expect(&mut client, "accepted").await;
}

#[tokio::test]
async fn a_request_head_has_a_time_limit() {
    let limits = ConnectionLimits {
        head_timeout: Duration::from_millis(100),
        ..PATIENT
    };
    let (address, connections) = serve(limits).await;
    let mut silent = send(address, "").await;
    expect_end(&mut silent).await;
    // Single bytes do not extend it.
    let mut slow = TcpStream::connect(address).await.unwrap();
    while slow.write_all(b"G").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    wait_for_count(&connections, 0).await;
}

#[tokio::test]
async fn an_idle_connection_has_a_time_limit_and_a_response_has_none() {
    let limits = ConnectionLimits {
        idle_timeout: Duration::from_millis(100),
        ..PATIENT
    };
    let (address, connections) = serve(limits).await;
    let mut stream = send(address, STREAM).await;
    wait_for_count(&connections, 1).await;
    for _ in 0..3 {
        let mut client = send(address, ACCEPTED).await;
        expect(&mut client, "accepted").await;
        expect_end(&mut client).await;
    }
    wait_for_count(&connections, 1).await;
    let nothing = tokio::time::timeout(Duration::ZERO, stream.read(&mut [0])).await;
    assert!(nothing.is_err(), "{nothing:?}");
}
