//! [`Server`] with well-behaved and misbehaving clients.

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::codec::MessageCodec;
use cellwright_jupyter::connection::{Channel, Transport};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{Server, ServerEvent, ServerOptions};
use cellwright_jupyter::zmtp::{self, Endpoint, Limits, Peer, ReceivedItem, SocketType, Stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{KEY, ipc, next_request, tcp, within};

async fn start_server(options: ServerOptions) -> Server {
    within(Server::bind(&tcp(), &options)).await.unwrap()
}

async fn client(
    server: &Server,
    channel: Channel,
    socket_type: SocketType,
    identity: &str,
) -> Peer {
    let endpoint = server.connection().endpoint(channel);
    let peer = zmtp::connect(
        &endpoint,
        socket_type,
        identity.as_bytes(),
        Limits::default(),
    );
    within(peer).await.unwrap()
}

async fn subscriber(server: &Server) -> Peer {
    client(server, Channel::Iopub, SocketType::Sub, "").await
}

async fn raw_stream(server: &Server, channel: Channel) -> TcpStream {
    let Endpoint::Tcp { host, port } = server.connection().endpoint(channel) else {
        panic!("not TCP");
    };
    TcpStream::connect((host, port)).await.unwrap()
}

/// The frames of the next message.
async fn next_frames(peer: &mut Peer) -> Vec<Bytes> {
    match within(peer.reader.next()).await.unwrap() {
        Some(ReceivedItem::Message(frames)) => frames,
        other => panic!("not a message: {other:?}"),
    }
}

async fn next_message(peer: &mut Peer) -> Message {
    MessageCodec::new(KEY)
        .decode(next_frames(peer).await)
        .unwrap()
}

/// Whether the server closes the connection.
async fn ends_connection(mut peer: Peer) -> bool {
    within(async {
        loop {
            match peer.reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return true,
            }
        }
    })
    .await
}

fn signed(msg_type: &str) -> Vec<Bytes> {
    MessageCodec::new(KEY).encode(&Message::new(msg_type, "s", &json!({})))
}

fn topic_message(topic: &str, number: usize) -> Message {
    let mut message = Message::new("published", "s", &json!({ "number": number }));
    message.identities.push(Bytes::from(topic.to_owned()));
    message
}

