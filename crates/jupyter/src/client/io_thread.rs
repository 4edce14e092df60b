//! [`IoThread`]: the thread that reads from a kernel's sockets and writes to them.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::frame_store::SpoolingStore;
use super::{ClientOptions, ConnectMode, ConnectionEvent, Heartbeat};
use crate::backlog::{Backlog, BacklogItem};
use crate::connection::{Channel, Connection};
use crate::zmtp::{self, Peer, ReadHalf, Reader, ReceivedItem, SocketType, Writer, ZmtpError};

/// Time before a socket that does not exist yet is tried again, at first and at most.
const RETRY_DELAY: Duration = Duration::from_millis(2);
const RETRY_DELAY_MAX: Duration = Duration::from_millis(20);

/// Number of heartbeat intervals without an answer after which the heartbeat counts as lost.
const MISSED_BEATS_LIMIT: u32 = 5;

/// Number of answers to `PING` that wait to be written.
const PONG_QUEUE_CAPACITY: usize = 4;

/// Time that the last messages have to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread needs little stack: it only reads and writes.
const STACK_SIZE: usize = 256 * 1024;

/// A message to send.
pub(super) struct OutgoingMessage {
    pub(super) channel: Channel,
    pub(super) frames: Vec<Bytes>,
}

/// The thread that reads from a kernel's sockets into the backlog and writes queued messages.
#[derive(Clone)]
pub(super) struct IoThread {
    pub(super) connection: Connection,
    pub(super) options: ClientOptions,
    /// The routing identity on shell, stdin and control.
    pub(super) identity: Bytes,
    pub(super) backlog: Arc<Backlog<ConnectionEvent>>,
}

