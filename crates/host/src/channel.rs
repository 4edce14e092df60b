//! The two ends of one request: [`RequestChannel`] for the client, [`ReplyChannel`] for the host. Both sides exchange
//! typed messages: over a socket as frames, within a process as values.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::connection::{Client, Connection};
use super::error::HostError;
use super::frame::{Frame, FrameError};
use super::protocol::ClientMessage;
use super::reply::{HostReply, ReplyHead};

/// Number of replies that may wait for an in-process client; then the host waits.
const REPLY_CAPACITY: usize = 16;

/// The client's end.
#[derive(Debug)]
pub(crate) enum RequestChannel {
    Socket(Box<Client>),
    InProcess {
        messages: mpsc::UnboundedSender<ClientMessage>,
        replies: mpsc::Receiver<HostReply>,
    },
}

/// The host's end.
#[derive(Debug)]
pub(crate) enum ReplyChannel<'a> {
    Socket(&'a mut Connection),
    InProcess {
        messages: mpsc::UnboundedReceiver<ClientMessage>,
        replies: mpsc::Sender<HostReply>,
    },
}

/// Both ends within a process.
pub(super) fn in_process() -> (RequestChannel, ReplyChannel<'static>) {
    let (to_host, from_client) = mpsc::unbounded_channel();
    let (to_client, from_host) = mpsc::channel(REPLY_CAPACITY);
    let client = RequestChannel::InProcess {
        messages: to_host,
        replies: from_host,
    };
    let host = ReplyChannel::InProcess {
        messages: from_client,
        replies: to_client,
    };
    (client, host)
}

impl RequestChannel {
    /// Process id of the host.
    pub(crate) fn host_pid(&self) -> u32 {
        match self {
            Self::Socket(client) => client.host.pid,
            Self::InProcess { .. } => std::process::id(),
        }
    }

    /// Returns the next reply. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<HostReply, HostError> {
        match self {
            Self::Socket(client) => {
                let frame = client.connection.next().await?;
                decode(frame.ok_or(HostError::Disconnected)?)
            }
            Self::InProcess { replies, .. } => replies.recv().await.ok_or(HostError::Disconnected),
        }
    }

    /// Sends a message to the running request.
    pub(crate) async fn send(&mut self, message: ClientMessage) -> Result<(), HostError> {
        match self {
            Self::Socket(client) => Ok(client.connection.send(&message).await?),
            Self::InProcess { messages, .. } => {
                messages.send(message).map_err(|_| HostError::Disconnected)
            }
        }
    }
}

fn decode(frame: Frame) -> Result<HostReply, HostError> {
    /// A reply, or the refusal of the request.
    #[derive(Deserialize)]
    struct Head {
        reply: Option<ReplyHead>,
        error: Option<Refusal>,
    }
    #[derive(Deserialize)]
    struct Refusal {
        code: String,
        message: String,
    }
    let head: Head = frame.parse()?;
    if let Some(Refusal { code, message }) = head.error {
        return Err(HostError::Refused { code, message });
    }
    let reply = head.reply.ok_or_else(|| {
        let error = serde::de::Error::custom("there is no member `reply`");
        HostError::InvalidReply(FrameError::InvalidJson(error))
    })?;
    Ok(HostReply::decode(reply, frame.payload)?)
}

impl ReplyChannel<'_> {
    /// Sends a reply.
    pub(crate) async fn send(&mut self, reply: HostReply) -> Result<(), FrameError> {
        match self {
            Self::Socket(connection) => {
                #[derive(Serialize)]
                struct Head {
                    reply: ReplyHead,
                }
                let (reply, payload) = reply.encode()?;
                connection.send_with(&Head { reply }, &payload).await
            }
            Self::InProcess { replies, .. } => {
                let sent = replies.send(reply).await;
                sent.map_err(|_| FrameError::Io(io::ErrorKind::BrokenPipe.into()))
            }
        }
    }

    /// Returns the next message of the client; `None` when the client is gone. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<ClientMessage>, FrameError> {
        match self {
            Self::Socket(connection) => match connection.next().await? {
                Some(frame) => frame.parse().map(Some),
                None => Ok(None),
            },
            Self::InProcess { messages, .. } => Ok(messages.recv().await),
        }
    }
}
