//! [`KernelSocket`]: the channels of a kernel on a server, over one WebSocket that is opened again when it breaks.

mod connection;
mod encoding;
mod io_thread;
mod sent_requests;

use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use cellwright_jupyter::backlog::{Backlog, BacklogItem};
use cellwright_jupyter::codec::MessageCodec;
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::{Message, random_id};
use tokio::sync::mpsc;
use tracing::debug;

use crate::error::ServerError;
use crate::rest::ServerClient;
use io_thread::IoThread;

/// Bytes of unread messages that are kept in memory. Further ones go to disk.
const BACKLOG_MEMORY_MAX: usize = 16 << 20;

/// An event of a [`KernelSocket`].
#[derive(Debug)]
pub enum SocketEvent {
    /// All channels are open.
    Opened,
    /// A message.
    Message(Channel, Box<Message>),
    /// The server sent something that is not a message.
    Rejected,
    /// The connection broke and is open again.
    Reconnected(Reconnection),
    /// The connection is closed for good.
    Closed(ServerError),
}

/// A connection that broke and is open again.
#[derive(Clone, Debug)]
pub struct Reconnection {
    /// Requests that were sent before, and that nothing shows to have arrived.
    pub unconfirmed: Vec<String>,
}

/// The channels of a kernel on a server.
///
/// One thread does nothing but I/O. It stores what the caller has not taken yet, if necessary on disk. When the connection
/// breaks, it connects again with the same session id: the server sends what it has kept meanwhile.
pub struct KernelSocket {
    session: String,
    codec: MessageCodec,
    backlog: Arc<Backlog<SocketEvent>>,
    /// `None` once the socket is closing.
    outgoing: Option<mpsc::UnboundedSender<(Channel, Message)>>,
    thread: Option<JoinHandle<()>>,
}

impl KernelSocket {
    /// Starts to connect to the kernel `kernel`.
    pub fn open(client: &ServerClient, kernel: &str) -> std::io::Result<Self> {
        let session = random_id();
        let backlog = Arc::new(Backlog::new(BACKLOG_MEMORY_MAX));
        let (outgoing, receiver) = mpsc::unbounded_channel();
        let io_thread = IoThread {
            server: client.shared_server(),
            kernel: kernel.to_owned(),
            session: session.clone(),
            backlog: Arc::clone(&backlog),
        };
        let thread = io_thread.start(receiver)?;
        Ok(Self {
            session,
            codec: MessageCodec::new(""),
            backlog,
            outgoing: Some(outgoing),
            thread: Some(thread),
        })
    }

    /// The session id in the headers of this client's messages.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Queues a message. It is sent when the connection is open.
    pub fn send(&self, channel: Channel, message: &Message) {
        if let Some(outgoing) = &self.outgoing {
            // If the thread has ended, an event has reported why.
            outgoing.send((channel, message.clone())).ok();
        }
    }

    /// Waits for the next event. Cancel-safe. After the last event it waits forever.
    pub async fn next(&mut self) -> SocketEvent {
        let item = self.backlog.next().await;
        self.decode(item)
    }

    /// Returns the next event if it has already been received.
    pub fn try_next(&mut self) -> Option<SocketEvent> {
        let item = self.backlog.try_next()?;
        Some(self.decode(item))
    }

    /// Sends all queued messages, then closes the connection.
    pub async fn close(mut self) {
        self.outgoing = None;
        self.backlog.wait_finished().await;
    }

    fn decode(&mut self, item: BacklogItem<SocketEvent>) -> SocketEvent {
        match item {
            BacklogItem::Event(event) => event,
            BacklogItem::Frames(channel, frames) => match self.codec.decode(frames) {
                Ok(message) => SocketEvent::Message(channel, Box::new(message)),
                Err(error) => {
                    debug!(?channel, %error, "message rejected");
                    SocketEvent::Rejected
                }
            },
        }
    }
}

impl Drop for KernelSocket {
    fn drop(&mut self) {
        self.outgoing = None;
        self.backlog.abandon();
        if let Some(thread) = self.thread.take() {
            // The thread ends at once. A panic in it no longer matters.
            thread.join().ok();
        }
    }
}

/// The frames before a message: the end of the routing identities, and no signature. The server has checked the
/// kernel's.
const FRAMES_BEFORE_PARTS: [Bytes; 2] = [Bytes::from_static(b"<IDS|MSG>"), Bytes::from_static(b"")];
