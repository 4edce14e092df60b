//! [`House`]: the thread that lets clients in.

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
use super::{Incoming, Options, client};
use crate::connection::{Channel, Connection, Ports, Transport};
use crate::wire::Wire;
use crate::zmtp::{Endpoint, Listener};

/// How many requests of a channel wait for the kernel; more wait where they come from.
const REQUESTS: usize = 16;

/// How long nobody is let in when the system has nothing left for a connection.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// It reads and writes, and keeps nothing.
const STACK_BYTES: usize = 256 * 1024;

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

/// What everybody in the thread shares.
pub(super) struct House {
    pub(super) clients: Arc<Clients>,
    pub(super) options: Options,
    pub(super) session: String,
    /// To sign welcomes with.
    pub(super) wire: Wire,
    shell: mpsc::Sender<Vec<Bytes>>,
    stdin: mpsc::Sender<Vec<Bytes>>,
    control: mpsc::Sender<Vec<Bytes>>,
    closing: watch::Sender<bool>,
    abandoned: Notify,
}

pub(super) fn build(key: &str, session: &str, options: &Options) -> (Arc<House>, Incoming) {
    let (told, cut) = mpsc::unbounded_channel();
    let (to_shell, shell) = mpsc::channel(REQUESTS);
    let (to_stdin, stdin) = mpsc::channel(REQUESTS);
    let (to_control, control) = mpsc::channel(REQUESTS);
    let house = House {
        clients: Arc::new(Clients::new(options.queue_bytes, told)),
        options: options.clone(),
        session: session.to_owned(),
        wire: Wire::new(key),
        shell: to_shell,
        stdin: to_stdin,
        control: to_control,
        closing: watch::Sender::new(false),
        abandoned: Notify::new(),
    };
    let incoming = Incoming {
        control,
        stdin,
        shell,
        cut,
    };
    (Arc::new(house), incoming)
}

/// What came of binding: where the sockets are, and the thread's runtime.
type Bound = io::Result<(Connection, Handle)>;

/// Starts the thread. It ends when the house is closed and everything has gone out, or when it is
/// abandoned.
pub(super) fn start(
    house: Arc<House>,
    connection: Connection,
    bound: oneshot::Sender<Bound>,
    end: oneshot::Sender<()>,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    std::thread::Builder::new()
        .name("jupyter-server".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                let (connection, listeners) = match bind(connection).await {
                    Ok(done) => done,
                    Err(error) => {
                        bound.send(Err(error)).ok();
                        return;
                    }
                };
                if bound.send(Ok((connection, handle))).is_err() {
                    return;
                }
                tokio::select! {
                    () = house.abandoned.notified() => {}
                    () = run(Arc::clone(&house), listeners) => {}
                }
            });
            // A name that is still being looked up must not keep anybody waiting.
            runtime.shutdown_background();
            end.send(()).ok();
        })
}

async fn bind(mut connection: Connection) -> io::Result<(Connection, Vec<(Channel, Listener)>)> {
    let mut listeners = Vec::new();
    for channel in CHANNELS {
        let port = port(&mut connection.ports, channel);
        let any = *port == 0;
        let listener = match &connection.transport {
            Transport::Ipc { .. } if any => {
                let mut number = 1;
                loop {
                    *self::port(&mut connection.ports, channel) = number;
                    match Listener::bind(&connection.endpoint(channel)).await {
                        Err(error) if error.kind() == io::ErrorKind::AddrInUse => number += 1,
                        done => break done?,
                    }
                }
            }
            _ => Listener::bind(&connection.endpoint(channel)).await?,
        };
        if let Endpoint::Tcp { port, .. } = listener.endpoint()? {
            *self::port(&mut connection.ports, channel) = port;
        }
        listeners.push((channel, listener));
    }
    Ok((connection, listeners))
}

fn port(ports: &mut Ports, channel: Channel) -> &mut u16 {
    match channel {
        Channel::Shell => &mut ports.shell,
        Channel::Iopub => &mut ports.iopub,
        Channel::Stdin => &mut ports.stdin,
        Channel::Control => &mut ports.control,
        Channel::Heartbeat => &mut ports.hb,
    }
}

async fn run(house: Arc<House>, listeners: Vec<(Channel, Listener)>) {
    // Every connection holds a part of this as long as it lasts.
    let (alive, mut nobody) = mpsc::channel::<()>(1);
    let mut doors = JoinSet::new();
    for (channel, listener) in listeners {
        doors.spawn(Arc::clone(&house).open(channel, listener, alive.clone()));
    }
    drop(alive);
    house.is_closing().await;
    doors.shutdown().await;
    house.clients.close();
    timeout(house.options.flush, nobody.recv()).await.ok();
}

impl House {
    /// Lets nobody in any more; the thread ends when what waits has gone out.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Ends the thread as it is.
    pub(super) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Waits until nobody is let in any more.
    pub(super) async fn is_closing(&self) {
        let mut closing = self.closing.subscribe();
        // Its sender is ours, and so is not gone.
        closing.wait_for(|closing| *closing).await.ok();
    }

    /// Hands a request over; it waits if the kernel has enough to do.
    pub(super) async fn request(&self, channel: Channel, frames: Vec<Bytes>) {
        let to = match channel {
            Channel::Shell => &self.shell,
            Channel::Stdin => &self.stdin,
            Channel::Control => &self.control,
            Channel::Iopub | Channel::Heartbeat => return,
        };
        // Nobody listens any more once the server is closing.
        to.send(frames).await.ok();
    }

    /// Lets clients in at one door.
    async fn open(self: Arc<Self>, channel: Channel, listener: Listener, alive: mpsc::Sender<()>) {
        let places = Arc::new(Semaphore::new(self.options.connections));
        loop {
            let Ok(stream) = listener.accept().await else {
                // It may have been the client's fault, or there are no descriptors left; which will
                // pass, or not.
                sleep(EXHAUSTED).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.clients.turned_away();
                continue;
            };
            let (house, alive) = (Arc::clone(&self), alive.clone());
            tokio::spawn(async move {
                client::serve(&house, channel, stream).await;
                drop((place, alive));
            });
        }
    }
}
