//! [`Speaker`]: what a kernel says to its clients.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::clients::Clients;
use super::outbox::Letter;
use crate::connection::Channel;
use crate::message::Message;
use crate::wire::Wire;

/// There is no client with that identity on that channel, or none any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client is not connected")]
pub struct NoSuchClient;

/// Says things to clients. It never waits for one.
#[derive(Clone)]
pub struct Speaker {
    clients: Arc<Clients>,
    wire: Arc<Wire>,
    session: Arc<str>,
}

impl Speaker {
    pub(super) fn new(clients: Arc<Clients>, key: &str, session: &str) -> Self {
        Self {
            clients,
            wire: Arc::new(Wire::new(key)),
            session: session.into(),
        }
    }

    /// What the server's messages are known by.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Sends a message to the client that its first identity names.
    pub fn send_to(&self, channel: Channel, message: &Message) -> Result<(), NoSuchClient> {
        let identity = message.identities.first().ok_or(NoSuchClient)?;
        let frames = self.wire.encode(message);
        let letter = Letter::Message(Arc::from(&frames[1..]));
        if self.clients.send(channel, identity, letter) {
            Ok(())
        } else {
            Err(NoSuchClient)
        }
    }

    /// Answers a request.
    pub fn reply(
        &self,
        channel: Channel,
        request: &Message,
        msg_type: &str,
        content: &Value,
    ) -> Result<(), NoSuchClient> {
        let reply = request.reply(msg_type, &self.session, content);
        self.send_to(channel, &reply)
    }

    /// Asks the client that made a request for a line of text; the answer comes on stdin.
    pub fn ask(&self, request: &Message, prompt: &str, password: bool) -> Result<(), NoSuchClient> {
        let content = json!({ "prompt": prompt, "password": password });
        self.reply(Channel::Stdin, request, "input_request", &content)
    }

    /// Tells everybody who has subscribed to its first identity.
    pub fn publish(&self, message: &Message) {
        let frames: Arc<[Bytes]> = self.wire.encode(message).into();
        if let Some(topic) = frames.first().cloned() {
            self.clients.publish(&topic, &Letter::Message(frames));
        }
    }
}
