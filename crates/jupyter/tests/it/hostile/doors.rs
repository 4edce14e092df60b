//! The same at the doors of a kernel, and at those of a client.

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::link::{self, Heard, Link};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{Options, Server};
use cellwright_jupyter::zmtp::{Endpoint, Incoming, Role};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{announced, frame, greeting, met, opening, signed_bytes, whole};
use crate::support::{request, tcp, within};

async fn serve() -> Server {
    let options = Options {
        handshake: Duration::from_secs(1),
        connections: 1000,
        ..Options::default()
    };
    within(Server::bind(&tcp(), &options)).await.unwrap()
}

async fn raw(server: &Server, channel: Channel) -> TcpStream {
    let Endpoint::Tcp { host, port } = server.connection().endpoint(channel) else {
        panic!("it is over TCP");
    };
    TcpStream::connect((host, port)).await.unwrap()
}

/// That a good client is served as ever, and nothing else was heard before.
async fn serves(server: &mut Server) {
    let mut link = Link::open(server.connection(), &link::Options::default()).unwrap();
    let asked = Message::new("asked", "s", &json!({}));
    link.send(Channel::Shell, &asked);
    let (_, came) = request(server).await;
    assert_eq!(came.header.msg_id, asked.header.msg_id);
    server
        .reply(Channel::Shell, &came, "answer", &json!({}))
        .unwrap();
    crate::support::message(&mut link, Channel::Shell).await;
}

#[tokio::test]
async fn a_session_that_ends_at_any_byte_leaves_nothing_behind() {
    let opening = opening("DEALER");
    let session = [opening.clone(), signed_bytes("whole")].concat();
    let mut server = serve().await;
    for end in 0..session.len() {
        let mut stream = raw(&server, Channel::Shell).await;
        stream.write_all(&session[..end]).await.unwrap();
    }
    serves(&mut server).await;
    assert_eq!(
        server.counts().refused,
        0,
        "half a message was taken for one"
    );
    // All of it is one message.
    let mut stream = raw(&server, Channel::Shell).await;
    stream.write_all(&session).await.unwrap();
    assert_eq!(request(&mut server).await.1.header.msg_type, "whole");
    // And so it is for whoever connects to somebody else.
    let session = [super::opening("ROUTER"), signed_bytes("whole")].concat();
    for end in opening.len()..session.len() {
        let mut peer = met(Role::Dealer, &session[..end]).await.unwrap();
        let came = within(peer.reader.next()).await;
        assert!(matches!(came, Ok(None) | Err(_)), "{end}: {came:?}");
    }
    let mut peer = met(Role::Dealer, &session).await.unwrap();
    let came = within(peer.reader.next()).await.unwrap();
    assert!(matches!(came, Some(Incoming::Message(_))), "{came:?}");
}

