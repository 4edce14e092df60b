//! [`MessageSender`]: sends messages to clients.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::clients::Clients;
use super::outbox::OutboxItem;
use crate::codec::MessageCodec;
use crate::connection::Channel;
use crate::message::Message;

/// No client with the identity is connected to the channel.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client is not connected")]
pub struct ClientNotConnected;

/// Sends messages to clients. Never waits for a client.
#[derive(Clone)]
pub struct MessageSender {
    clients: Arc<Clients>,
    codec: Arc<MessageCodec>,
    session: Arc<str>,
}

impl MessageSender {
    pub(super) fn new(clients: Arc<Clients>, key: &str, session: &str) -> Self {
        Self {
            clients,
            codec: Arc::new(MessageCodec::new(key)),
            session: session.into(),
        }
    }

    /// The session id in the headers of the server's messages.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Sends a message to the client that its first identity addresses.
    pub fn send_to(&self, channel: Channel, message: &Message) -> Result<(), ClientNotConnected> {
        let identity = message.identities.first().ok_or(ClientNotConnected)?;
        let frames = self.codec.encode(message);
        let item = OutboxItem::Message(Arc::from(&frames[1..]));
        if self.clients.send(channel, identity, item) {
            Ok(())
        } else {
            Err(ClientNotConnected)
        }
    }

    /// Sends a reply to a request.
    pub fn reply(
        &self,
        channel: Channel,
        request: &Message,
        msg_type: &str,
        content: &Value,
    ) -> Result<(), ClientNotConnected> {
        let reply = request.reply(msg_type, &self.session, content);
        self.send_to(channel, &reply)
    }

    /// Sends an `input_request` to the client of a request. The client replies on stdin.
    pub fn request_input(
        &self,
        request: &Message,
        prompt: &str,
        password: bool,
    ) -> Result<(), ClientNotConnected> {
        let content = json!({ "prompt": prompt, "password": password });
        self.reply(Channel::Stdin, request, "input_request", &content)
    }

    /// Publishes a message to all clients that have subscribed to its first identity.
    pub fn publish(&self, message: &Message) {
        let frames: Arc<[Bytes]> = self.codec.encode(message).into();
        if let Some(topic) = frames.first().cloned() {
            self.clients.publish(&topic, &OutboxItem::Message(frames));
        }
    }
}
