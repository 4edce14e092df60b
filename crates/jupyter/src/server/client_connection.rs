//! The connection of one client, from the handshake to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use super::acceptor::ServerState;
use super::outbox::{Outbox, OutboxItem};
use crate::connection::Channel;
use crate::message::Message;
use crate::zmtp::{
    self, Limits, Peer, Reader, ReceivedItem, SocketType, Stream, Writer, ZmtpError,
};

/// Limits on iopub and heartbeat, where clients only send small messages.
const SMALL_MESSAGE_LIMITS: Limits = Limits {
    message_bytes: 64 * 1024,
    frames: 16,
};

/// Time that a client has to close its half after the server has closed the other one. Messages that it has not read by
/// then may be lost.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves a client until it disconnects.
pub(super) async fn serve(server: &ServerState, channel: Channel, stream: Stream) {
    let (socket_type, limits) = match channel {
        Channel::Shell | Channel::Stdin | Channel::Control => {
            (SocketType::Router, server.options.limits)
        }
        Channel::Iopub => (SocketType::Xpub, SMALL_MESSAGE_LIMITS),
        Channel::Heartbeat => (SocketType::Rep, SMALL_MESSAGE_LIMITS),
    };
    let handshake = zmtp::handshake(stream, socket_type, &[], limits);
    let peer = tokio::select! {
        peer = timeout(server.options.handshake_timeout, handshake) => peer,
        () = server.wait_closing() => return,
    };
    let Ok(Ok(Peer {
        reader,
        writer,
        identity,
    })) = peer
    else {
        return server.clients.count_failed_handshake();
    };
    if channel == Channel::Heartbeat {
        return tokio::select! {
            () = echo(reader, writer) => {}
            () = server.wait_closing() => {}
        };
    }
    let Some((identity, outbox)) = server.clients.add(channel, identity) else {
        return;
    };
    let client = ClientConnection {
        server,
        channel,
        identity: &identity,
        outbox: &outbox,
    };
    tokio::select! {
        () = outbox.wait_disconnected() => {}
        () = client.run(reader, writer) => {}
    }
    server.clients.remove(channel, &identity, &outbox);
}

/// Sends every message back: the heartbeat.
async fn echo(mut reader: Reader, mut writer: Writer) {
    loop {
        let sent = match reader.next().await {
            Ok(Some(ReceivedItem::Message(frames))) => writer.send(&frames).await,
            Ok(Some(ReceivedItem::Command(name, data))) if name == "PING" => {
                writer.send_command("PONG", &zmtp::pong(&data)).await
            }
            Ok(Some(ReceivedItem::Command(..))) => Ok(()),
            Ok(None) | Err(_) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A client of any channel but the heartbeat.
struct ClientConnection<'a> {
    server: &'a ServerState,
    channel: Channel,
    identity: &'a Bytes,
    outbox: &'a Arc<Outbox>,
}

impl ClientConnection<'_> {
    async fn run(&self, reader: Reader, writer: Writer) {
        let mut reading = std::pin::pin!(self.read(reader));
        let written = tokio::select! {
            () = &mut reading => return,
            written = self.write(writer) => written,
        };
        if written.is_ok() {
            timeout(LINGER_TIMEOUT, reading).await.ok();
        }
    }

    /// Writes the outbox until it is closed and empty.
    async fn write(&self, mut writer: Writer) -> Result<(), ZmtpError> {
        while let Some(item) = self.outbox.next().await {
            match item {
                OutboxItem::Message(frames) => writer.send(&frames).await?,
                OutboxItem::Pong(data) => writer.send_command("PONG", &data).await?,
            }
        }
        writer.close().await;
        Ok(())
    }

    /// Reads until the client has disconnected or has violated the protocol.
    async fn read(&self, mut reader: Reader) {
        while let Ok(Some(incoming)) = reader.next().await {
            match incoming {
                ReceivedItem::Command(name, data) => self.handle_command(&name, &data),
                ReceivedItem::Message(frames) if self.channel == Channel::Iopub => {
                    if let [frame] = &frames[..] {
                        self.handle_subscription(frame);
                    }
                }
                ReceivedItem::Message(frames) => self.handle_request(frames).await,
            }
        }
    }

    async fn handle_request(&self, mut frames: Vec<Bytes>) {
        frames.insert(0, self.identity.clone());
        self.server.queue_request(self.channel, frames).await;
    }

    /// Handles a message on iopub: clients of ZMTP 3.0 subscribe with a message.
    fn handle_subscription(&self, frame: &Bytes) {
        match frame.first() {
            Some(1) => self.subscribe(&frame.slice(1..)),
            Some(0) => self.unsubscribe(&frame.slice(1..)),
            // Reserved for extensions of the protocol.
            _ => {}
        }
    }

    /// Handles a command: clients of ZMTP 3.1 subscribe with a command.
    fn handle_command(&self, name: &Bytes, data: &Bytes) {
        match &name[..] {
            b"PING" => {
                let pong = OutboxItem::Pong(zmtp::pong(data));
                let clients = &self.server.clients;
                clients.send_pong(self.channel, self.identity, self.outbox, pong);
            }
            b"SUBSCRIBE" => self.subscribe(data),
            b"CANCEL" => self.unsubscribe(data),
            _ => {}
        }
    }

    fn subscribe(&self, topic: &Bytes) {
        let server = self.server;
        server
            .clients
            .subscribe(self.identity, self.outbox, topic, || {
                let content = json!({ "subscription": String::from_utf8_lossy(topic) });
                let mut welcome = Message::new("iopub_welcome", &server.session, &content);
                // With the topic itself, so that it passes the client's filter.
                welcome.identities.push(topic.clone());
                OutboxItem::Message(server.codec.encode(&welcome).into())
            });
    }

    fn unsubscribe(&self, topic: &Bytes) {
        self.server.clients.unsubscribe(self.outbox, topic);
    }
}
