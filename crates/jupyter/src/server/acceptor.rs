//! The server thread: binds the sockets, accepts clients and serves them.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::clients::Clients;
use super::{RequestQueues, ServerOptions, client_connection};
use crate::codec::MessageCodec;
use crate::connection::{Channel, Connection, Ports, Transport};
use crate::zmtp::{Endpoint, Listener};

/// Number of requests of a channel that wait for the kernel. Further ones stay in their connections.
const REQUEST_QUEUE_CAPACITY: usize = 16;

/// Time before the next attempt to accept a connection when the system has no descriptors left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The thread needs little stack: it only reads and writes.
const STACK_SIZE: usize = 256 * 1024;

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

/// The state that all connections share.
pub(super) struct ServerState {
    pub(super) clients: Arc<Clients>,
    pub(super) options: ServerOptions,
    pub(super) session: String,
    /// Signs the welcomes.
    pub(super) codec: MessageCodec,
    shell: mpsc::Sender<Vec<Bytes>>,
    stdin: mpsc::Sender<Vec<Bytes>>,
    control: mpsc::Sender<Vec<Bytes>>,
    closing: watch::Sender<bool>,
    abandoned: Notify,
}

/// Creates the state and the queues that it fills.
pub(super) fn build(
    key: &str,
    session: &str,
    options: &ServerOptions,
) -> (Arc<ServerState>, RequestQueues) {
    let (to_disconnects, disconnects) = mpsc::unbounded_channel();
    let (to_shell, shell) = mpsc::channel(REQUEST_QUEUE_CAPACITY);
    let (to_stdin, stdin) = mpsc::channel(REQUEST_QUEUE_CAPACITY);
    let (to_control, control) = mpsc::channel(REQUEST_QUEUE_CAPACITY);
    let state = ServerState {
        clients: Arc::new(Clients::new(options.queue_bytes, to_disconnects)),
        options: options.clone(),
        session: session.to_owned(),
        codec: MessageCodec::new(key),
        shell: to_shell,
        stdin: to_stdin,
        control: to_control,
        closing: watch::Sender::new(false),
        abandoned: Notify::new(),
    };
    let queues = RequestQueues {
        control,
        stdin,
        shell,
        disconnects,
    };
    (Arc::new(state), queues)
}

/// The bound addresses and the thread's runtime.
type BindResult = io::Result<(Connection, Handle)>;

/// Starts the thread. It ends when the server is closed and all messages are written, or when the server is abandoned.
/// The thread sends the result of binding to `bound`, and its end to `end`.
pub(super) fn start(
    state: Arc<ServerState>,
    connection: Connection,
    bound: oneshot::Sender<BindResult>,
    end: oneshot::Sender<()>,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    std::thread::Builder::new()
        .name("jupyter-server".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || {
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                let (connection, listeners) = match bind(connection).await {
                    Ok(sockets) => sockets,
                    Err(error) => {
                        bound.send(Err(error)).ok();
                        return;
                    }
                };
                if bound.send(Ok((connection, handle))).is_err() {
                    return;
                }
                tokio::select! {
                    () = state.abandoned.notified() => {}
                    () = run(Arc::clone(&state), listeners) => {}
                }
            });
            // A pending name lookup must not delay the end.
            runtime.shutdown_background();
            end.send(()).ok();
        })
}

/// Binds the sockets of all channels. Returns their addresses and listeners.
async fn bind(mut connection: Connection) -> io::Result<(Connection, Vec<(Channel, Listener)>)> {
    let mut listeners = Vec::new();
    for channel in CHANNELS {
        let port = port_mut(&mut connection.ports, channel);
        let is_any = *port == 0;
        let listener = match &connection.transport {
            Transport::Ipc { .. } if is_any => {
                let mut number = 1;
                loop {
                    *self::port_mut(&mut connection.ports, channel) = number;
                    match Listener::bind(&connection.endpoint(channel)).await {
                        Err(error) if error.kind() == io::ErrorKind::AddrInUse => number += 1,
                        result => break result?,
                    }
                }
            }
            _ => Listener::bind(&connection.endpoint(channel)).await?,
        };
        if let Endpoint::Tcp { port, .. } = listener.endpoint()? {
            *self::port_mut(&mut connection.ports, channel) = port;
        }
        listeners.push((channel, listener));
    }
    Ok((connection, listeners))
}

fn port_mut(ports: &mut Ports, channel: Channel) -> &mut u16 {
    match channel {
        Channel::Shell => &mut ports.shell,
        Channel::Iopub => &mut ports.iopub,
        Channel::Stdin => &mut ports.stdin,
        Channel::Control => &mut ports.control,
        Channel::Heartbeat => &mut ports.hb,
    }
}

async fn run(state: Arc<ServerState>, listeners: Vec<(Channel, Listener)>) {
    // Every connection holds a sender: `recv` returns when the last connection has ended.
    let (alive, mut all_ended) = mpsc::channel::<()>(1);
    let mut acceptors = JoinSet::new();
    for (channel, listener) in listeners {
        acceptors.spawn(Arc::clone(&state).accept_clients(channel, listener, alive.clone()));
    }
    drop(alive);
    state.wait_closing().await;
    acceptors.shutdown().await;
    state.clients.close();
    timeout(state.options.flush_timeout, all_ended.recv())
        .await
        .ok();
}

impl ServerState {
    /// Accepts no more clients; the thread ends when the queued messages are written.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Ends the thread at once.
    pub(super) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Waits until the server is closing.
    pub(super) async fn wait_closing(&self) {
        let mut closing = self.closing.subscribe();
        // No error: the sender is a field of this struct.
        closing.wait_for(|closing| *closing).await.ok();
    }

    /// Queues a request for the kernel. Waits while the queue is full.
    pub(super) async fn queue_request(&self, channel: Channel, frames: Vec<Bytes>) {
        let queue = match channel {
            Channel::Shell => &self.shell,
            Channel::Stdin => &self.stdin,
            Channel::Control => &self.control,
            Channel::Iopub | Channel::Heartbeat => return,
        };
        // An error means that the server is closing.
        queue.send(frames).await.ok();
    }

    /// Accepts the clients of one channel.
    async fn accept_clients(
        self: Arc<Self>,
        channel: Channel,
        listener: Listener,
        alive: mpsc::Sender<()>,
    ) {
        let permits = Arc::new(Semaphore::new(self.options.max_connections));
        loop {
            let Ok(stream) = listener.accept().await else {
                // The client has disconnected already, or there are no descriptors left.
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                self.clients.count_rejected_connection();
                continue;
            };
            let (state, alive) = (Arc::clone(&self), alive.clone());
            tokio::spawn(async move {
                client_connection::serve(&state, channel, stream).await;
                drop((permit, alive));
            });
        }
    }
}
