//! One client's connection, from its greeting to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use super::house::House;
use super::outbox::{Letter, Outbox};
use crate::connection::Channel;
use crate::message::Message;
use crate::zmtp::{self, Incoming, Limits, Peer, Reader, Role, Stream, Writer, ZmtpError};

/// What may come on iopub and heartbeat, where clients have little to say.
const LITTLE: Limits = Limits {
    message_bytes: 64 * 1024,
    frames: 16,
};

/// How long a client has to close its end after we have closed ours: what it has not read by then
/// could be lost when the connection is torn down.
const LINGER: Duration = Duration::from_millis(500);

/// Serves a client as long as it stays.
pub(super) async fn serve(house: &House, channel: Channel, stream: Stream) {
    let (role, limits) = match channel {
        Channel::Shell | Channel::Stdin | Channel::Control => (Role::Router, house.options.limits),
        Channel::Iopub => (Role::Xpub, LITTLE),
        Channel::Heartbeat => (Role::Rep, LITTLE),
    };
    let greeting = zmtp::greet(stream, role, &[], limits);
    let peer = tokio::select! {
        peer = timeout(house.options.handshake, greeting) => peer,
        () = house.is_closing() => return,
    };
    let Ok(Ok(Peer {
        reader,
        writer,
        identity,
    })) = peer
    else {
        return house.clients.stranger();
    };
    if channel == Channel::Heartbeat {
        return tokio::select! {
            () = echo(reader, writer) => {}
            () = house.is_closing() => {}
        };
    }
    let Some((identity, outbox)) = house.clients.enter(channel, identity) else {
        return;
    };
    let client = Client {
        house,
        channel,
        identity: &identity,
        outbox: &outbox,
    };
    tokio::select! {
        () = outbox.is_cut() => {}
        () = client.talk(reader, writer) => {}
    }
    house.clients.leave(channel, &identity, &outbox);
}

/// Gives back what comes.
async fn echo(mut reader: Reader, mut writer: Writer) {
    loop {
        let sent = match reader.next().await {
            Ok(Some(Incoming::Message(frames))) => writer.send(&frames).await,
            Ok(Some(Incoming::Command(name, carries))) if name == "PING" => {
                writer.command("PONG", &zmtp::pong(&carries)).await
            }
            Ok(Some(Incoming::Command(..))) => Ok(()),
            // Readers here store nothing.
            Ok(None | Some(Incoming::Large(_))) | Err(_) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A client of any channel but the heartbeat.
struct Client<'a> {
    house: &'a House,
    channel: Channel,
    identity: &'a Bytes,
    outbox: &'a Arc<Outbox>,
}

impl Client<'_> {
    async fn talk(&self, reader: Reader, writer: Writer) {
        let mut read = std::pin::pin!(self.read(reader));
        let wrote = tokio::select! {
            () = &mut read => return,
            wrote = self.write(writer) => wrote,
        };
        if wrote.is_ok() {
            timeout(LINGER, read).await.ok();
        }
    }

    /// Writes until there will be nothing more to write.
    async fn write(&self, mut writer: Writer) -> Result<(), ZmtpError> {
        while let Some(letter) = self.outbox.next().await {
            match letter {
                Letter::Message(frames) => writer.send(&frames).await?,
                Letter::Pong(context) => writer.command("PONG", &context).await?,
            }
        }
        writer.close().await;
        Ok(())
    }

    /// Reads until the client has gone, or has broken the rules of the connection.
    async fn read(&self, mut reader: Reader) {
        while let Ok(Some(incoming)) = reader.next().await {
            match incoming {
                Incoming::Command(name, carries) => self.command(&name, &carries),
                Incoming::Message(frames) if self.channel == Channel::Iopub => {
                    if let [frame] = &frames[..] {
                        self.subscription(frame);
                    }
                }
                Incoming::Message(frames) => self.request(frames).await,
                // Readers here store nothing.
                Incoming::Large(_) => return,
            }
        }
    }

    async fn request(&self, mut frames: Vec<Bytes>) {
        frames.insert(0, self.identity.clone());
        self.house.request(self.channel, frames).await;
    }

    /// A client of the protocol's version 3.0 subscribes with a message.
    fn subscription(&self, frame: &Bytes) {
        match frame.first() {
            Some(1) => self.subscribe(&frame.slice(1..)),
            Some(0) => self.unsubscribe(&frame.slice(1..)),
            // Something for whoever extends the protocol.
            _ => {}
        }
    }

    /// Since 3.1 with a command.
    fn command(&self, name: &Bytes, carries: &Bytes) {
        match &name[..] {
            b"PING" => {
                let pong = Letter::Pong(zmtp::pong(carries));
                let clients = &self.house.clients;
                clients.answer(self.channel, self.identity, self.outbox, pong);
            }
            b"SUBSCRIBE" => self.subscribe(carries),
            b"CANCEL" => self.unsubscribe(carries),
            _ => {}
        }
    }

    fn subscribe(&self, topic: &Bytes) {
        let house = self.house;
        house
            .clients
            .subscribe(self.identity, self.outbox, topic, || {
                let content = json!({ "subscription": String::from_utf8_lossy(topic) });
                let mut welcome = Message::new("iopub_welcome", &house.session, &content);
                // Under the topic itself, so that it passes the client's own filter.
                welcome.identities.push(topic.clone());
                Letter::Message(house.wire.encode(&welcome).into())
            });
    }

    fn unsubscribe(&self, topic: &Bytes) {
        self.house.clients.unsubscribe(self.outbox, topic);
    }
}
