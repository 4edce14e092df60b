//! [`Server`]: a kernel's end of all five channels.
//!
//! A thread of its own accepts clients, reads what they ask and writes what they are told, so that the
//! heartbeat is answered whatever the kernel does meanwhile. Nobody waits for a client: each has a queue,
//! and one that lets its queue fill up is cut off rather than given a stream with holes.
//!
//! Sockets behave as `ZeroMQ`'s do: a client of shell, stdin or control is known by the identity that it
//! gives (or by a fresh one), and whoever comes later with the same identity takes its place, because
//! that is how a client looks that has lost its connection. Clients of iopub get what they subscribe
//! to, and are welcomed to it (`iopub_welcome`), so that they know from when on they miss nothing.

mod client;
mod clients;
mod house;
mod outbox;
mod speaker;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::connection::{Channel, Connection};
use crate::message::{Message, fresh_id};
use crate::publisher::Publisher;
use crate::wire::Wire;
use crate::zmtp::Limits;
use house::House;

pub use clients::Counts;
pub use speaker::{NoSuchClient, Speaker};

/// How to be a kernel.
#[derive(Clone, Debug)]
pub struct Options {
    /// What requests may cost.
    pub limits: Limits,
    /// How many clients a channel has at most; whoever comes then is turned away.
    pub connections: usize,
    /// How long a client may take to say who it is.
    pub handshake: Duration,
    /// How much may wait for a client before it is cut off.
    pub queue_bytes: usize,
    /// How long the last messages may take to go out.
    pub flush: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits {
                // Whoever can connect can make us hold as much, key or no key.
                message_bytes: 256 << 20,
                ..Limits::default()
            },
            connections: 64,
            handshake: Duration::from_secs(5),
            queue_bytes: 64 << 20,
            flush: Duration::from_secs(2),
        }
    }
}

/// What a kernel hears.
#[derive(Debug)]
pub enum Heard {
    /// Somebody who has the key says something. Its first identity is the way back.
    Request(Channel, Box<Message>),
    /// A client was cut off: it did not read, or subscribed to more than is allowed.
    Cut(Channel, Bytes),
}

/// A kernel's end of all five channels.
pub struct Server {
    connection: Connection,
    wire: Wire,
    speaker: Speaker,
    heard: Incoming,
    house: Arc<House>,
    /// Where the publishers' clocks run.
    runtime: tokio::runtime::Handle,
    ended: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What comes in, apart by channel: requests on shell must not keep those on control waiting.
struct Incoming {
    control: mpsc::Receiver<Vec<Bytes>>,
    stdin: mpsc::Receiver<Vec<Bytes>>,
    shell: mpsc::Receiver<Vec<Bytes>>,
    cut: mpsc::UnboundedReceiver<(Channel, Bytes)>,
}

enum Item {
    Frames(Channel, Vec<Bytes>),
    Cut(Channel, Bytes),
}

impl Server {
    /// Binds all five sockets, and lets clients in. A port of 0 means any; [`Self::connection`] tells
    /// which it has become.
    pub async fn bind(connection: &Connection, options: &Options) -> io::Result<Self> {
        let session = fresh_id();
        let (house, heard) = house::build(&connection.key, &session, options);
        let (bound, binding) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let thread = house::start(Arc::clone(&house), connection.clone(), bound, end)?;
        let (connection, runtime) = match binding.await {
            Ok(bound) => bound?,
            Err(_) => return Err(io::Error::other("the thread of the sockets has died")),
        };
        Ok(Self {
            wire: Wire::new(&connection.key),
            speaker: Speaker::new(Arc::clone(&house.clients), &connection.key, &session),
            connection,
            heard,
            house,
            runtime,
            ended: Some(ended),
            thread: Some(thread),
        })
    }

    /// Where its sockets are.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What its messages are known by.
    pub fn session(&self) -> &str {
        self.speaker.session()
    }

    /// What has been turned away so far.
    pub fn counts(&self) -> Counts {
        self.house.clients.counts()
    }

    /// The next thing that is heard; control before stdin before shell. Cancel-safe. What is not signed
    /// with the key, or came before, is counted and not heard.
    pub async fn next(&mut self) -> Heard {
        loop {
            let (channel, frames) = match self.heard.next().await {
                Item::Frames(channel, frames) => (channel, frames),
                Item::Cut(channel, identity) => return Heard::Cut(channel, identity),
            };
            match self.wire.decode(frames) {
                Ok(message) => return Heard::Request(channel, Box::new(message)),
                Err(_) => self.house.clients.refused(),
            }
        }
    }

    /// Says things from elsewhere, while this is waiting for what comes next.
    pub fn speaker(&self) -> Speaker {
        self.speaker.clone()
    }

    /// A publisher whose clock runs on this server's thread.
    pub fn publisher(&self) -> Publisher {
        let speaker = self.speaker();
        let session = speaker.session().to_owned();
        Publisher::new(&self.runtime, session, move |message| {
            speaker.publish(message);
        })
    }

    /// Sends a message to the client that its first identity names.
    pub fn send_to(&self, channel: Channel, message: &Message) -> Result<(), NoSuchClient> {
        self.speaker.send_to(channel, message)
    }

    /// Answers a request.
    pub fn reply(
        &self,
        channel: Channel,
        request: &Message,
        msg_type: &str,
        content: &Value,
    ) -> Result<(), NoSuchClient> {
        self.speaker.reply(channel, request, msg_type, content)
    }

    /// Asks the client that made a request for a line of text; the answer comes on stdin.
    pub fn ask(&self, request: &Message, prompt: &str, password: bool) -> Result<(), NoSuchClient> {
        self.speaker.ask(request, prompt, password)
    }

    /// Tells everybody who has subscribed to its first identity.
    pub fn publish(&self, message: &Message) {
        self.speaker.publish(message);
    }

    /// Lets nobody in any more, writes what is left to write, and closes all channels. When it returns,
    /// everything has gone out that a client would take in time.
    pub async fn close(mut self) {
        // Whoever wants to hand over a request now finds nobody, and does not wait.
        self.heard.close();
        self.house.close();
        if let Some(ended) = self.ended.take() {
            // If the thread is gone already, it has ended, too.
            ended.await.ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.house.abandon();
        if let Some(thread) = self.thread.take() {
            // It ends at once; that it came to grief is of no interest any more.
            thread.join().ok();
        }
    }
}

impl Incoming {
    async fn next(&mut self) -> Item {
        tokio::select! {
            biased;
            Some((channel, identity)) = self.cut.recv() => Item::Cut(channel, identity),
            Some(frames) = self.control.recv() => Item::Frames(Channel::Control, frames),
            Some(frames) = self.stdin.recv() => Item::Frames(Channel::Stdin, frames),
            Some(frames) = self.shell.recv() => Item::Frames(Channel::Shell, frames),
            else => std::future::pending().await,
        }
    }

    fn close(&mut self) {
        self.control.close();
        self.stdin.close();
        self.shell.close();
    }
}
