//! [`KernelClient`] and [`Server`] on all channels.

use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::client::{ClientEvent, ClientOptions, Heartbeat, KernelClient};
use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use cellwright_jupyter::zmtp::{self, Endpoint, Limits, Listener, ReceivedItem, SocketType};
use serde_json::json;

use crate::support::{ipc, next_message, next_request, tcp, within};

async fn bind_server(connection: &Connection) -> Server {
    let options = server::ServerOptions::default();
    within(Server::bind(connection, &options)).await.unwrap()
}

async fn connected_pair(
    connection: &Connection,
    options: &ClientOptions,
) -> (Server, KernelClient) {
    let server = bind_server(connection).await;
    let client = KernelClient::open(server.connection(), options).unwrap();
    (server, client)
}

fn topic_message(msg_type: &str) -> Message {
    let mut message = Message::new(msg_type, "s", &json!({"é": [1, null]}));
    message.identities = vec![Bytes::from(msg_type.to_owned())];
    message
}

#[tokio::test]
async fn every_channel_works_in_both_directions_over_tcp() {
    check_every_channel(&tcp()).await;
}

#[tokio::test]
async fn every_channel_works_in_both_directions_over_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    check_every_channel(&ipc(dir.path())).await;
    let left: Vec<_> = dir.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "sockets were not removed: {left:?}");
}

