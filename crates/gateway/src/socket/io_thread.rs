//! [`IoThread`]: the thread that connects to the channels of a kernel, reads and writes.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::backlog::{Backlog, BacklogItem};
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::frame::{Frame, StoredFrame};
use cellwright_jupyter::message::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message as WebSocketMessage;
use tracing::debug;

use super::connection::SocketConnection;
use super::encoding::ReceivedMessage;
use super::sent_requests::SentRequests;
use super::{FRAMES_BEFORE_PARTS, Reconnection, SocketEvent};
use crate::error::ServerError;
use crate::rest::ServerClient;
use crate::server::Server;

/// Parts of at least this many bytes go to disk.
const SPOOL_THRESHOLD: usize = 4 << 20;

/// How often the server is asked for a sign of life while it sends nothing.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// How long the server may send nothing, not even an answer to a ping.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);

/// The delay before the connection is opened again, at first and at most.
const RETRY_DELAY: Duration = Duration::from_millis(25);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(2);

/// How long a connection may take to be opened again.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the first connection may take, if the server answers with errors that may pass.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that the last messages have to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

const STACK_SIZE: usize = 512 * 1024;

type Outgoing = mpsc::UnboundedReceiver<(Channel, Message)>;

/// The thread that connects to the channels of a kernel, reads and writes.
pub(super) struct IoThread {
    pub(super) server: Arc<Server>,
    pub(super) kernel: String,
    pub(super) session: String,
    pub(super) backlog: Arc<Backlog<SocketEvent>>,
}

/// Why reading and writing ended.
enum Break {
    /// The caller wants no more messages.
    Finished,
    /// The connection is broken. A message that could not be sent is in it.
    Broken(Option<Box<(Channel, Message)>>),
}

impl IoThread {
    /// Starts the thread. It ends when the sender of `outgoing` is dropped and all messages are written, or when the
    /// backlog is abandoned.
    pub(super) fn start(self, outgoing: Outgoing) -> io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        std::thread::Builder::new()
            .name("gateway-client".to_owned())
            .stack_size(STACK_SIZE)
            .spawn(move || {
                let backlog = Arc::clone(&self.backlog);
                runtime.block_on(async {
                    tokio::select! {
                        () = backlog.wait_abandoned() => {}
                        result = self.run(outgoing) => {
                            if let Err(error) = result {
                                debug!(%error, "channels closed");
                                backlog.push_event(SocketEvent::Closed(error));
                            }
                        }
                    }
                });
                // A pending name lookup must not delay the end.
                runtime.shutdown_background();
                backlog.finish();
            })
    }

    async fn run(self, mut outgoing: Outgoing) -> Result<(), ServerError> {
        // A separate client: connections belong to the runtime of this thread.
        let client = ServerClient::new(Arc::clone(&self.server))?;
        let mut connection = self.connect(&client).await?;
        self.backlog.push_event(SocketEvent::Opened);
        let mut sent = SentRequests::default();
        let mut unsent = None;
        loop {
            let broken = self
                .exchange(&mut connection, &mut outgoing, &mut sent, unsent.take())
                .await;
            match broken {
                Break::Finished => {
                    timeout(FLUSH_TIMEOUT, connection.close()).await.ok();
                    return Ok(());
                }
                Break::Broken(message) => unsent = message.map(|message| *message),
            }
            connection = self.reconnect(&client).await?;
            self.backlog
                .push_event(SocketEvent::Reconnected(Reconnection {
                    unconfirmed: sent.unconfirmed(),
                }));
        }
    }

    /// Reads and writes until the connection breaks, or `outgoing` is closed and all its messages are written.
    async fn exchange(
        &self,
        connection: &mut SocketConnection,
        outgoing: &mut Outgoing,
        sent: &mut SentRequests,
        unsent: Option<(Channel, Message)>,
    ) -> Break {
        let mut next = unsent;
        let mut last_received = Instant::now();
        let mut next_ping = last_received + PING_INTERVAL;
        loop {
            if let Some((channel, message)) = next.take() {
                let frame = connection.encoding.encode(channel, &message);
                // Part of the frame may have arrived, but a part of a frame has no effect.
                if connection.send(frame).await.is_err() {
                    return Break::Broken(Some(Box::new((channel, message))));
                }
                sent.push(channel, &message);
            }
            tokio::select! {
                biased;
                received = connection.next() => {
                    let Some(Ok(frame)) = received else {
                        return Break::Broken(None);
                    };
                    last_received = Instant::now();
                    next_ping = last_received + PING_INTERVAL;
                    match frame {
                        WebSocketMessage::Close(_) => return Break::Broken(None),
                        WebSocketMessage::Ping(_) | WebSocketMessage::Pong(_) => {}
                        frame => match connection.encoding.decode(frame) {
                            Some(message) => self.store(message, sent),
                            None => self.backlog.push_event(SocketEvent::Rejected),
                        },
                    }
                }
                message = outgoing.recv() => match message {
                    Some(message) => next = Some(message),
                    None => return Break::Finished,
                },
                () = sleep_until(next_ping) => {
                    if last_received.elapsed() >= SILENCE_TIMEOUT {
                        debug!("the server is silent");
                        return Break::Broken(None);
                    }
                    next_ping = Instant::now() + PING_INTERVAL;
                    if connection.send(WebSocketMessage::Ping(Bytes::new())).await.is_err() {
                        return Break::Broken(None);
                    }
                }
            }
        }
    }

    /// Puts a message into the backlog.
    fn store(&self, message: ReceivedMessage, sent: &mut SentRequests) {
        if let Some(parent) = message.parts.get(1) {
            sent.confirm(parent);
        }
        let frames = FRAMES_BEFORE_PARTS.into_iter().chain(message.parts);
        let frames = frames.map(|part| {
            if part.len() < SPOOL_THRESHOLD {
                return Frame::InMemory(part);
            }
            // If the disk is full, the part stays in memory.
            StoredFrame::new(&part).map_or(Frame::InMemory(part), Frame::OnDisk)
        });
        let item = BacklogItem::Frames(message.channel, frames.collect());
        self.backlog.push(item);
    }

    /// Opens the first connection.
    async fn connect(&self, client: &ServerClient) -> Result<SocketConnection, ServerError> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut delay = RETRY_DELAY;
        loop {
            match SocketConnection::open(client, &self.kernel, &self.session).await {
                // The server may know the kernel a moment later.
                Err(error) if error.is_transient() && Instant::now() + delay < deadline => {
                    debug!(%error, "the connection is opened again");
                }
                result => return result,
            }
            sleep(delay).await;
            delay = (delay * 2).min(RETRY_DELAY_MAX);
        }
    }

    /// Opens the connection again.
    async fn reconnect(&self, client: &ServerClient) -> Result<SocketConnection, ServerError> {
        let deadline = Instant::now() + RECONNECT_TIMEOUT;
        let mut delay = RETRY_DELAY;
        let mut was_unreachable = false;
        loop {
            let error = match SocketConnection::open(client, &self.kernel, &self.session).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            was_unreachable |= matches!(error, ServerError::Unreachable { .. });
            match error {
                ServerError::KernelGone { server, kernel } if was_unreachable => {
                    return Err(ServerError::ServerRestarted { server, kernel });
                }
                error if !error.is_transient() || Instant::now() + delay >= deadline => {
                    return Err(error);
                }
                error => debug!(%error, "the connection is opened again"),
            }
            sleep(delay).await;
            delay = (delay * 2).min(RETRY_DELAY_MAX);
        }
    }
}
