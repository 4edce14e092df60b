//! [`KernelClient`]: the client side of a kernel's five channels.
//!
//! A kernel does not wait for its clients: a message that it publishes is dropped once about a thousand messages wait
//! for the client. So one thread does nothing but I/O. It reads into a backlog that never makes it wait, and the caller
//! takes events from there at its own pace.

mod frame_store;
mod io_thread;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tracing::debug;

use crate::backlog::{Backlog, BacklogItem};
use crate::codec::{CodecError, MessageCodec};
use crate::connection::{Channel, Connection};
use crate::message::{Message, random_id};
use crate::zmtp::{Limits, ZmtpError};
use io_thread::OutgoingMessage;

pub use frame_store::{SpooledFrameWriter, SpoolingStore};

/// Options of a [`KernelClient`].
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Limits on received messages.
    pub limits: Limits,
    /// Time between two heartbeats. `None`: no heartbeat, because the caller knows otherwise whether the kernel is
    /// alive.
    pub heartbeat_interval: Option<Duration>,
    /// Whether to wait for sockets that do not exist yet.
    pub connect: ConnectMode,
    /// Bytes of unread messages that are kept in memory. Further ones go to disk.
    pub backlog_memory_bytes: usize,
    /// Frames of at least this many bytes are spooled to disk while they are received, and stay there.
    pub spool_threshold: usize,
    /// The same for frames of `stream` messages, whose text is passed on at once.
    pub stream_spool_threshold: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            heartbeat_interval: None,
            connect: ConnectMode::Wait,
            backlog_memory_bytes: 16 << 20,
            spool_threshold: 4 << 20,
            // More than an ipykernel with Cellwright's streams sends of plain text at once.
            stream_spool_threshold: 8 << 20,
        }
    }
}

/// Whether to wait for sockets that do not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectMode {
    /// Retry until they exist: the kernel is starting.
    Wait,
    /// Close the channel: the kernel should be running.
    FailFast,
}

/// An event on a channel.
#[derive(Debug)]
pub enum ClientEvent {
    /// A channel is connected.
    Opened(Channel),
    /// A message.
    Message(Channel, Box<Message>),
    /// The codec rejected the received frames.
    Rejected(Channel, CodecError),
    /// A channel is closed: the kernel has disconnected, or has violated the protocol.
    Closed(Channel, Option<ZmtpError>),
    /// The kernel's heartbeat has changed.
    Heartbeat(Heartbeat),
}

/// A change of the kernel's heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The kernel did not answer in time.
    Lost,
    /// The kernel answers again.
    Restored,
}

/// An event in the backlog, written by the I/O thread.
#[derive(Debug)]
enum ConnectionEvent {
    Opened(Channel),
    Closed(Channel, Option<ZmtpError>),
    Heartbeat(Heartbeat),
}

/// The client side of a kernel's five channels.
pub struct KernelClient {
    codec: MessageCodec,
    session: String,
    backlog: Arc<Backlog<ConnectionEvent>>,
    /// `None` once the client is closing.
    outgoing: Option<mpsc::UnboundedSender<OutgoingMessage>>,
    thread: Option<JoinHandle<()>>,
}

impl KernelClient {
    /// Starts to connect all channels. The kernel's sockets may appear later.
    pub fn open(connection: &Connection, options: &ClientOptions) -> std::io::Result<Self> {
        let session = random_id();
        let backlog = Arc::new(Backlog::new(options.backlog_memory_bytes));
        let (sender, receiver) = mpsc::unbounded_channel();
        let io_thread = io_thread::IoThread {
            connection: connection.clone(),
            options: options.clone(),
            // The same on shell and stdin: a kernel sends an input request to the identity that sent the cell.
            identity: Bytes::from(session.clone()),
            backlog: Arc::clone(&backlog),
        };
        let thread = io_thread.start(receiver)?;
        Ok(Self {
            codec: MessageCodec::new(&connection.key),
            session,
            backlog,
            outgoing: Some(sender),
            thread: Some(thread),
        })
    }

    /// The session id in the headers of this client's messages.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Queues a message. It is sent when its channel is open, after the earlier messages of the channel.
    pub fn send(&self, channel: Channel, message: &Message) {
        let frames = self.codec.encode(message);
        if let Some(outgoing) = &self.outgoing {
            // If the thread has ended, all channels are closed, which the events report.
            outgoing.send(OutgoingMessage { channel, frames }).ok();
        }
    }

    /// Waits for the next event. Cancel-safe. After the last event of the last open channel it waits forever.
    pub async fn next(&mut self) -> ClientEvent {
        let item = self.backlog.next().await;
        self.decode(item)
    }

    /// Returns the next event if it has already been received.
    pub fn try_next(&mut self) -> Option<ClientEvent> {
        let item = self.backlog.try_next()?;
        Some(self.decode(item))
    }

    /// Sends all queued messages, then closes all channels.
    pub async fn close(mut self) {
        self.outgoing = None;
        self.backlog.wait_finished().await;
    }

    fn decode(&mut self, item: BacklogItem<ConnectionEvent>) -> ClientEvent {
        match item {
            BacklogItem::Event(ConnectionEvent::Opened(channel)) => ClientEvent::Opened(channel),
            BacklogItem::Event(ConnectionEvent::Closed(channel, error)) => {
                ClientEvent::Closed(channel, error)
            }
            BacklogItem::Event(ConnectionEvent::Heartbeat(heartbeat)) => {
                ClientEvent::Heartbeat(heartbeat)
            }
            BacklogItem::Frames(channel, frames) => match self.codec.decode(frames) {
                Ok(message) => ClientEvent::Message(channel, Box::new(message)),
                Err(error) => {
                    debug!(?channel, reason = error.summary(), "message rejected");
                    ClientEvent::Rejected(channel, error)
                }
            },
        }
    }
}

impl Drop for KernelClient {
    fn drop(&mut self) {
        self.outgoing = None;
        self.backlog.abandon();
        if let Some(thread) = self.thread.take() {
            // The thread ends at once. A panic in it no longer matters.
            thread.join().ok();
        }
    }
}