async fn wait_until(mut done: impl FnMut() -> bool) {
    within(async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_gets_one_welcome_and_the_messages_of_each_topic() {
    let server = start_server(ServerOptions::default()).await;
    let mut one = subscriber(&server).await;
    // A subscription is a message (ZMTP 3.0) or a command (3.1).
    let message = |bytes: &'static [u8]| [Bytes::from_static(bytes)];
    one.writer.send(&message(b"\x01stream.")).await.unwrap();
    one.writer
        .send_command("SUBSCRIBE", b"status")
        .await
        .unwrap();
    one.writer.send(&message(b"\x01stream.")).await.unwrap();
    for topic in ["stream.", "status"] {
        let welcome = next_message(&mut one).await;
        assert_eq!(welcome.header.msg_type, "iopub_welcome");
        assert_eq!(welcome.identities, [topic]);
        assert_eq!(welcome.value(), json!({ "subscription": topic }));
    }
    for topic in ["stream.a", "stream", "status", "strea", "other"] {
        server.publish(&topic_message(topic, 0));
    }
    for topic in ["stream.a", "status"] {
        assert_eq!(next_message(&mut one).await.identities, [topic]);
    }
    // Cancelled, in both forms; the next welcome shows that the server has handled it.
    one.writer.send(&message(b"\x00stream.")).await.unwrap();
    one.writer.send_command("CANCEL", b"status").await.unwrap();
    one.writer.send_command("SUBSCRIBE", b"end").await.unwrap();
    assert_eq!(next_message(&mut one).await.identities, ["end"]);
    for topic in ["stream.a", "status", "end"] {
        server.publish(&topic_message(topic, 0));
    }
    assert_eq!(next_message(&mut one).await.identities, ["end"]);
}

#[tokio::test]
async fn a_ping_is_answered_on_every_channel() {
    let server = start_server(ServerOptions::default()).await;
    for (channel, socket_type) in [
        (Channel::Shell, SocketType::Dealer),
        (Channel::Iopub, SocketType::Sub),
        (Channel::Heartbeat, SocketType::Req),
    ] {
        let mut peer = client(&server, channel, socket_type, "").await;
        peer.writer
            .send_command("PING", b"\0\x10who")
            .await
            .unwrap();
        let pong = within(peer.reader.next()).await.unwrap();
        let expected = ReceivedItem::Command("PONG".into(), "who".into());
        assert_eq!(pong, Some(expected));
        // A truncated PING must not break the connection.
        peer.writer.send_command("PING", b"\0").await.unwrap();
        let pong = within(peer.reader.next()).await.unwrap();
        assert_eq!(pong, Some(ReceivedItem::Command("PONG".into(), "".into())));
    }
}

#[tokio::test]
async fn the_heartbeat_answers_while_the_kernel_takes_no_requests() {
    let server = start_server(ServerOptions::default()).await;
    let mut flood = client(&server, Channel::Shell, SocketType::Dealer, "").await;
    // More requests than the server queues.
    let sends = async {
        loop {
            flood.writer.send(&signed("flood")).await.unwrap();
        }
    };
    let heartbeats = async {
        for number in 0..20 {
            let mut heartbeat = client(&server, Channel::Heartbeat, SocketType::Req, "").await;
            let ping = vec![Bytes::new(), Bytes::from(format!("ping {number}"))];
            heartbeat.writer.send(&ping).await.unwrap();
            assert_eq!(next_frames(&mut heartbeat).await, ping);
        }
    };
    tokio::select! {
        () = sends => panic!("the flood has ended"),
        () = heartbeats => {}
    }
}

#[tokio::test]
async fn requests_on_control_overtake_those_on_shell() {
    let mut server = start_server(ServerOptions::default()).await;
    let mut shell = client(&server, Channel::Shell, SocketType::Dealer, "").await;
    for _ in 0..10 {
        shell.writer.send(&signed("execute_request")).await.unwrap();
    }
    // The first has arrived, so the others arrive at once.
    assert_eq!(next_request(&mut server).await.0, Channel::Shell);
    let mut control = client(&server, Channel::Control, SocketType::Dealer, "").await;
    control
        .writer
        .send(&signed("interrupt_request"))
        .await
        .unwrap();
    control.writer.send_command("PING", b"\0\0").await.unwrap();
    within(control.reader.next()).await.unwrap();
    // It has arrived, and nine others wait.
    assert_eq!(next_request(&mut server).await.0, Channel::Control);
    for _ in 0..9 {
        assert_eq!(next_request(&mut server).await.0, Channel::Shell);
    }
}

#[tokio::test]
async fn replies_go_to_the_client_of_the_request() {
    let mut server = start_server(ServerOptions::default()).await;
    let mut clients = Vec::new();
    for identity in ["", "", "named", "other"] {
        clients.push(client(&server, Channel::Shell, SocketType::Dealer, identity).await);
    }
    // An old client, which sends an empty frame first.
    clients.push(client(&server, Channel::Shell, SocketType::Req, "").await);
    let mut request_ids = Vec::new();
    for (number, peer) in clients.iter_mut().enumerate() {
        let mut message = Message::new("ask", "s", &json!({ "number": number }));
        if number == 4 {
            message.identities.push(Bytes::new());
        }
        peer.writer
            .send(&MessageCodec::new(KEY).encode(&message))
            .await
            .unwrap();
        request_ids.push(message.header.msg_id);
    }
    for _ in 0..clients.len() {
        let (channel, request) = next_request(&mut server).await;
        server
            .reply(channel, &request, "answer", &request.value())
            .unwrap();
    }
    for (number, peer) in clients.iter_mut().enumerate() {
        let reply = next_message(peer).await;
        assert_eq!(reply.value()["number"], number);
        assert_eq!(reply.parent_id(), request_ids[number]);
        assert_eq!(reply.identities.len(), usize::from(number == 4));
    }
}

#[tokio::test]
async fn a_client_that_reconnects_replaces_its_earlier_connection() {
    let mut server = start_server(ServerOptions::default()).await;
    let mut before = client(&server, Channel::Shell, SocketType::Dealer, "me").await;
    before.writer.send(&signed("first")).await.unwrap();
    let (_, first) = next_request(&mut server).await;
    let mut after = client(&server, Channel::Shell, SocketType::Dealer, "me").await;
    assert!(ends_connection(before).await);
    server
        .reply(Channel::Shell, &first, "reply", &json!({}))
        .unwrap();
    assert_eq!(next_message(&mut after).await.header.msg_type, "reply");
    // The end of the old connection does not remove the new one.
    after.writer.send(&signed("second")).await.unwrap();
    let (_, second) = next_request(&mut server).await;
    server
        .reply(Channel::Shell, &second, "reply", &json!({}))
        .unwrap();
    next_message(&mut after).await;
    drop(after);
    wait_until(|| {
        server
            .reply(Channel::Shell, &second, "reply", &json!({}))
            .is_err()
    })
    .await;
    assert_eq!(
        server.counts().disconnected_clients,
        0,
        "no client misbehaved"
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_the_others_miss_nothing() {
    let options = ServerOptions {
        queue_bytes: 1 << 20,
        ..ServerOptions::default()
    };
    let mut server = start_server(options).await;
    let mut stuck = subscriber(&server).await;
    let mut good = subscriber(&server).await;
    for peer in [&mut stuck, &mut good] {
        peer.writer.send_command("SUBSCRIBE", b"").await.unwrap();
        next_message(peer).await;
    }
    let mut number = 0;
    // Until the buffers of the system and the server's queue are full.
    while server.counts().disconnected_clients == 0 {
        let mut message = topic_message("t", number);
        message.buffers.push(Frame::from(vec![0; 100_000]));
        server.publish(&message);
        assert_eq!(next_message(&mut good).await.value()["number"], number);
        number += 1;
        assert!(number < 10_000, "no client was disconnected");
    }
    let event = within(server.next()).await;
    assert!(
        matches!(event, ServerEvent::Disconnected(Channel::Iopub, _)),
        "{event:?}"
    );
    // The messages that it still gets have no gaps.
    let mut expected = 0;
    while let Ok(Some(ReceivedItem::Message(frames))) = within(stuck.reader.next()).await {
        let message = MessageCodec::new(KEY).decode(frames).unwrap();
        assert_eq!(message.value()["number"], expected);
        expected += 1;
    }
    assert!(expected < number, "it was disconnected before the last");
    server.publish(&topic_message("t", number));
    assert_eq!(next_message(&mut good).await.value()["number"], number);
    assert_eq!(server.counts().disconnected_clients, 1);
}

#[tokio::test]
async fn a_single_message_may_be_larger_than_the_queue() {
    let options = ServerOptions {
        queue_bytes: 1000,
        ..ServerOptions::default()
    };
    let server = start_server(options).await;
    let mut peer = subscriber(&server).await;
    peer.writer.send_command("SUBSCRIBE", b"").await.unwrap();
    next_message(&mut peer).await;
    let mut message = topic_message("t", 0);
    message.buffers.push(Frame::from(vec![0; 100_000]));
    server.publish(&message);
    assert_eq!(next_message(&mut peer).await.buffers[0].size(), 100_000);
}

#[tokio::test]
async fn only_signed_and_new_messages_are_accepted() {
    let mut server = start_server(ServerOptions::default()).await;
    let mut peer = client(&server, Channel::Shell, SocketType::Dealer, "").await;
    let good = signed("good");
    let mut forged = signed("forged");
    forged[1] = Bytes::from(vec![b'0'; 64]);
    let mut unsigned = signed("unsigned");
    unsigned[1] = Bytes::new();
    let other_key = MessageCodec::new("another").encode(&Message::new("other", "s", &json!({})));
    let garbage = vec![Bytes::from_static(b"garbage")];
    let last = signed("last");
    for frames in [
        &forged, &good, &unsigned, &good, &other_key, &garbage, &last,
    ] {
        peer.writer.send(frames).await.unwrap();
    }
    assert_eq!(next_request(&mut server).await.1.header.msg_type, "good");
    assert_eq!(next_request(&mut server).await.1.header.msg_type, "last");
    assert_eq!(server.counts().invalid_messages, 5);
}

#[tokio::test]
async fn clients_without_a_handshake_do_not_use_up_the_connections() {
    let options = ServerOptions {
        max_connections: 3,
        handshake_timeout: Duration::from_secs(2),
        ..ServerOptions::default()
    };
    let server = start_server(options).await;
    // These send an incomplete handshake and are disconnected for it.
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut stream = raw_stream(&server, Channel::Shell).await;
        stream.write_all(&[0xff, 0, 0]).await.unwrap();
        silent.push(stream);
    }
    let mut rest = Vec::new();
    let mut late = raw_stream(&server, Channel::Shell).await;
    // No client is accepted now.
    within(late.read_to_end(&mut rest)).await.ok();
    wait_until(|| server.counts().rejected_connections >= 1).await;
    for mut stream in silent {
        let mut rest = Vec::new();
        within(stream.read_to_end(&mut rest)).await.ok();
    }
    wait_until(|| server.counts().failed_handshakes == 3).await;
    // Now there is room again.
    let mut peer = client(&server, Channel::Shell, SocketType::Dealer, "").await;
    peer.writer.send_command("PING", b"\0\0").await.unwrap();
    within(peer.reader.next()).await.unwrap().unwrap();
}

#[tokio::test]
async fn subscriptions_are_limited() {
    let mut server = start_server(ServerOptions::default()).await;
    let mut many = subscriber(&server).await;
    for number in 0..2000 {
        let topic = format!("topic {number}");
        if many
            .writer
            .send_command("SUBSCRIBE", topic.as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    assert!(ends_connection(many).await);
    assert!(matches!(
        within(server.next()).await,
        ServerEvent::Disconnected(Channel::Iopub, _)
    ));
    let mut long = subscriber(&server).await;
    long.writer
        .send_command("SUBSCRIBE", &[b'x'; 5000])
        .await
        .unwrap();
    assert!(ends_connection(long).await);
    assert!(matches!(
        within(server.next()).await,
        ServerEvent::Disconnected(Channel::Iopub, _)
    ));
}

#[tokio::test]
async fn sockets_of_the_wrong_type_are_rejected() {
    let server = start_server(ServerOptions::default()).await;
    for (channel, socket_type) in [
        (Channel::Shell, SocketType::Sub),
        (Channel::Iopub, SocketType::Dealer),
        (Channel::Heartbeat, SocketType::Sub),
    ] {
        let endpoint = server.connection().endpoint(channel);
        let stream = Stream::connect(&endpoint).await.unwrap();
        // Either side may notice first.
        if let Ok(peer) = within(zmtp::handshake(stream, socket_type, &[], Limits::default())).await
        {
            assert!(ends_connection(peer).await);
        }
    }
    wait_until(|| server.counts().failed_handshakes == 3).await;
}

#[tokio::test]
async fn a_dropped_server_disconnects_at_once() {
    let server = start_server(ServerOptions::default()).await;
    let peer = subscriber(&server).await;
    drop(server);
    assert!(ends_connection(peer).await);
}

#[tokio::test]
async fn closing_does_not_wait_for_a_client_that_does_not_read() {
    let options = ServerOptions {
        flush_timeout: Duration::from_millis(50),
        queue_bytes: 1 << 30,
        ..ServerOptions::default()
    };
    let server = start_server(options).await;
    let mut stuck = subscriber(&server).await;
    stuck.writer.send_command("SUBSCRIBE", b"").await.unwrap();
    next_message(&mut stuck).await;
    let mut message = topic_message("t", 0);
    message.buffers.push(Frame::from(vec![0; 64 << 20]));
    server.publish(&message);
    within(server.close()).await;
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (any, options) = (ipc(dir.path()), ServerOptions::default());
    let first = within(Server::bind(&any, &options)).await.unwrap();
    let taken = first.connection().clone();
    let second = within(Server::bind(&taken, &options)).await;
    let Err(error) = second else {
        panic!("two servers at one address");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    // Without fixed numbers the server finds free ones.
    let third = within(Server::bind(&any, &options)).await.unwrap();
    assert!(matches!(
        third.connection().transport,
        Transport::Ipc { .. }
    ));
    assert_ne!(third.connection().ports, taken.ports);
}
