//! The proxy before a server that returns what it receives.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::Reader;
use super::{Direction, Fault, FaultProxy, Phase, Rule};
use crate::service::Service;

/// A server that answers each request with its method, target and body. After an upgrade it returns all bytes.
struct EchoServer {
    service: Service,
    requests: Arc<AtomicUsize>,
}

impl EchoServer {
    fn start() -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let service = Service::start({
            let requests = Arc::clone(&requests);
            async move |listener| {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(echo(stream, Arc::clone(&requests)));
                }
            }
        });
        Self { service, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn echo(stream: TcpStream, requests: Arc<AtomicUsize>) {
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(read);
    while let Ok(Some(mut head)) = reader.request().await {
        requests.fetch_add(1, Ordering::SeqCst);
        let mut body = format!("{} {} ", head.method, head.target).into_bytes();
        while let Some(piece) = reader.body(&mut head.body).await.unwrap() {
            body.extend(piece);
        }
        if head.upgrade {
            write
                .write_all(b"HTTP/1.1 101 Switching\r\n\r\n")
                .await
                .unwrap();
            loop {
                let data = reader.read().await.unwrap_or_default();
                if data.is_empty() || write.write_all(&data).await.is_err() {
                    return;
                }
            }
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        write.write_all(answer.as_bytes()).await.unwrap();
        write.write_all(&body).await.unwrap();
    }
}

struct Client(TcpStream);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, method: &str, target: &str, rest: &str) {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{rest}");
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Status and body of the next answer.
    async fn receive(&mut self) -> (u16, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.split("Content-Length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body).await.unwrap();
        (
            head[9..12].parse().unwrap(),
            String::from_utf8(body).unwrap(),
        )
    }

    async fn get(&mut self, target: &str) -> (u16, String) {
        self.send("GET", target, "\r\n").await;
        self.receive().await
    }

    /// Opens a WebSocket, without its frames.
    async fn upgrade(&mut self) {
        self.send(
            "GET",
            "/api/kernels/1/channels",
            "Upgrade: websocket\r\n\r\n",
        )
        .await;
        assert_eq!(self.receive().await.0, 101);
    }

    async fn exchange(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
        let mut received = vec![0; text.len()];
        self.0.read_exact(&mut received).await.unwrap();
        assert_eq!(received, text.as_bytes());
    }

    /// Reads until the connection ends.
    async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        match self.0.read_to_end(&mut all).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        all
    }

    /// Whether nothing arrives for a while. The proxy is not slower than that on any machine that matters; a late
    /// answer cannot make a test fail that should pass.
    async fn is_silent(&mut self) -> bool {
        let wait = Duration::from_millis(300);
        tokio::time::timeout(wait, self.0.read_u8()).await.is_err()
    }
}

async fn start() -> (EchoServer, FaultProxy, Client) {
    let server = EchoServer::start();
    let proxy = FaultProxy::start(server.service.address());
    let client = Client::connect(proxy.address()).await;
    (server, proxy, client)
}

#[tokio::test]
async fn traffic_without_rules_is_unchanged() {
    let (server, proxy, mut client) = start().await;
    assert_eq!(client.get("/api").await, (200, "GET /api ".to_owned()));
    client
        .send("POST", "/a", "Content-Length: 5\r\n\r\n12345")
        .await;
    assert_eq!(client.receive().await, (200, "POST /a 12345".to_owned()));
    let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    client.send("POST", "/b", chunked).await;
    let expected = "POST /b 3\r\nabc\r\n0\r\n\r\n".to_owned();
    assert_eq!(client.receive().await, (200, expected));
    client.upgrade().await;
    client.exchange("frames").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"");
    assert_eq!(server.requests(), 4);
    assert_eq!(proxy.connections(), 1);
    let targets: Vec<String> = proxy.requests().iter().map(|r| r.target.clone()).collect();
    assert_eq!(targets, ["/api", "/a", "/b", "/api/kernels/1/channels"]);
    assert!(proxy.requests()[0].head.contains("Host: x"));
    assert_eq!(
        proxy.url("http://localhost:1/x/"),
        format!("http://{}/x/", proxy.address())
    );
}

