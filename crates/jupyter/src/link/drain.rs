//! [`Drain`]: the thread that does nothing but read from a kernel, and write what is to be sent.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::backlog::Backlog;
use super::{Beat, Item, Options, Sockets};
use crate::connection::{Channel, Connection};
use crate::frame::Frame;
use crate::zmtp::{self, Incoming, Peer, Reader, Role, Writer, ZmtpError};

/// How long a socket that is not there yet is left alone before it is tried again, at first and at last.
const RETRY: Duration = Duration::from_millis(2);
const RETRY_SLOWLY: Duration = Duration::from_millis(20);

/// How many times a heart must have missed its beat.
const MISSES: u32 = 5;

/// How many answers to a `PING` wait.
const PONGS: usize = 4;

/// How long the last messages may take to go out.
const FLUSH: Duration = Duration::from_secs(1);

/// It reads and writes, and keeps nothing.
const STACK_BYTES: usize = 256 * 1024;

/// A message to send.
pub(super) struct Outgoing {
    pub(super) channel: Channel,
    pub(super) frames: Vec<Bytes>,
}

/// What the thread needs.
#[derive(Clone)]
pub(super) struct Drain {
    pub(super) connection: Connection,
    pub(super) options: Options,
    pub(super) identity: Bytes,
    pub(super) backlog: Arc<Backlog>,
}

