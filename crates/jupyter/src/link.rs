//! [`Link`]: a client's end of all five channels of a kernel.
//!
//! A kernel does not wait for its clients: what it publishes while nobody reads is lost after a
//! thousand messages. So a thread does nothing but read, into a backlog that never makes it wait, and
//! whoever runs cells takes from there in its own time.

mod backlog;
mod drain;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{Channel, Connection};
use crate::frame::Frame;
use crate::message::{Message, fresh_id};
use crate::wire::{Wire, WireError};
use crate::zmtp::{Limits, ZmtpError};
use backlog::Backlog;
use drain::Outgoing;

/// How to be a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// What messages may cost.
    pub limits: Limits,
    /// How often the kernel's heart is felt; `None`: not at all, because whoever uses the link knows
    /// otherwise whether the kernel lives.
    pub heartbeat: Option<Duration>,
    /// Whether sockets that are not there are waited for: a kernel that starts has none yet, one that
    /// runs has them.
    pub sockets: Sockets,
    /// How much of what was read and nobody has taken yet waits in memory; the rest waits on disk.
    pub memory_bytes: usize,
    /// A part of a message from this size on goes to disk while it comes, and stays there.
    pub store_from: usize,
    /// The same for what is printed, which does not stay.
    pub store_text_from: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            heartbeat: None,
            sockets: Sockets::WillCome,
            memory_bytes: 16 << 20,
            store_from: 4 << 20,
            // More than an ipykernel of ours sends of plain text at once.
            store_text_from: 8 << 20,
        }
    }
}

/// Whether a kernel's sockets are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// They appear while the kernel starts.
    WillCome,
    /// They should be there; if not, there is no kernel.
    Are,
}

/// What is heard from a kernel.
#[derive(Debug)]
pub enum Heard {
    /// A channel is open.
    Open(Channel),
    /// A message.
    Message(Channel, Box<Message>),
    /// Frames came that are no message, or none that we accept.
    Refused(Channel, WireError),
    /// A channel is closed: the kernel has gone, or has broken the rules of the connection.
    Closed(Channel, Option<ZmtpError>),
    /// The kernel's heart has not been felt for a while, or is felt again.
    Heartbeat(Beat),
}

/// How a kernel's heart does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It did not answer in time.
    Missed,
    /// It answers again.
    Felt,
}

/// What the thread hands over.
#[derive(Debug)]
enum Item {
    Open(Channel),
    Frames(Channel, Vec<Frame>),
    Closed(Channel, Option<ZmtpError>),
    Heartbeat(Beat),
}

/// A client's end of all five channels.
pub struct Link {
    wire: Wire,
    session: String,
    backlog: Arc<Backlog>,
    /// `None` once it is closing.
    outgoing: Option<mpsc::UnboundedSender<Outgoing>>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Begins to connect; the sockets may appear later.
    pub fn open(connection: &Connection, options: &Options) -> std::io::Result<Self> {
        let session = fresh_id();
        let backlog = Arc::new(Backlog::new(options.memory_bytes));
        let (sender, receiver) = mpsc::unbounded_channel();
        let drain = drain::Drain {
            connection: connection.clone(),
            options: options.clone(),
            // Shell and stdin must go by the same name: that is how a kernel knows whom to ask.
            identity: Bytes::from(session.clone()),
            backlog: Arc::clone(&backlog),
        };
        let thread = drain.start(receiver)?;
        Ok(Self {
            wire: Wire::new(&connection.key),
            session,
            backlog,
            outgoing: Some(sender),
            thread: Some(thread),
        })
    }

    /// What its messages are known by.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Sends a message as soon as its channel is open; what was sent before goes first.
    pub fn send(&self, channel: Channel, message: &Message) {
        let frames = self.wire.encode(message);
        if let Some(outgoing) = &self.outgoing {
            // If the thread is gone, so is the kernel, which is told otherwise.
            outgoing.send(Outgoing { channel, frames }).ok();
        }
    }

    /// The next thing that is heard. Cancel-safe. Once all channels are closed and everything was heard, it
    /// waits for ever.
    pub async fn next(&mut self) -> Heard {
        let item = self.backlog.next().await;
        self.heard(item)
    }

    /// The next thing, if it has come already.
    pub fn already(&mut self) -> Option<Heard> {
        let item = self.backlog.already()?;
        Some(self.heard(item))
    }

    /// Sends what is left to send, and closes all channels.
    pub async fn close(mut self) {
        self.outgoing = None;
        self.backlog.ended().await;
    }

    fn heard(&mut self, item: Item) -> Heard {
        match item {
            Item::Open(channel) => Heard::Open(channel),
            Item::Closed(channel, error) => Heard::Closed(channel, error),
            Item::Heartbeat(beat) => Heard::Heartbeat(beat),
            Item::Frames(channel, frames) => match self.wire.decode(frames) {
                Ok(message) => Heard::Message(channel, Box::new(message)),
                Err(error) => Heard::Refused(channel, error),
            },
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.outgoing = None;
        self.backlog.abandon();
        if let Some(thread) = self.thread.take() {
            // It ends at once; that it came to grief is of no interest any more.
            thread.join().ok();
        }
    }
}