impl IoThread {
    /// Starts the thread. It ends when the sender of `outgoing` is dropped and all messages are written, or when the
    /// backlog is abandoned.
    pub(super) fn start(
        self,
        outgoing: mpsc::UnboundedReceiver<OutgoingMessage>,
    ) -> io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        std::thread::Builder::new()
            .name("jupyter-client".to_owned())
            .stack_size(STACK_SIZE)
            .spawn(move || {
                let backlog = Arc::clone(&self.backlog);
                runtime.block_on(async {
                    tokio::select! {
                        () = backlog.wait_abandoned() => {}
                        () = self.run(outgoing) => {}
                    }
                });
                // A pending name lookup must not delay the end.
                runtime.shutdown_background();
                backlog.finish();
            })
    }

    async fn run(self, mut outgoing: mpsc::UnboundedReceiver<OutgoingMessage>) {
        let mut readers = JoinSet::new();
        let mut dealers = JoinSet::new();
        readers.spawn(self.clone().run_iopub());
        if let Some(interval) = self.options.heartbeat_interval {
            readers.spawn(self.clone().monitor_heartbeat(interval));
        }
        let mut queue_for = |channel| {
            let (queue, outgoing) = mpsc::unbounded_channel();
            dealers.spawn(self.clone().run_dealer(channel, outgoing));
            queue
        };
        let shell = queue_for(Channel::Shell);
        let stdin = queue_for(Channel::Stdin);
        let control = queue_for(Channel::Control);
        while let Some(OutgoingMessage { channel, frames }) = outgoing.recv().await {
            let queue = match channel {
                Channel::Shell => &shell,
                Channel::Stdin => &stdin,
                Channel::Control => &control,
                // Clients send no messages there.
                Channel::Iopub | Channel::Heartbeat => continue,
            };
            queue.send(frames).ok();
        }
        // The queued messages are written, then the connections close.
        drop((shell, stdin, control));
        let flushed = async { while dealers.join_next().await.is_some() {} };
        timeout(FLUSH_TIMEOUT, flushed).await.ok();
    }

    /// Reads and writes on shell, stdin or control until the kernel has disconnected, or `outgoing` is closed and all
    /// its messages are written.
    async fn run_dealer(self, channel: Channel, outgoing: mpsc::UnboundedReceiver<Vec<Bytes>>) {
        let error = match self.connect(channel, SocketType::Dealer).await {
            Ok(Peer { reader, writer, .. }) => {
                self.backlog.push_event(ConnectionEvent::Opened(channel));
                self.read_and_write(channel, reader, writer, outgoing).await
            }
            Err(error) => Some(error),
        };
        self.backlog
            .push_event(ConnectionEvent::Closed(channel, error));
    }

    /// Subscribes to iopub, then reads until the kernel has disconnected.
    async fn run_iopub(self) {
        let channel = Channel::Iopub;
        let error = match self.connect(channel, SocketType::Sub).await {
            Ok(Peer {
                reader, mut writer, ..
            }) => {
                // To all topics.
                let subscribed = writer.send(&[Bytes::from_static(b"\x01")]).await;
                match subscribed {
                    Ok(()) => {
                        self.backlog.push_event(ConnectionEvent::Opened(channel));
                        // Nothing else is sent on iopub.
                        let (_queue, outgoing) = mpsc::unbounded_channel();
                        self.read_and_write(channel, reader, writer, outgoing).await
                    }
                    Err(error) => unless_disconnected(error),
                }
            }
            Err(error) => Some(error),
        };
        self.backlog
            .push_event(ConnectionEvent::Closed(channel, error));
    }

    /// Reads and writes until the kernel has disconnected. Returns its violation of the protocol, if there was one.
    async fn read_and_write(
        &self,
        channel: Channel,
        reader: Reader,
        writer: Writer,
        outgoing: mpsc::UnboundedReceiver<Vec<Bytes>>,
    ) -> Option<ZmtpError> {
        let store = SpoolingStore::new(self.options.spool_threshold)
            .with_stream_threshold(self.options.stream_spool_threshold)
            .with_signing_key(&self.connection.key);
        let reader = reader.with_store(store);
        let (pong_sender, pongs) = mpsc::channel(PONG_QUEUE_CAPACITY);
        let mut reading = std::pin::pin!(self.read_messages(channel, reader, &pong_sender));
        tokio::select! {
            error = &mut reading => error,
            // The writer has closed its half. The kernel closes the other half when it has read everything: to drop
            // the connection earlier could lose messages on their way.
            () = write_messages(outgoing, pongs, writer) => reading.await,
        }
    }

    async fn read_messages(
        &self,
        channel: Channel,
        mut reader: Reader<ReadHalf, SpoolingStore>,
        pong_sender: &mpsc::Sender<Bytes>,
    ) -> Option<ZmtpError> {
        loop {
            match reader.next().await {
                Ok(Some(ReceivedItem::Message(frames))) => {
                    self.backlog.push(BacklogItem::Frames(channel, frames));
                }
                Ok(Some(ReceivedItem::Command(name, data))) => {
                    if name == "PING" {
                        // A full queue means that the peer does not read: it needs no further answer.
                        pong_sender.try_send(zmtp::pong(&data)).ok();
                    }
                }
                Ok(None) => return None,
                Err(error) => return unless_disconnected(error),
            }
        }
    }

    /// Connects a channel, in [`ConnectMode::Wait`] as soon as its socket exists.
    async fn connect(&self, channel: Channel, socket_type: SocketType) -> Result<Peer, ZmtpError> {
        let endpoint = self.connection.endpoint(channel);
        let retry = self.options.connect == ConnectMode::Wait;
        let mut delay = RETRY_DELAY;
        loop {
            let identity = match socket_type {
                SocketType::Dealer => self.identity.as_ref(),
                _ => &[],
            };
            match zmtp::connect(&endpoint, socket_type, identity, self.options.limits).await {
                Err(ZmtpError::Io(error)) if retry && is_retryable(&error) => {
                    sleep(delay).await;
                    delay = (delay + RETRY_DELAY / 4).min(RETRY_DELAY_MAX);
                }
                result => return result,
            }
        }
    }

    /// Sends a heartbeat at intervals. Reports when the kernel stops answering, and when it answers again.
    async fn monitor_heartbeat(self, interval: Duration) {
        let mut missed = 0;
        let mut connecting = std::pin::pin!(self.connect(Channel::Heartbeat, SocketType::Req));
        let limit = interval * MISSED_BEATS_LIMIT;
        let connected = if let Ok(connected) = timeout(limit, &mut connecting).await {
            connected
        } else {
            // A peer that accepts the connection and does not complete the handshake has no heartbeat.
            missed = MISSED_BEATS_LIMIT;
            self.backlog
                .push_event(ConnectionEvent::Heartbeat(Heartbeat::Lost));
            connecting.await
        };
        let Ok(mut peer) = connected else {
            return;
        };
        loop {
            let ping = [Bytes::new(), Bytes::from_static(b"ping")];
            if peer.writer.send(&ping).await.is_err() {
                return;
            }
            loop {
                match timeout(interval, peer.reader.next()).await {
                    Ok(Ok(Some(ReceivedItem::Message(_)))) => break,
                    Ok(Ok(Some(ReceivedItem::Command(name, data)))) => {
                        let pong = zmtp::pong(&data);
                        if name == "PING" && peer.writer.send_command("PONG", &pong).await.is_err()
                        {
                            return;
                        }
                    }
                    // The other channels report that the connection is closed.
                    Ok(_) => return,
                    Err(_) => {
                        missed += 1;
                        if missed == MISSED_BEATS_LIMIT {
                            self.backlog
                                .push_event(ConnectionEvent::Heartbeat(Heartbeat::Lost));
                        }
                    }
                }
            }
            if missed >= MISSED_BEATS_LIMIT {
                self.backlog
                    .push_event(ConnectionEvent::Heartbeat(Heartbeat::Restored));
            }
            missed = 0;
            sleep(interval).await;
        }
    }
}

/// Writes messages and answers to `PING` until `outgoing` is closed, then closes the writing half.
async fn write_messages(
    mut outgoing: mpsc::UnboundedReceiver<Vec<Bytes>>,
    mut pongs: mpsc::Receiver<Bytes>,
    mut writer: Writer,
) {
    loop {
        let written = tokio::select! {
            message = outgoing.recv() => match message {
                Some(frames) => writer.send(&frames).await,
                None => break,
            },
            Some(data) = pongs.recv() => writer.send_command("PONG", &data).await,
        };
        if written.is_err() {
            // The reader of this channel reports the reason.
            return std::future::pending().await;
        }
    }
    writer.close().await;
}

/// Returns the error of a connection, unless the peer has only disconnected before it read everything.
fn unless_disconnected(error: ZmtpError) -> Option<ZmtpError> {
    match error {
        ZmtpError::Io(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            ) =>
        {
            None
        }
        error => Some(error),
    }
}

/// Whether a later attempt to connect may succeed: the socket's file or its listener may not exist yet.
fn is_retryable(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof,
        WouldBlock,
    };
    matches!(
        error.kind(),
        NotFound
            | ConnectionRefused
            | ConnectionReset
            | ConnectionAborted
            | BrokenPipe
            | UnexpectedEof
            // The listener's queue is full.
            | WouldBlock
    )
}