impl Drain {
    /// Starts the thread. It ends when there is nothing to be sent any more and nobody to send it, or
    /// when its backlog is abandoned.
    pub(super) fn start(
        self,
        outgoing: mpsc::UnboundedReceiver<Outgoing>,
    ) -> io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        std::thread::Builder::new()
            .name("jupyter-drain".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let backlog = Arc::clone(&self.backlog);
                runtime.block_on(async {
                    tokio::select! {
                        () = backlog.is_abandoned() => {}
                        () = self.run(outgoing) => {}
                    }
                });
                // A name that is still being looked up must not keep anybody waiting.
                runtime.shutdown_background();
                backlog.end();
            })
    }

    async fn run(self, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
        let mut listening = JoinSet::new();
        let mut talking = JoinSet::new();
        listening.spawn(self.clone().subscribe());
        if let Some(interval) = self.options.heartbeat {
            listening.spawn(self.clone().feel(interval));
        }
        let mut post = |channel| {
            let (slot, letters) = mpsc::unbounded_channel();
            talking.spawn(self.clone().talk(channel, letters));
            slot
        };
        let shell = post(Channel::Shell);
        let stdin = post(Channel::Stdin);
        let control = post(Channel::Control);
        while let Some(Outgoing { channel, frames }) = outgoing.recv().await {
            let slot = match channel {
                Channel::Shell => &shell,
                Channel::Stdin => &stdin,
                Channel::Control => &control,
                // Nothing can be said there.
                Channel::Iopub | Channel::Heartbeat => continue,
            };
            slot.send(frames).ok();
        }
        // What was to be sent goes out; then the connections close.
        drop((shell, stdin, control));
        let sent = async { while talking.join_next().await.is_some() {} };
        timeout(FLUSH, sent).await.ok();
    }

    /// Reads and writes on one of the channels that go both ways, until the other side has gone or there
    /// is nothing more to be written.
    async fn talk(self, channel: Channel, letters: mpsc::UnboundedReceiver<Vec<Bytes>>) {
        let closed = match self.connect(channel, Role::Dealer).await {
            Ok(Peer { reader, writer, .. }) => {
                self.backlog.push(Item::Open(channel));
                self.exchange(channel, reader, writer, letters).await
            }
            Err(error) => Some(error),
        };
        self.backlog.push(Item::Closed(channel, closed));
    }

    async fn subscribe(self) {
        let channel = Channel::Iopub;
        let closed = match self.connect(channel, Role::Sub).await {
            Ok(Peer {
                reader, mut writer, ..
            }) => {
                // Everything.
                let subscribed = writer.send(&[Bytes::from_static(b"\x01")]).await;
                match subscribed {
                    Ok(()) => {
                        self.backlog.push(Item::Open(channel));
                        // Nothing else is ever said here.
                        let (_silent, letters) = mpsc::unbounded_channel();
                        self.exchange(channel, reader, writer, letters).await
                    }
                    Err(error) => unless_gone(error),
                }
            }
            Err(error) => Some(error),
        };
        self.backlog.push(Item::Closed(channel, closed));
    }

    /// Reads and writes until the other side is gone; what it did wrong, if it did not just go.
    async fn exchange(
        &self,
        channel: Channel,
        reader: Reader,
        writer: Writer,
        letters: mpsc::UnboundedReceiver<Vec<Bytes>>,
    ) -> Option<ZmtpError> {
        let reader = reader
            .storing(self.options.store_from)
            .storing_text(self.options.store_text_from)
            .signed_with(&self.connection.key);
        let (ponger, pongs) = mpsc::channel(PONGS);
        let mut read = std::pin::pin!(self.read(channel, reader, &ponger));
        tokio::select! {
            closed = &mut read => closed,
            // Once it sees that we have gone, it goes, too, and has read everything: if we tore the
            // connection down before, what is still under way could be lost.
            () = write(letters, pongs, writer) => read.await,
        }
    }

    async fn read(
        &self,
        channel: Channel,
        mut reader: Reader,
        ponger: &mpsc::Sender<Bytes>,
    ) -> Option<ZmtpError> {
        loop {
            match reader.next().await {
                Ok(Some(Incoming::Message(frames))) => {
                    let frames = frames.into_iter().map(Frame::Held).collect();
                    self.backlog.push(Item::Frames(channel, frames));
                }
                Ok(Some(Incoming::Large(frames))) => {
                    self.backlog.push(Item::Frames(channel, frames));
                }
                Ok(Some(Incoming::Command(name, carries))) => {
                    if name == "PING" {
                        // Whoever asks faster than he listens has his answer.
                        ponger.try_send(zmtp::pong(&carries)).ok();
                    }
                }
                Ok(None) => return None,
                Err(error) => return unless_gone(error),
            }
        }
    }

    /// Connects as soon as the socket is there.
    async fn connect(&self, channel: Channel, role: Role) -> Result<Peer, ZmtpError> {
        let endpoint = self.connection.endpoint(channel);
        let wait = self.options.sockets == Sockets::WillCome;
        let mut pause = RETRY;
        loop {
            let identity = match role {
                Role::Dealer => self.identity.as_ref(),
                _ => &[],
            };
            match zmtp::connect(&endpoint, role, identity, self.options.limits).await {
                Err(ZmtpError::Io(error)) if wait && may_come(&error) => {
                    sleep(pause).await;
                    pause = (pause + RETRY / 4).min(RETRY_SLOWLY);
                }
                done => return done,
            }
        }
    }

    /// Feels the kernel's heart from time to time.
    async fn feel(self, interval: Duration) {
        let mut missed = 0;
        let mut connecting = std::pin::pin!(self.connect(Channel::Heartbeat, Role::Req));
        let connected = if let Ok(connected) = timeout(interval * MISSES, &mut connecting).await {
            connected
        } else {
            // Somebody lets us in and says nothing: that is no beat.
            missed = MISSES;
            self.backlog.push(Item::Heartbeat(Beat::Missed));
            connecting.await
        };
        let Ok(mut peer) = connected else {
            return;
        };
        loop {
            let beat = [Bytes::new(), Bytes::from_static(b"ping")];
            if peer.writer.send(&beat).await.is_err() {
                return;
            }
            loop {
                match timeout(interval, peer.reader.next()).await {
                    Ok(Ok(Some(Incoming::Message(_) | Incoming::Large(_)))) => break,
                    Ok(Ok(Some(Incoming::Command(name, carries)))) => {
                        let pong = zmtp::pong(&carries);
                        if name == "PING" && peer.writer.command("PONG", &pong).await.is_err() {
                            return;
                        }
                    }
                    // That the connection is gone is told by the other channels.
                    Ok(_) => return,
                    Err(_) => {
                        missed += 1;
                        if missed == MISSES {
                            self.backlog.push(Item::Heartbeat(Beat::Missed));
                        }
                    }
                }
            }
            if missed >= MISSES {
                self.backlog.push(Item::Heartbeat(Beat::Felt));
            }
            missed = 0;
            sleep(interval).await;
        }
    }
}

/// Writes until there will be nothing more to write.
async fn write(
    mut letters: mpsc::UnboundedReceiver<Vec<Bytes>>,
    mut pongs: mpsc::Receiver<Bytes>,
    mut writer: Writer,
) {
    loop {
        let written = tokio::select! {
            letter = letters.recv() => match letter {
                Some(frames) => writer.send(&frames).await,
                None => break,
            },
            Some(context) = pongs.recv() => writer.command("PONG", &context).await,
        };
        if written.is_err() {
            // Whoever reads from this channel says what has become of the kernel.
            return std::future::pending().await;
        }
    }
    writer.close().await;
}

/// What went wrong with a connection, if it is not just that the other side has gone without hearing us out.
fn unless_gone(error: ZmtpError) -> Option<ZmtpError> {
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

/// Whether a socket may still appear: its file, its listener, or somebody behind it.
fn may_come(error: &io::Error) -> bool {
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
            // Too many others are waiting to be let in.
            | WouldBlock
    )
}
