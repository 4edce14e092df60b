//! Our client and our server, on all channels.

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::link::{Beat, Heard, Link, Options};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use cellwright_jupyter::zmtp::{self, Endpoint, Incoming, Limits, Listener, Role};
use serde_json::json;

use crate::support::{ipc, message, request, tcp, within};

async fn bind(connection: &Connection) -> Server {
    let options = server::Options::default();
    within(Server::bind(connection, &options)).await.unwrap()
}

async fn pair(connection: &Connection, options: &Options) -> (Server, Link) {
    let server = bind(connection).await;
    let link = Link::open(server.connection(), options).unwrap();
    (server, link)
}

fn about(msg_type: &str) -> Message {
    let mut message = Message::new(msg_type, "s", &json!({"é": [1, null]}));
    message.identities = vec![Bytes::from(msg_type.to_owned())];
    message
}

#[tokio::test]
async fn every_channel_goes_both_ways_over_tcp() {
    every_channel(&tcp()).await;
}

#[tokio::test]
async fn every_channel_goes_both_ways_through_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    every_channel(&ipc(folder.path())).await;
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "sockets were left behind: {left:?}");
}

async fn every_channel(connection: &Connection) {
    let (mut server, mut link) = pair(connection, &Options::default()).await;
    let welcome = message(&mut link, Channel::Iopub).await;
    assert_eq!(welcome.header.msg_type, "iopub_welcome");
    assert_eq!(welcome.value(), json!({"subscription": ""}));
    for channel in [Channel::Shell, Channel::Control] {
        let mut asked = Message::new("ask_request", link.session(), &json!({"a": "ß"}));
        asked.buffers = vec![Frame::default(), Frame::from(vec![7; 100_000])];
        link.send(channel, &asked);
        let (on, came) = request(&mut server).await;
        assert_eq!(on, channel);
        assert_eq!(came.header, asked.header);
        assert_eq!(came.content, asked.content);
        assert_eq!(came.buffers, asked.buffers);
        // By its session's name, on all channels.
        assert_eq!(came.identities, [Bytes::from(link.session().to_owned())]);
        let reply = json!({"status": "ok"});
        server.reply(channel, &came, "ask_reply", &reply).unwrap();
        let reply = message(&mut link, channel).await;
        assert_eq!(reply.header.msg_type, "ask_reply");
        assert_eq!(reply.parent_id(), asked.header.msg_id);
        assert_eq!(reply.parent, asked.raw_header);
    }
    link.send(
        Channel::Shell,
        &Message::new("execute_request", "s", &json!({})),
    );
    let (_, came) = request(&mut server).await;
    within(async {
        // Its stdin may come in later than its shell.
        while server.ask(&came, "who? ", true).is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let question = message(&mut link, Channel::Stdin).await;
    assert_eq!(question.header.msg_type, "input_request");
    assert_eq!(
        question.value(),
        json!({"prompt": "who? ", "password": true})
    );
    let answer = question.reply("input_reply", "s", &json!({"value": "me"}));
    link.send(Channel::Stdin, &answer);
    let (on, answer) = request(&mut server).await;
    assert_eq!(
        (on, answer.value()),
        (Channel::Stdin, json!({"value": "me"}))
    );
    server.publish(&about("status"));
    let status = message(&mut link, Channel::Iopub).await;
    assert_eq!(status.identities, ["status"]);
    link.close().await;
    server.close().await;
}

#[tokio::test]
async fn nothing_is_lost_and_order_is_kept_while_nobody_takes() {
    const COUNT: usize = 100_000;
    let options = Options {
        memory_bytes: 1 << 20,
        ..Options::default()
    };
    let patient = server::Options {
        queue_bytes: 1 << 30,
        flush: Duration::from_mins(1),
        ..server::Options::default()
    };
    let server = within(Server::bind(&tcp(), &patient)).await.unwrap();
    let mut link = Link::open(server.connection(), &options).unwrap();
    message(&mut link, Channel::Iopub).await;
    let text = "x".repeat(100);
    for number in 0..COUNT {
        let content = json!({"number": number, "text": text});
        server.publish(&Message::new("stream", "s", &content));
    }
    // All of it has gone out before anything is taken.
    within(server.close()).await;
    for number in 0..COUNT {
        let came = message(&mut link, Channel::Iopub).await;
        assert_eq!(came.value()["number"], number);
    }
    within(closed(&mut link, &[Channel::Iopub])).await;
}

/// Waits until these channels, and perhaps others, are closed.
async fn closed(link: &mut Link, channels: &[Channel]) {
    let mut missing = channels.to_vec();
    while !missing.is_empty() {
        if let Heard::Closed(channel, error) = link.next().await {
            assert!(error.is_none(), "{channel:?}: {error:?}");
            missing.retain(|other| *other != channel);
        }
    }
}

#[tokio::test]
async fn a_message_of_fifty_megabytes_passes_both_ways() {
    let (mut server, mut link) = pair(&tcp(), &Options::default()).await;
    message(&mut link, Channel::Iopub).await;
    let large = Bytes::from(vec![b'x'; 50 << 20]);
    let mut asked = Message::new("comm_msg", "s", &json!({}));
    asked.buffers.push(large.clone().into());
    link.send(Channel::Shell, &asked);
    let (_, came) = request(&mut server).await;
    assert!(came.buffers == [large.clone()]);
    let mut told = about("display_data");
    told.buffers.push(large.clone().into());
    server.publish(&told);
    let came = message(&mut link, Channel::Iopub).await;
    assert!(came.buffers == [large]);
}

#[tokio::test]
async fn what_waits_on_disk_comes_in_order_whichever_way_it_got_there() {
    let options = Options {
        memory_bytes: 300_000,
        store_from: 100_000,
        ..Options::default()
    };
    let (server, mut link) = pair(&tcp(), &options).await;
    message(&mut link, Channel::Iopub).await;
    let length = |number: usize| [10, 150_000, 90_000, 1_000_000, 0][number % 5];
    for number in 0..60 {
        let mut told = Message::new("display_data", "s", &json!({"number": number}));
        let byte = u8::try_from(number).unwrap();
        told.buffers.push(Frame::from(vec![byte; length(number)]));
        told.buffers
            .push(Frame::from(vec![byte; length(number + 1)]));
        server.publish(&told);
    }
    // All of it has come before any of it is taken.
    within(server.close()).await;
    for number in 0..60 {
        let came = message(&mut link, Channel::Iopub).await;
        assert_eq!(came.value()["number"], number);
        for (buffer, at) in came.buffers.iter().zip(number..) {
            let expected = vec![u8::try_from(number).unwrap(); length(at)];
            assert!(*buffer == expected[..], "{number}");
            assert_eq!(matches!(buffer, Frame::Stored(_)), length(at) >= 100_000);
        }
    }
}

#[tokio::test]
async fn what_was_said_last_arrives_before_the_end_at_either_side() {
    for round in 0..50 {
        let (mut server, mut link) = pair(&tcp(), &Options::default()).await;
        message(&mut link, Channel::Iopub).await;
        link.send(Channel::Shell, &Message::new("first", "s", &json!({})));
        let (_, first) = request(&mut server).await;
        if round % 2 == 0 {
            let mut last = first.reply("shutdown_reply", "s", &json!({}));
            // More than the system takes at once.
            last.buffers.push(Frame::from(vec![0; 8 << 20]));
            server.send_to(Channel::Shell, &last).unwrap();
            let mut idle = about("status");
            idle.buffers.push(Frame::from(vec![1; 8 << 20]));
            server.publish(&idle);
            // There is also something that the server has not read.
            link.send(Channel::Shell, &Message::new("late", "s", &json!({})));
            within(server.close()).await;
            let (mut reply, mut idle) = (false, false);
            while !(reply && idle) {
                match within(link.next()).await {
                    Heard::Message(Channel::Shell, _) => reply = true,
                    Heard::Message(Channel::Iopub, _) => idle = true,
                    Heard::Closed(channel, _) if channel != Channel::Stdin => {
                        let had = if channel == Channel::Shell {
                            reply
                        } else {
                            idle
                        };
                        assert!(
                            had || channel == Channel::Control,
                            "{channel:?} lost its last"
                        );
                    }
                    _ => {}
                }
            }
        } else {
            let mut last = Message::new("shutdown_request", "s", &json!({}));
            last.buffers.push(Frame::from(vec![0; 8 << 20]));
            server
                .reply(Channel::Control, &first, "unread", &json!({}))
                .ok();
            link.send(Channel::Control, &last);
            within(link.close()).await;
            let (on, came) = request(&mut server).await;
            assert_eq!(on, Channel::Control);
            assert_eq!(came.header, last.header);
        }
    }
}

#[tokio::test]
async fn every_channel_hears_when_the_kernel_is_gone() {
    let (server, mut link) = pair(&tcp(), &Options::default()).await;
    let mut open = 0;
    while open < 4 {
        if let Heard::Open(_) = within(link.next()).await {
            open += 1;
        }
    }
    // As if it had been killed.
    drop(server);
    let mut missing = vec![
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
    ];
    while !missing.is_empty() {
        if let Heard::Closed(channel, _) = within(link.next()).await {
            missing.retain(|other| *other != channel);
        }
    }
}

#[tokio::test]
async fn a_heart_that_stops_is_missed_and_felt_when_it_beats_again() {
    let mut connection = tcp();
    let Endpoint::Tcp { host, .. } = connection.endpoint(Channel::Heartbeat) else {
        panic!("it is over TCP");
    };
    let listener = Listener::bind(&Endpoint::Tcp { host, port: 0 })
        .await
        .unwrap();
    let Ok(Endpoint::Tcp { port, .. }) = listener.endpoint() else {
        panic!("it is over TCP");
    };
    connection.ports.hb = port;
    let options = Options {
        heartbeat: Some(Duration::from_millis(5)),
        ..Options::default()
    };
    let mut link = Link::open(&connection, &options).unwrap();
    let stream = within(listener.accept()).await.unwrap();
    let peer = zmtp::greet(stream, Role::Rep, &[], Limits::default());
    let mut heart = within(peer).await.unwrap();
    let Some(Incoming::Message(beat)) = within(heart.reader.next()).await.unwrap() else {
        panic!("no beat");
    };
    let missed = within(link.next()).await;
    assert!(
        matches!(missed, Heard::Heartbeat(Beat::Missed)),
        "{missed:?}"
    );
    heart.writer.send(&beat).await.unwrap();
    let felt = within(link.next()).await;
    assert!(matches!(felt, Heard::Heartbeat(Beat::Felt)), "{felt:?}");
}

#[tokio::test]
async fn a_link_waits_for_a_kernel_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = ipc(folder.path());
    connection.ports = cellwright_jupyter::connection::Ports {
        shell: 1,
        iopub: 2,
        stdin: 3,
        control: 4,
        hb: 5,
    };
    let mut link = Link::open(&connection, &Options::default()).unwrap();
    link.send(Channel::Shell, &Message::new("early", "s", &json!({})));
    assert!(link.already().is_none());
    let mut server = bind(&connection).await;
    let (_, early) = request(&mut server).await;
    assert_eq!(early.header.msg_type, "early");
    message(&mut link, Channel::Iopub).await;
}