#[tokio::test]
async fn a_session_may_come_byte_by_byte() {
    let options = Options::default();
    let mut server = within(Server::bind(&tcp(), &options)).await.unwrap();
    let session = [opening("DEALER"), signed_bytes("slow")].concat();
    let mut stream = raw(&server, Channel::Shell).await;
    stream.set_nodelay(true).unwrap();
    for byte in session {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(request(&mut server).await.1.header.msg_type, "slow");
}

#[tokio::test]
async fn who_falls_silent_while_greeting_is_sent_away() {
    let server = serve().await;
    let opening = opening("DEALER");
    let mut silent = Vec::new();
    for end in 0..opening.len() {
        let mut stream = raw(&server, Channel::Shell).await;
        stream.write_all(&opening[..end]).await.ok();
        silent.push(stream);
    }
    for mut stream in silent {
        let mut said = Vec::new();
        within(stream.read_to_end(&mut said)).await.ok();
        assert!(said.starts_with(&[0xff]), "{said:?}");
    }
    // It is counted just after it is sent away.
    within(async {
        while server.counts().strangers < opening.len() as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn no_client_can_bring_a_kernel_down() {
    let many = vec![Bytes::from_static(b"x"); 70_000];
    let kinds = |channel| match channel {
        Channel::Iopub => "SUB",
        Channel::Heartbeat => "REQ",
        _ => "DEALER",
    };
    let mut server = serve().await;
    for channel in [
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
        Channel::Heartbeat,
    ] {
        let opening = opening(kinds(channel));
        let after = |bytes: Vec<u8>| [opening.clone(), bytes].concat();
        let hostile = [
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curious, and long enough\r\n\r\n"
                .to_vec(),
            [greeting(), frame(4, b"\x05ERROR\x02no")].concat(),
            after(announced(0, 1 << 63)),
            after(announced(0, 1 << 40)),
            after(announced(1, (256 << 20) + 1)),
            after(whole(&many)),
            after(vec![0xf8; 100]),
            after(frame(4, b"")),
            after(frame(4, b"\x09SUBSCRIBE")),
            after(frame(4, b"\x06CANCEL")),
            after(frame(0, b"")),
            after(frame(0, b"\x02")),
            after(whole(&[Bytes::from_static(b"<IDS|MSG>")])),
            after(frame(4, b"\x04PING").repeat(1000)),
        ];
        for bytes in hostile {
            let mut stream = raw(&server, channel).await;
            // It may hang up before we are through.
            stream.write_all(&bytes).await.ok();
            stream.shutdown().await.ok();
            let mut said = Vec::new();
            within(stream.read_to_end(&mut said)).await.ok();
        }
    }
    serves(&mut server).await;
    assert!(server.counts().strangers > 0);
}

/// A kernel that says that, and no more, to whoever connects to its shell.
async fn says(bytes: Vec<u8>) -> (Connection, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection = tcp();
    connection.ports.shell = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&bytes).await.ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.ok();
    });
    (connection, task)
}

#[tokio::test]
async fn a_client_hears_what_is_wrong_with_its_kernel() {
    let after = |bytes: Vec<u8>| [opening("ROUTER"), bytes].concat();
    let hostile = [
        (false, vec![b'x'; 100]),
        (false, opening("PUB")),
        (false, [greeting(), frame(4, b"\x05ERROR\x02no")].concat()),
        (true, after(announced(0, 1 << 63))),
        (true, after(vec![0xff; 10])),
        (true, after(frame(4, b""))),
    ];
    for (opens, bytes) in hostile {
        let (connection, task) = says(bytes).await;
        let mut link = Link::open(&connection, &link::Options::default()).unwrap();
        if opens {
            let opened = within(link.next()).await;
            assert!(matches!(opened, Heard::Open(Channel::Shell)), "{opened:?}");
        }
        let closed = within(link.next()).await;
        let expected = matches!(closed, Heard::Closed(Channel::Shell, Some(_)));
        assert!(expected, "{closed:?}");
        drop(link);
        within(task).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_refuses_what_is_not_signed_and_hears_what_follows() {
    let no_delimiter = frame(0, b"x");
    let bytes = [opening("ROUTER"), no_delimiter, signed_bytes("good")].concat();
    let (connection, _task) = says(bytes).await;
    let mut link = Link::open(&connection, &link::Options::default()).unwrap();
    within(link.next()).await;
    let refused = within(link.next()).await;
    assert!(
        matches!(refused, Heard::Refused(Channel::Shell, _)),
        "{refused:?}"
    );
    let came = crate::support::message(&mut link, Channel::Shell).await;
    assert_eq!(came.header.msg_type, "good");
}

#[tokio::test]
async fn a_link_to_a_kernel_that_says_nothing_closes_all_the_same() {
    let (connection, _task) = says(Vec::new()).await;
    let link = Link::open(&connection, &link::Options::default()).unwrap();
    link.send(Channel::Shell, &Message::new("asked", "s", &json!({})));
    within(link.close()).await;
}
