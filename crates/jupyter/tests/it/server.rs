//! What a kernel's end of the channels does with its clients, good and bad.

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::connection::{Channel, Transport};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{Heard, Options, Server};
use cellwright_jupyter::wire::Wire;
use cellwright_jupyter::zmtp::{self, Endpoint, Incoming, Limits, Peer, Role, Stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{KEY, ipc, request, tcp, within};

async fn serve(options: Options) -> Server {
    within(Server::bind(&tcp(), &options)).await.unwrap()
}

async fn client(server: &Server, channel: Channel, role: Role, identity: &str) -> Peer {
    let endpoint = server.connection().endpoint(channel);
    let peer = zmtp::connect(&endpoint, role, identity.as_bytes(), Limits::default());
    within(peer).await.unwrap()
}

async fn subscriber(server: &Server) -> Peer {
    client(server, Channel::Iopub, Role::Sub, "").await
}

async fn raw(server: &Server, channel: Channel) -> TcpStream {
    let Endpoint::Tcp { host, port } = server.connection().endpoint(channel) else {
        panic!("it is over TCP");
    };
    TcpStream::connect((host, port)).await.unwrap()
}

/// The frames of the next message.
async fn frames(peer: &mut Peer) -> Vec<Bytes> {
    match within(peer.reader.next()).await.unwrap() {
        Some(Incoming::Message(frames)) => frames,
        other => panic!("{other:?} is no message"),
    }
}

async fn said(peer: &mut Peer) -> Message {
    Wire::new(KEY).decode(frames(peer).await).unwrap()
}

/// Whether the other side ends the connection.
async fn is_ended(mut peer: Peer) -> bool {
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
    Wire::new(KEY).encode(&Message::new(msg_type, "s", &json!({})))
}

fn told(topic: &str, number: usize) -> Message {
    let mut message = Message::new("told", "s", &json!({ "number": number }));
    message.identities.push(Bytes::from(topic.to_owned()));
    message
}

async fn until(mut done: impl FnMut() -> bool) {
    within(async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_is_welcomed_to_each_topic_once_and_hears_what_begins_with_it() {
    let server = serve(Options::default()).await;
    let mut one = subscriber(&server).await;
    // Both forms there are.
    let message = |bytes: &'static [u8]| [Bytes::from_static(bytes)];
    one.writer.send(&message(b"\x01stream.")).await.unwrap();
    one.writer.command("SUBSCRIBE", b"status").await.unwrap();
    one.writer.send(&message(b"\x01stream.")).await.unwrap();
    for topic in ["stream.", "status"] {
        let welcome = said(&mut one).await;
        assert_eq!(welcome.header.msg_type, "iopub_welcome");
        assert_eq!(welcome.identities, [topic]);
        assert_eq!(welcome.value(), json!({ "subscription": topic }));
    }
    for topic in ["stream.a", "stream", "status", "strea", "other"] {
        server.publish(&told(topic, 0));
    }
    for topic in ["stream.a", "status"] {
        assert_eq!(said(&mut one).await.identities, [topic]);
    }
    // Taken back, in both forms; the pong says that it was heard.
    one.writer.send(&message(b"\x00stream.")).await.unwrap();
    one.writer.command("CANCEL", b"status").await.unwrap();
    one.writer.command("SUBSCRIBE", b"end").await.unwrap();
    assert_eq!(said(&mut one).await.identities, ["end"]);
    for topic in ["stream.a", "status", "end"] {
        server.publish(&told(topic, 0));
    }
    assert_eq!(said(&mut one).await.identities, ["end"]);
}

#[tokio::test]
async fn a_ping_is_answered_on_every_channel() {
    let server = serve(Options::default()).await;
    for (channel, role) in [
        (Channel::Shell, Role::Dealer),
        (Channel::Iopub, Role::Sub),
        (Channel::Heartbeat, Role::Req),
    ] {
        let mut peer = client(&server, channel, role, "").await;
        peer.writer.command("PING", b"\0\x10who").await.unwrap();
        let pong = within(peer.reader.next()).await.unwrap();
        let expected = Incoming::Command("PONG".into(), "who".into());
        assert_eq!(pong, Some(expected));
        // One that is cut short is no reason to fall over.
        peer.writer.command("PING", b"\0").await.unwrap();
        let pong = within(peer.reader.next()).await.unwrap();
        assert_eq!(pong, Some(Incoming::Command("PONG".into(), "".into())));
    }
}

#[tokio::test]
async fn the_heartbeat_gives_back_what_comes_while_nobody_takes_requests() {
    let server = serve(Options::default()).await;
    let mut flood = client(&server, Channel::Shell, Role::Dealer, "").await;
    // More than the server takes in while its owner takes none: it must not matter.
    let flooding = async {
        loop {
            flood.writer.send(&signed("flood")).await.unwrap();
        }
    };
    let beating = async {
        for number in 0..20 {
            let mut heart = client(&server, Channel::Heartbeat, Role::Req, "").await;
            let beat = vec![Bytes::new(), Bytes::from(format!("beat {number}"))];
            heart.writer.send(&beat).await.unwrap();
            assert_eq!(frames(&mut heart).await, beat);
        }
    };
    tokio::select! {
        () = flooding => panic!("it took everything"),
        () = beating => {}
    }
}

#[tokio::test]
async fn requests_on_control_overtake_those_on_shell() {
    let mut server = serve(Options::default()).await;
    let mut shell = client(&server, Channel::Shell, Role::Dealer, "").await;
    for _ in 0..10 {
        shell.writer.send(&signed("execute_request")).await.unwrap();
    }
    // The first has come, so the others come at once.
    assert_eq!(request(&mut server).await.0, Channel::Shell);
    let mut control = client(&server, Channel::Control, Role::Dealer, "").await;
    control
        .writer
        .send(&signed("interrupt_request"))
        .await
        .unwrap();
    control.writer.command("PING", b"\0\0").await.unwrap();
    within(control.reader.next()).await.unwrap();
    // It has come now, and there are nine others.
    assert_eq!(request(&mut server).await.0, Channel::Control);
    for _ in 0..9 {
        assert_eq!(request(&mut server).await.0, Channel::Shell);
    }
}

#[tokio::test]
async fn replies_go_to_whoever_asked() {
    let mut server = serve(Options::default()).await;
    let mut clients = Vec::new();
    for identity in ["", "", "named", "other"] {
        clients.push(client(&server, Channel::Shell, Role::Dealer, identity).await);
    }
    // One that speaks as an old client does, with an empty frame before everything.
    clients.push(client(&server, Channel::Shell, Role::Req, "").await);
    let mut asked = Vec::new();
    for (number, peer) in clients.iter_mut().enumerate() {
        let mut message = Message::new("ask", "s", &json!({ "number": number }));
        if number == 4 {
            message.identities.push(Bytes::new());
        }
        peer.writer
            .send(&Wire::new(KEY).encode(&message))
            .await
            .unwrap();
        asked.push(message.header.msg_id);
    }
    for _ in 0..clients.len() {
        let (channel, came) = request(&mut server).await;
        server
            .reply(channel, &came, "answer", &came.value())
            .unwrap();
    }
    for (number, peer) in clients.iter_mut().enumerate() {
        let reply = said(peer).await;
        assert_eq!(reply.value()["number"], number);
        assert_eq!(reply.parent_id(), asked[number]);
        assert_eq!(reply.identities.len(), usize::from(number == 4));
    }
}

#[tokio::test]
async fn a_client_that_comes_back_takes_its_own_place() {
    let mut server = serve(Options::default()).await;
    let mut before = client(&server, Channel::Shell, Role::Dealer, "me").await;
    before.writer.send(&signed("first")).await.unwrap();
    let (_, first) = request(&mut server).await;
    let mut after = client(&server, Channel::Shell, Role::Dealer, "me").await;
    assert!(is_ended(before).await);
    server
        .reply(Channel::Shell, &first, "reply", &json!({}))
        .unwrap();
    assert_eq!(said(&mut after).await.header.msg_type, "reply");
    // That the old one has gone does not take the new one's place away.
    after.writer.send(&signed("second")).await.unwrap();
    let (_, second) = request(&mut server).await;
    server
        .reply(Channel::Shell, &second, "reply", &json!({}))
        .unwrap();
    said(&mut after).await;
    drop(after);
    until(|| {
        server
            .reply(Channel::Shell, &second, "reply", &json!({}))
            .is_err()
    })
    .await;
    assert_eq!(server.counts().cut, 0, "nobody was at fault");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off_and_told_and_the_others_miss_nothing() {
    let options = Options {
        queue_bytes: 1 << 20,
        ..Options::default()
    };
    let mut server = serve(options).await;
    let mut stuck = subscriber(&server).await;
    let mut good = subscriber(&server).await;
    for peer in [&mut stuck, &mut good] {
        peer.writer.command("SUBSCRIBE", b"").await.unwrap();
        said(peer).await;
    }
    let mut number = 0;
    // As long as it takes to fill what the system holds, and then our own queue.
    while server.counts().cut == 0 {
        let mut message = told("t", number);
        message.buffers.push(Frame::from(vec![0; 100_000]));
        server.publish(&message);
        assert_eq!(said(&mut good).await.value()["number"], number);
        number += 1;
        assert!(number < 10_000, "nobody was cut off");
    }
    let heard = within(server.next()).await;
    assert!(matches!(heard, Heard::Cut(Channel::Iopub, _)), "{heard:?}");
    // What it still gets has no holes.
    let mut expected = 0;
    while let Ok(Some(Incoming::Message(frames))) = within(stuck.reader.next()).await {
        let message = Wire::new(KEY).decode(frames).unwrap();
        assert_eq!(message.value()["number"], expected);
        expected += 1;
    }
    assert!(expected < number, "it was cut off before the last");
    server.publish(&told("t", number));
    assert_eq!(said(&mut good).await.value()["number"], number);
    assert_eq!(server.counts().cut, 1);
}

#[tokio::test]
async fn a_single_message_may_be_larger_than_the_queue() {
    let options = Options {
        queue_bytes: 1000,
        ..Options::default()
    };
    let server = serve(options).await;
    let mut peer = subscriber(&server).await;
    peer.writer.command("SUBSCRIBE", b"").await.unwrap();
    said(&mut peer).await;
    let mut message = told("t", 0);
    message.buffers.push(Frame::from(vec![0; 100_000]));
    server.publish(&message);
    assert_eq!(said(&mut peer).await.buffers[0].size(), 100_000);
}

#[tokio::test]
async fn only_what_is_signed_and_new_is_heard() {
    let mut server = serve(Options::default()).await;
    let mut peer = client(&server, Channel::Shell, Role::Dealer, "").await;
    let good = signed("good");
    let mut forged = signed("forged");
    forged[1] = Bytes::from(vec![b'0'; 64]);
    let mut unsigned = signed("unsigned");
    unsigned[1] = Bytes::new();
    let other_key = Wire::new("another").encode(&Message::new("other", "s", &json!({})));
    let garbage = vec![Bytes::from_static(b"garbage")];
    let last = signed("last");
    for frames in [
        &forged, &good, &unsigned, &good, &other_key, &garbage, &last,
    ] {
        peer.writer.send(frames).await.unwrap();
    }
    assert_eq!(request(&mut server).await.1.header.msg_type, "good");
    assert_eq!(request(&mut server).await.1.header.msg_type, "last");
    assert_eq!(server.counts().refused, 5);
}

#[tokio::test]
async fn nobody_can_use_up_all_connections() {
    let options = Options {
        connections: 3,
        handshake: Duration::from_secs(2),
        ..Options::default()
    };
    let server = serve(options).await;
    // Each of these says nothing, or not enough, and is sent away for it.
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut stream = raw(&server, Channel::Shell).await;
        stream.write_all(&[0xff, 0, 0]).await.unwrap();
        silent.push(stream);
    }
    let mut rest = Vec::new();
    let mut late = raw(&server, Channel::Shell).await;
    // Nobody may come in now.
    within(late.read_to_end(&mut rest)).await.ok();
    until(|| server.counts().turned_away >= 1).await;
    for mut stream in silent {
        let mut rest = Vec::new();
        within(stream.read_to_end(&mut rest)).await.ok();
    }
    until(|| server.counts().strangers == 3).await;
    // And now there is room again.
    let mut peer = client(&server, Channel::Shell, Role::Dealer, "").await;
    peer.writer.command("PING", b"\0\0").await.unwrap();
    within(peer.reader.next()).await.unwrap().unwrap();
}

#[tokio::test]
async fn subscriptions_are_limited() {
    let mut server = serve(Options::default()).await;
    let mut many = subscriber(&server).await;
    for number in 0..2000 {
        let topic = format!("topic {number}");
        if many
            .writer
            .command("SUBSCRIBE", topic.as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    assert!(is_ended(many).await);
    assert!(matches!(
        within(server.next()).await,
        Heard::Cut(Channel::Iopub, _)
    ));
    let mut long = subscriber(&server).await;
    long.writer
        .command("SUBSCRIBE", &[b'x'; 5000])
        .await
        .unwrap();
    assert!(is_ended(long).await);
    assert!(matches!(
        within(server.next()).await,
        Heard::Cut(Channel::Iopub, _)
    ));
}

#[tokio::test]
async fn sockets_of_the_wrong_type_are_refused() {
    let server = serve(Options::default()).await;
    for (channel, role) in [
        (Channel::Shell, Role::Sub),
        (Channel::Iopub, Role::Dealer),
        (Channel::Heartbeat, Role::Sub),
    ] {
        let endpoint = server.connection().endpoint(channel);
        let stream = Stream::connect(&endpoint).await.unwrap();
        // Either side may be the first to notice.
        if let Ok(peer) = within(zmtp::greet(stream, role, &[], Limits::default())).await {
            assert!(is_ended(peer).await);
        }
    }
    until(|| server.counts().strangers == 3).await;
}

#[tokio::test]
async fn a_kernel_that_is_dropped_is_gone_at_once() {
    let server = serve(Options::default()).await;
    let peer = subscriber(&server).await;
    drop(server);
    assert!(is_ended(peer).await);
}

#[tokio::test]
async fn closing_does_not_wait_for_a_client_that_does_not_read() {
    let options = Options {
        flush: Duration::from_millis(50),
        queue_bytes: 1 << 30,
        ..Options::default()
    };
    let server = serve(options).await;
    let mut stuck = subscriber(&server).await;
    stuck.writer.command("SUBSCRIBE", b"").await.unwrap();
    said(&mut stuck).await;
    let mut message = told("t", 0);
    message.buffers.push(Frame::from(vec![0; 64 << 20]));
    server.publish(&message);
    within(server.close()).await;
}

#[tokio::test]
async fn a_place_that_is_taken_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (any, options) = (ipc(folder.path()), Options::default());
    let first = within(Server::bind(&any, &options)).await.unwrap();
    let taken = first.connection().clone();
    let second = within(Server::bind(&taken, &options)).await;
    let Err(error) = second else {
        panic!("two kernels at one place");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    // Any other place will do.
    let third = within(Server::bind(&any, &options)).await.unwrap();
    assert!(matches!(
        third.connection().transport,
        Transport::Ipc { .. }
    ));
    assert_ne!(third.connection().ports, taken.ports);
}