async fn check_every_channel(connection: &Connection) {
    let (mut server, mut client) = connected_pair(connection, &ClientOptions::default()).await;
    let welcome = next_message(&mut client, Channel::Iopub).await;
    assert_eq!(welcome.header.msg_type, "iopub_welcome");
    assert_eq!(welcome.value(), json!({"subscription": ""}));
    for channel in [Channel::Shell, Channel::Control] {
        let mut sent = Message::new("ask_request", client.session(), &json!({"a": "ß"}));
        sent.buffers = vec![Frame::default(), Frame::from(vec![7; 100_000])];
        client.send(channel, &sent);
        let (on, received) = next_request(&mut server).await;
        assert_eq!(on, channel);
        assert_eq!(received.header, sent.header);
        assert_eq!(received.content, sent.content);
        assert_eq!(received.buffers, sent.buffers);
        // The session id is the identity on all channels.
        assert_eq!(
            received.identities,
            [Bytes::from(client.session().to_owned())]
        );
        let reply = json!({"status": "ok"});
        server
            .reply(channel, &received, "ask_reply", &reply)
            .unwrap();
        let reply = next_message(&mut client, channel).await;
        assert_eq!(reply.header.msg_type, "ask_reply");
        assert_eq!(reply.parent_id(), sent.header.msg_id);
        assert_eq!(reply.parent, sent.raw_header);
    }
    client.send(
        Channel::Shell,
        &Message::new("execute_request", "s", &json!({})),
    );
    let (_, received) = next_request(&mut server).await;
    within(async {
        // Its stdin may connect later than its shell.
        while server.request_input(&received, "who? ", true).is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let input_request = next_message(&mut client, Channel::Stdin).await;
    assert_eq!(input_request.header.msg_type, "input_request");
    assert_eq!(
        input_request.value(),
        json!({"prompt": "who? ", "password": true})
    );
    let answer = input_request.reply("input_reply", "s", &json!({"value": "me"}));
    client.send(Channel::Stdin, &answer);
    let (on, answer) = next_request(&mut server).await;
    assert_eq!(
        (on, answer.value()),
        (Channel::Stdin, json!({"value": "me"}))
    );
    server.publish(&topic_message("status"));
    let status = next_message(&mut client, Channel::Iopub).await;
    assert_eq!(status.identities, ["status"]);
    client.close().await;
    server.close().await;
}

#[tokio::test]
async fn the_backlog_loses_nothing_and_keeps_the_order() {
    const COUNT: usize = 100_000;
    let options = ClientOptions {
        backlog_memory_bytes: 1 << 20,
        ..ClientOptions::default()
    };
    let server_options = server::ServerOptions {
        queue_bytes: 1 << 30,
        flush_timeout: Duration::from_mins(1),
        ..server::ServerOptions::default()
    };
    let server = within(Server::bind(&tcp(), &server_options)).await.unwrap();
    let mut client = KernelClient::open(server.connection(), &options).unwrap();
    next_message(&mut client, Channel::Iopub).await;
    let text = "x".repeat(100);
    for number in 0..COUNT {
        let content = json!({"number": number, "text": text});
        server.publish(&Message::new("stream", "s", &content));
    }
    // All messages are sent before the first is taken.
    within(server.close()).await;
    for number in 0..COUNT {
        let received = next_message(&mut client, Channel::Iopub).await;
        assert_eq!(received.value()["number"], number);
    }
    within(wait_closed(&mut client, &[Channel::Iopub])).await;
}

/// Waits until these channels are closed. Other channels may close too.
async fn wait_closed(client: &mut KernelClient, channels: &[Channel]) {
    let mut missing = channels.to_vec();
    while !missing.is_empty() {
        if let ClientEvent::Closed(channel, error) = client.next().await {
            assert!(error.is_none(), "{channel:?}: {error:?}");
            missing.retain(|other| *other != channel);
        }
    }
}

#[tokio::test]
async fn a_message_of_fifty_megabytes_passes_in_both_directions() {
    let (mut server, mut client) = connected_pair(&tcp(), &ClientOptions::default()).await;
    next_message(&mut client, Channel::Iopub).await;
    let large = Bytes::from(vec![b'x'; 50 << 20]);
    let mut sent = Message::new("comm_msg", "s", &json!({}));
    sent.buffers.push(large.clone().into());
    client.send(Channel::Shell, &sent);
    let (_, received) = next_request(&mut server).await;
    assert!(received.buffers == [large.clone()]);
    let mut sent = topic_message("display_data");
    sent.buffers.push(large.clone().into());
    server.publish(&sent);
    let received = next_message(&mut client, Channel::Iopub).await;
    assert!(received.buffers == [large]);
}

#[tokio::test]
async fn spooled_messages_and_spooled_frames_keep_the_order() {
    let options = ClientOptions {
        backlog_memory_bytes: 300_000,
        spool_threshold: 100_000,
        ..ClientOptions::default()
    };
    let (server, mut client) = connected_pair(&tcp(), &options).await;
    next_message(&mut client, Channel::Iopub).await;
    let length = |number: usize| [10, 150_000, 90_000, 1_000_000, 0][number % 5];
    for number in 0..60 {
        let mut sent = Message::new("display_data", "s", &json!({"number": number}));
        let byte = u8::try_from(number).unwrap();
        sent.buffers.push(Frame::from(vec![byte; length(number)]));
        sent.buffers
            .push(Frame::from(vec![byte; length(number + 1)]));
        server.publish(&sent);
    }
    // All messages are received before the first is taken.
    within(server.close()).await;
    for number in 0..60 {
        let received = next_message(&mut client, Channel::Iopub).await;
        assert_eq!(received.value()["number"], number);
        for (buffer, at) in received.buffers.iter().zip(number..) {
            let expected = vec![u8::try_from(number).unwrap(); length(at)];
            assert!(*buffer == expected[..], "{number}");
            assert_eq!(matches!(buffer, Frame::OnDisk(_)), length(at) >= 100_000);
        }
    }
}

#[tokio::test]
async fn the_last_messages_arrive_before_the_channels_close_on_both_sides() {
    for round in 0..50 {
        let (mut server, mut client) = connected_pair(&tcp(), &ClientOptions::default()).await;
        next_message(&mut client, Channel::Iopub).await;
        client.send(Channel::Shell, &Message::new("first", "s", &json!({})));
        let (_, first) = next_request(&mut server).await;
        if round % 2 == 0 {
            let mut last = first.reply("shutdown_reply", "s", &json!({}));
            // More than the system buffers.
            last.buffers.push(Frame::from(vec![0; 8 << 20]));
            server.send_to(Channel::Shell, &last).unwrap();
            let mut idle = topic_message("status");
            idle.buffers.push(Frame::from(vec![1; 8 << 20]));
            server.publish(&idle);
            // Also a message that the server does not read.
            client.send(Channel::Shell, &Message::new("late", "s", &json!({})));
            within(server.close()).await;
            let (mut reply, mut idle) = (false, false);
            while !(reply && idle) {
                match within(client.next()).await {
                    ClientEvent::Message(Channel::Shell, _) => reply = true,
                    ClientEvent::Message(Channel::Iopub, _) => idle = true,
                    ClientEvent::Closed(channel, _) if channel != Channel::Stdin => {
                        let had_last = if channel == Channel::Shell {
                            reply
                        } else {
                            idle
                        };
                        assert!(
                            had_last || channel == Channel::Control,
                            "{channel:?} lost its last message"
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
            client.send(Channel::Control, &last);
            within(client.close()).await;
            let (on, received) = next_request(&mut server).await;
            assert_eq!(on, Channel::Control);
            assert_eq!(received.header, last.header);
        }
    }
}

#[tokio::test]
async fn every_channel_reports_a_kernel_that_disappears() {
    let (server, mut client) = connected_pair(&tcp(), &ClientOptions::default()).await;
    let mut open = 0;
    while open < 4 {
        if let ClientEvent::Opened(_) = within(client.next()).await {
            open += 1;
        }
    }
    // As if the kernel had been killed.
    drop(server);
    let mut missing = vec![
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
    ];
    while !missing.is_empty() {
        if let ClientEvent::Closed(channel, _) = within(client.next()).await {
            missing.retain(|other| *other != channel);
        }
    }
}

#[tokio::test]
async fn a_heartbeat_that_stops_is_lost_and_restored_when_it_continues() {
    let mut connection = tcp();
    let Endpoint::Tcp { host, .. } = connection.endpoint(Channel::Heartbeat) else {
        panic!("not TCP");
    };
    let listener = Listener::bind(&Endpoint::Tcp { host, port: 0 })
        .await
        .unwrap();
    let Ok(Endpoint::Tcp { port, .. }) = listener.endpoint() else {
        panic!("not TCP");
    };
    connection.ports.hb = port;
    let options = ClientOptions {
        heartbeat_interval: Some(Duration::from_millis(5)),
        ..ClientOptions::default()
    };
    let mut client = KernelClient::open(&connection, &options).unwrap();
    let stream = within(listener.accept()).await.unwrap();
    let peer = zmtp::handshake(stream, SocketType::Rep, &[], Limits::default());
    let mut heartbeat = within(peer).await.unwrap();
    let Some(ReceivedItem::Message(ping)) = within(heartbeat.reader.next()).await.unwrap() else {
        panic!("no heartbeat");
    };
    let lost = within(client.next()).await;
    assert!(
        matches!(lost, ClientEvent::Heartbeat(Heartbeat::Lost)),
        "{lost:?}"
    );
    heartbeat.writer.send(&ping).await.unwrap();
    let restored = within(client.next()).await;
    assert!(
        matches!(restored, ClientEvent::Heartbeat(Heartbeat::Restored)),
        "{restored:?}"
    );
}

#[tokio::test]
async fn a_client_waits_for_a_kernel_that_starts_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut connection = ipc(dir.path());
    connection.ports = cellwright_jupyter::connection::Ports {
        shell: 1,
        iopub: 2,
        stdin: 3,
        control: 4,
        hb: 5,
    };
    let mut client = KernelClient::open(&connection, &ClientOptions::default()).unwrap();
    client.send(Channel::Shell, &Message::new("early", "s", &json!({})));
    assert!(client.try_next().is_none());
    let mut server = bind_server(&connection).await;
    let (_, early) = next_request(&mut server).await;
    assert_eq!(early.header.msg_type, "early");
    next_message(&mut client, Channel::Iopub).await;
}