#[tokio::test]
async fn a_status_replaces_the_answer_once_or_always() {
    let (server, proxy, mut client) = start().await;
    proxy.set([
        Rule::once(Phase::CreateKernel, Fault::Status(500)),
        Rule::always(Phase::Version, Fault::Status(401)),
    ]);
    for expected in [500, 200] {
        client
            .send("POST", "/api/kernels", "Content-Length: 2\r\n\r\n{}")
            .await;
        assert_eq!(client.receive().await.0, expected);
    }
    assert_eq!(client.get("/api").await.0, 401);
    assert_eq!(client.get("/api").await.0, 401);
    assert_eq!(server.requests(), 1);
    proxy.clear();
    assert_eq!(client.get("/api").await.0, 200);
    proxy.set([Rule::once(Phase::Channels, Fault::Status(403))]);
    client
        .send(
            "GET",
            "/api/kernels/1/channels",
            "Upgrade: websocket\r\n\r\n",
        )
        .await;
    assert_eq!(client.receive().await.0, 403);
    client.upgrade().await;
    assert_eq!(proxy.count(&Phase::Channels), 2);
    proxy.wait_for(&Phase::Version, 3).await;
}

#[tokio::test]
async fn nobody_answers() {
    let (server, proxy, mut client) = start().await;
    proxy.set([Rule::once(Phase::Version, Fault::NoAnswer)]);
    client.send("GET", "/api", "\r\n").await;
    assert!(client.is_silent().await);
    assert_eq!(server.requests(), 0);
    let mut other = Client::connect(proxy.address()).await;
    assert_eq!(other.get("/api").await.0, 200);

    proxy.set([Rule::always(Phase::Any, Fault::AcceptOnly)]);
    let mut held = Client::connect(proxy.address()).await;
    held.send("GET", "/api", "\r\n").await;
    assert!(held.is_silent().await);
    assert_eq!(other.get("/api").await.0, 200);
    proxy.cut();
    assert_eq!(held.rest().await, b"");
}

#[tokio::test]
async fn connections_are_cut() {
    let (server, proxy, mut client) = start().await;
    proxy.set([Rule::once(Phase::Version, Fault::CutAfter(12))]);
    client.send("GET", "/api", "\r\n").await;
    assert_eq!(client.rest().await, b"HTTP/1.1 200");
    assert_eq!(server.requests(), 1);

    let mut client = Client::connect(proxy.address()).await;
    client.upgrade().await;
    client.exchange("before").await;
    proxy.set([
        Rule::always(Phase::Any, Fault::CutEvery(Duration::from_millis(50))),
        Rule::always(Phase::Version, Fault::Status(502)),
    ]);
    assert_eq!(client.rest().await, b"");
    let mut next = Client::connect(proxy.address()).await;
    assert_eq!(next.rest().await, b"");
    proxy.set([]);
    let mut last = Client::connect(proxy.address()).await;
    last.upgrade().await;
    assert_eq!(proxy.connections(), 4);
    proxy.cut();
    assert_eq!(last.rest().await, b"");
}

#[tokio::test]
async fn slow_answers_are_complete() {
    let (_server, proxy, mut client) = start().await;
    let interval = Duration::from_millis(1);
    proxy.set([Rule::always(
        Phase::Version,
        Fault::Slow { bytes: 7, interval },
    )]);
    assert_eq!(client.get("/api").await, (200, "GET /api ".to_owned()));
    let interval = Duration::from_hours(1);
    proxy.set([Rule::always(
        Phase::Version,
        Fault::Slow { bytes: 7, interval },
    )]);
    client.send("GET", "/api", "\r\n").await;
    assert!(client.is_silent().await);
    proxy.clear();
    assert_eq!(client.receive().await.0, 200);
}

#[tokio::test]
async fn a_stalled_direction_continues_without_loss() {
    for direction in [Direction::ToClient, Direction::ToServer] {
        let (_server, proxy, mut client) = start().await;
        client.upgrade().await;
        proxy.set([Rule::always(Phase::Channels, Fault::Stall(direction))]);
        client.0.write_all(b"data").await.unwrap();
        assert!(client.is_silent().await);
        proxy.clear();
        let mut received = [0; 4];
        client.0.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"data");
    }
}

#[tokio::test]
async fn one_direction_is_closed_while_the_connection_is_idle() {
    let (_server, proxy, mut client) = start().await;
    client.upgrade().await;
    proxy.set([Rule::always(
        Phase::Channels,
        Fault::HalfClose(Direction::ToClient),
    )]);
    assert_eq!(client.rest().await, b"");
    assert_eq!(proxy.open_connections(), 1);
    // The other direction is open.
    client.0.write_all(b"data").await.unwrap();

    let (_server, proxy, mut client) = start().await;
    client.upgrade().await;
    proxy.set([Rule::always(
        Phase::Channels,
        Fault::HalfClose(Direction::ToServer),
    )]);
    // The server sees the end and closes.
    assert_eq!(client.rest().await, b"");
}
