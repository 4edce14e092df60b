//! Misbehaving clients of a [`Server`], and misbehaving kernels of a [`KernelClient`].

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::client::{self, ClientEvent, KernelClient};
use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{Server, ServerOptions};
use cellwright_jupyter::zmtp::{Endpoint, ReceivedItem, SocketType};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{encode_frames, frame, frame_header, greeting, handshake_with, opening, signed_bytes};
use crate::support::{next_request, tcp, within};

async fn start_server() -> Server {
    let options = ServerOptions {
        handshake_timeout: Duration::from_secs(1),
        max_connections: 1000,
        ..ServerOptions::default()
    };
    within(Server::bind(&tcp(), &options)).await.unwrap()
}

async fn raw_stream(server: &Server, channel: Channel) -> TcpStream {
    let Endpoint::Tcp { host, port } = server.connection().endpoint(channel) else {
        panic!("not TCP");
    };
    TcpStream::connect((host, port)).await.unwrap()
}

/// Checks that a valid client is served, and that its request is the first event.
async fn check_serves(server: &mut Server) {
    let mut client =
        KernelClient::open(server.connection(), &client::ClientOptions::default()).unwrap();
    let sent = Message::new("request", "s", &json!({}));
    client.send(Channel::Shell, &sent);
    let (_, received) = next_request(server).await;
    assert_eq!(received.header.msg_id, sent.header.msg_id);
    server
        .reply(Channel::Shell, &received, "answer", &json!({}))
        .unwrap();
    crate::support::next_message(&mut client, Channel::Shell).await;
}

#[tokio::test]
async fn a_connection_that_ends_at_any_byte_has_no_effect() {
    let opening = opening("DEALER");
    let session = [opening.clone(), signed_bytes("whole")].concat();
    let mut server = start_server().await;
    for end in 0..session.len() {
        let mut stream = raw_stream(&server, Channel::Shell).await;
        stream.write_all(&session[..end]).await.unwrap();
    }
    check_serves(&mut server).await;
    assert_eq!(
        server.counts().invalid_messages,
        0,
        "a partial message was decoded"
    );
    // The whole is one message.
    let mut stream = raw_stream(&server, Channel::Shell).await;
    stream.write_all(&session).await.unwrap();
    assert_eq!(next_request(&mut server).await.1.header.msg_type, "whole");
    // The same for a client's connection.
    let session = [super::opening("ROUTER"), signed_bytes("whole")].concat();
    for end in opening.len()..session.len() {
        let mut peer = handshake_with(SocketType::Dealer, &session[..end])
            .await
            .unwrap();
        let incoming = within(peer.reader.next()).await;
        assert!(matches!(incoming, Ok(None) | Err(_)), "{end}: {incoming:?}");
    }
    let mut peer = handshake_with(SocketType::Dealer, &session).await.unwrap();
    let incoming = within(peer.reader.next()).await.unwrap();
    assert!(
        matches!(incoming, Some(ReceivedItem::Message(_))),
        "{incoming:?}"
    );
}

