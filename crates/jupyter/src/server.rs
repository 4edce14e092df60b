//! [`Server`]: the kernel side of the five channels.
//!
//! A separate thread accepts clients, reads their requests and writes messages to them, so that the heartbeat is
//! answered whatever the kernel does. The server never waits for a client: each has a queue, and a client whose queue is
//! full is disconnected, so that no client gets a stream with gaps.
//!
//! Sockets behave as in `ZeroMQ`. A client of shell, stdin or control is addressed by the identity that it sends, or by a
//! random one. A later client with the same identity replaces the earlier one, so that a client can reconnect.
//! Clients of iopub get the topics that they subscribe to. Each subscription is confirmed with an
//! `iopub_welcome`, after which the client misses no message.

mod acceptor;
mod client_connection;
mod clients;
mod outbox;
mod sender;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

use crate::codec::MessageCodec;
use crate::connection::{Channel, Connection};
use crate::message::{Message, random_id};
use crate::publisher::Publisher;
use crate::zmtp::Limits;
use acceptor::ServerState;

pub use clients::ServerCounts;
pub use sender::{ClientNotConnected, MessageSender};

/// Options of a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limits on requests.
    pub limits: Limits,
    /// Number of connections to each channel. Further ones are rejected.
    pub max_connections: usize,
    /// Time that a client has for its handshake.
    pub handshake_timeout: Duration,
    /// Bytes that may wait for a client before it is disconnected.
    pub queue_bytes: usize,
    /// Time that the last messages have to be written.
    pub flush_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            limits: Limits {
                // A client without the key can make the server hold this much.
                message_bytes: 256 << 20,
                ..Limits::default()
            },
            max_connections: 64,
            handshake_timeout: Duration::from_secs(5),
            queue_bytes: 64 << 20,
            flush_timeout: Duration::from_secs(2),
        }
    }
}

/// An event on a channel.
#[derive(Debug)]
pub enum ServerEvent {
    /// A request from a client that has the key. Its first identity addresses the client.
    Request(Channel, Box<Message>),
    /// The server has disconnected a client that did not read, or subscribed to more than is allowed.
    Disconnected(Channel, Bytes),
}

/// The kernel side of the five channels.
pub struct Server {
    connection: Connection,
    codec: MessageCodec,
    sender: MessageSender,
    requests: RequestQueues,
    state: Arc<ServerState>,
    /// Runs the tasks of the publishers.
    runtime: tokio::runtime::Handle,
    ended: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Received requests by channel: requests on shell must not delay those on control.
struct RequestQueues {
    control: mpsc::Receiver<Vec<Bytes>>,
    stdin: mpsc::Receiver<Vec<Bytes>>,
    shell: mpsc::Receiver<Vec<Bytes>>,
    disconnects: mpsc::UnboundedReceiver<(Channel, Bytes)>,
}

enum QueueItem {
    Frames(Channel, Vec<Bytes>),
    Disconnected(Channel, Bytes),
}

impl Server {
    /// Binds all five sockets and starts to accept clients. A port of 0 means any free one; [`Self::connection`] returns
    /// the actual ports.
    pub async fn bind(connection: &Connection, options: &ServerOptions) -> io::Result<Self> {
        let session = random_id();
        let (state, requests) = acceptor::build(&connection.key, &session, options);
        let (bound, binding) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let thread = acceptor::start(Arc::clone(&state), connection.clone(), bound, end)?;
        let (connection, runtime) = match binding.await {
            Ok(bound) => bound?,
            Err(_) => return Err(io::Error::other("the server thread has died")),
        };
        Ok(Self {
            codec: MessageCodec::new(&connection.key),
            sender: MessageSender::new(Arc::clone(&state.clients), &connection.key, &session),
            connection,
            requests,
            state,
            runtime,
            ended: Some(ended),
            thread: Some(thread),
        })
    }

    /// Addresses of the sockets, and the key.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The session id in the headers of this server's messages.
    pub fn session(&self) -> &str {
        self.sender.session()
    }

    /// Counts of rejected messages and clients so far.
    pub fn counts(&self) -> ServerCounts {
        self.state.clients.counts()
    }

    /// Waits for the next event; control before stdin before shell. Cancel-safe. Messages that are not signed with the
    /// key, and replays, are counted and dropped.
    pub async fn next(&mut self) -> ServerEvent {
        loop {
            let (channel, frames) = match self.requests.next().await {
                QueueItem::Frames(channel, frames) => (channel, frames),
                QueueItem::Disconnected(channel, identity) => {
                    return ServerEvent::Disconnected(channel, identity);
                }
            };
            match self.codec.decode(frames) {
                Ok(message) => return ServerEvent::Request(channel, Box::new(message)),
                Err(error) => {
                    debug!(?channel, reason = error.summary(), "message rejected");
                    self.state.clients.count_invalid_message();
                }
            }
        }
    }

    /// A handle that sends messages while this server waits in [`Self::next`].
    pub fn sender(&self) -> MessageSender {
        self.sender.clone()
    }

    /// A publisher whose task runs on this server's thread.
    pub fn publisher(&self) -> Publisher {
        let sender = self.sender();
        let session = sender.session().to_owned();
        Publisher::new(&self.runtime, session, move |message| {
            sender.publish(message);
        })
    }

    /// Sends a message to the client that its first identity addresses.
    pub fn send_to(&self, channel: Channel, message: &Message) -> Result<(), ClientNotConnected> {
        self.sender.send_to(channel, message)
    }

    /// Sends a reply to a request.
    pub fn reply(
        &self,
        channel: Channel,
        request: &Message,
        msg_type: &str,
        content: &Value,
    ) -> Result<(), ClientNotConnected> {
        self.sender.reply(channel, request, msg_type, content)
    }

    /// Sends an `input_request` to the client of a request. The client replies on stdin.
    pub fn request_input(
        &self,
        request: &Message,
        prompt: &str,
        password: bool,
    ) -> Result<(), ClientNotConnected> {
        self.sender.request_input(request, prompt, password)
    }

    /// Publishes a message to all clients that have subscribed to its first identity.
    pub fn publish(&self, message: &Message) {
        self.sender.publish(message);
    }

    /// Stops accepting clients, writes all queued messages and closes all channels. Messages that a client does not read
    /// within [`ServerOptions::flush_timeout`] are lost.
    pub async fn close(mut self) {
        // Connections that queue a request now must not wait.
        self.requests.close();
        self.state.close();
        if let Some(ended) = self.ended.take() {
            // An error means that the thread has already ended.
            ended.await.ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.abandon();
        if let Some(thread) = self.thread.take() {
            // The thread ends at once. A panic in it no longer matters.
            thread.join().ok();
        }
    }
}

impl RequestQueues {
    async fn next(&mut self) -> QueueItem {
        tokio::select! {
            biased;
            Some((channel, identity)) = self.disconnects.recv() => QueueItem::Disconnected(channel, identity),
            Some(frames) = self.control.recv() => QueueItem::Frames(Channel::Control, frames),
            Some(frames) = self.stdin.recv() => QueueItem::Frames(Channel::Stdin, frames),
            Some(frames) = self.shell.recv() => QueueItem::Frames(Channel::Shell, frames),
            else => std::future::pending().await,
        }
    }

    fn close(&mut self) {
        self.control.close();
        self.stdin.close();
        self.shell.close();
    }
}