#[tokio::test]
async fn a_connection_may_arrive_byte_by_byte() {
    let options = ServerOptions::default();
    let mut server = within(Server::bind(&tcp(), &options)).await.unwrap();
    let session = [opening("DEALER"), signed_bytes("slow")].concat();
    let mut stream = raw_stream(&server, Channel::Shell).await;
    stream.set_nodelay(true).unwrap();
    for byte in session {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(next_request(&mut server).await.1.header.msg_type, "slow");
}

#[tokio::test]
async fn an_incomplete_handshake_times_out() {
    let server = start_server().await;
    let opening = opening("DEALER");
    let mut silent = Vec::new();
    for end in 0..opening.len() {
        let mut stream = raw_stream(&server, Channel::Shell).await;
        stream.write_all(&opening[..end]).await.ok();
        silent.push(stream);
    }
    for mut stream in silent {
        let mut received = Vec::new();
        within(stream.read_to_end(&mut received)).await.ok();
        assert!(received.starts_with(&[0xff]), "{received:?}");
    }
    // The count follows the disconnect.
    within(async {
        while server.counts().failed_handshakes < opening.len() as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn no_client_can_crash_a_server() {
    let many = vec![Bytes::from_static(b"x"); 70_000];
    let socket_type = |channel| match channel {
        Channel::Iopub => "SUB",
        Channel::Heartbeat => "REQ",
        _ => "DEALER",
    };
    let mut server = start_server().await;
    for channel in [
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
        Channel::Heartbeat,
    ] {
        let opening = opening(socket_type(channel));
        let after = |bytes: Vec<u8>| [opening.clone(), bytes].concat();
        let hostile = [
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curious, and long enough\r\n\r\n"
                .to_vec(),
            [greeting(), frame(4, b"\x05ERROR\x02no")].concat(),
            after(frame_header(0, 1 << 63)),
            after(frame_header(0, 1 << 40)),
            after(frame_header(1, (256 << 20) + 1)),
            after(encode_frames(&many)),
            after(vec![0xf8; 100]),
            after(frame(4, b"")),
            after(frame(4, b"\x09SUBSCRIBE")),
            after(frame(4, b"\x06CANCEL")),
            after(frame(0, b"")),
            after(frame(0, b"\x02")),
            after(encode_frames(&[Bytes::from_static(b"<IDS|MSG>")])),
            after(frame(4, b"\x04PING").repeat(1000)),
        ];
        for bytes in hostile {
            let mut stream = raw_stream(&server, channel).await;
            // The server may disconnect before all bytes are written.
            stream.write_all(&bytes).await.ok();
            stream.shutdown().await.ok();
            let mut received = Vec::new();
            within(stream.read_to_end(&mut received)).await.ok();
        }
    }
    check_serves(&mut server).await;
    assert!(server.counts().failed_handshakes > 0);
}

/// A kernel that sends these bytes to the first client of its shell.
async fn fake_kernel(bytes: Vec<u8>) -> (Connection, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection = tcp();
    connection.ports.shell = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&bytes).await.ok();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.ok();
    });
    (connection, task)
}

#[tokio::test]
async fn a_client_reports_the_violation_of_its_kernel() {
    let after = |bytes: Vec<u8>| [opening("ROUTER"), bytes].concat();
    let hostile = [
        (false, vec![b'x'; 100]),
        (false, opening("PUB")),
        (false, [greeting(), frame(4, b"\x05ERROR\x02no")].concat()),
        (true, after(frame_header(0, 1 << 63))),
        (true, after(vec![0xff; 10])),
        (true, after(frame(4, b""))),
    ];
    for (opens, bytes) in hostile {
        let (connection, task) = fake_kernel(bytes).await;
        let mut client =
            KernelClient::open(&connection, &client::ClientOptions::default()).unwrap();
        if opens {
            let opened = within(client.next()).await;
            assert!(
                matches!(opened, ClientEvent::Opened(Channel::Shell)),
                "{opened:?}"
            );
        }
        let closed = within(client.next()).await;
        let expected = matches!(closed, ClientEvent::Closed(Channel::Shell, Some(_)));
        assert!(expected, "{closed:?}");
        drop(client);
        within(task).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_rejects_an_unsigned_message_and_reads_the_next() {
    let no_delimiter = frame(0, b"x");
    let bytes = [opening("ROUTER"), no_delimiter, signed_bytes("good")].concat();
    let (connection, _task) = fake_kernel(bytes).await;
    let mut client = KernelClient::open(&connection, &client::ClientOptions::default()).unwrap();
    within(client.next()).await;
    let rejected = within(client.next()).await;
    assert!(
        matches!(rejected, ClientEvent::Rejected(Channel::Shell, _)),
        "{rejected:?}"
    );
    let received = crate::support::next_message(&mut client, Channel::Shell).await;
    assert_eq!(received.header.msg_type, "good");
}

#[tokio::test]
async fn a_client_of_a_silent_kernel_closes() {
    let (connection, _task) = fake_kernel(Vec::new()).await;
    let client = KernelClient::open(&connection, &client::ClientOptions::default()).unwrap();
    client.send(Channel::Shell, &Message::new("request", "s", &json!({})));
    within(client.close()).await;
}
