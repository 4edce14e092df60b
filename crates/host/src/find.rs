//! Finds the host, or starts one. A process id in a file proves nothing: the peer of the socket must be the host.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::runtime_dir::{RuntimeDir, START_LOCK};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use super::connection::{Client, Connection, foreign_peer};
use super::error::{HostError, is_disconnect};
use super::frame::FrameError;
use super::hello::{ClientHello, Greeting, HostHello};
use super::launch::launch;
use super::record::{HostRecord, LockHolder};

/// How long a host may take to say who it is.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// How long finding or starting a host may take altogether.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How long to wait between two tries.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// How long to wait for a host that is there but cannot be reached: it looks after its files.
const TAKEN_RETRY_DELAY: Duration = Duration::from_millis(200);

/// How often a host that changes under our hands is looked for again.
const START_ATTEMPTS: usize = 5;

/// A host that was found, or was not there before.
pub struct ConnectedHost {
    pub client: Client,
    /// Whether this command started it.
    pub started: bool,
}

/// Connects to the living host of a folder, whatever protocol it speaks; `None` if there is none.
pub async fn connect_existing(folder: &RuntimeDir) -> Result<Option<Client>, HostError> {
    for _ in 0..START_ATTEMPTS {
        let Some(record) = record(folder)? else {
            return Ok(None);
        };
        match connect(folder, &record).await? {
            ConnectResult::Host(client) => {
                debug!(pid = record.pid, "connected to the host");
                return Ok(Some(*client));
            }
            ConnectResult::NotRunning => {
                // It may have ended and another begun since the record was read.
                if self::record(folder)?.is_none_or(|now| now == record) {
                    return Ok(None);
                }
            }
            ConnectResult::Another => {}
        }
        sleep(RETRY_DELAY).await;
    }
    Ok(None)
}

/// The host of a folder; started if there is none.
pub async fn find_or_start(
    path: PathBuf,
    idle_exit: Option<Duration>,
) -> Result<ConnectedHost, HostError> {
    let until = Instant::now() + START_TIMEOUT;
    let folder = RuntimeDir::create(path)?;
    let met = |client: Client, started| {
        let client = client.check_protocol()?;
        Ok(ConnectedHost { client, started })
    };
    if let Some(client) = connect_existing(&folder).await? {
        return met(client, false);
    }
    // Held until the host has answered, so that everybody else finds it.
    let _turn = lock_start(&folder, until).await?;
    let mut started = false;
    loop {
        if let Some(client) = connect_existing(&folder).await? {
            return met(client, started);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(match HostRecord::read_lock_holder(&folder)? {
                LockHolder::Held(Some(record)) => HostError::Unresponsive { pid: record.pid },
                _ => HostError::NotReady {
                    after: START_TIMEOUT,
                },
            });
        }
        started = launch(&folder, idle_exit, left).await?;
        debug!(started, "no host was running");
        if !started {
            sleep(TAKEN_RETRY_DELAY).await;
        }
    }
}

/// What is known about the host. If others cleaned the folder, the lock still tells.
fn record(folder: &RuntimeDir) -> Result<Option<HostRecord>, HostError> {
    if let Some(record) = HostRecord::read(folder)? {
        return Ok(Some(record));
    }
    match HostRecord::read_lock_holder(folder)? {
        LockHolder::Held(record) => Ok(record),
        LockHolder::Free => Ok(None),
    }
}

/// Who answered.
enum ConnectResult {
    Host(Box<Client>),
    NotRunning,
    /// A host, but not the one of the record.
    Another,
}

async fn connect(folder: &RuntimeDir, record: &HostRecord) -> Result<ConnectResult, HostError> {
    let path = folder.path().join(&record.socket);
    let until = Instant::now() + HELLO_TIMEOUT;
    let stream = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    return Ok(ConnectResult::NotRunning);
                }
                // Too many wait there already.
                io::ErrorKind::WouldBlock if Instant::now() < until => sleep(RETRY_DELAY).await,
                io::ErrorKind::WouldBlock => {
                    return Err(HostError::Unresponsive { pid: record.pid });
                }
                _ => return Err(HostError::file("connect to", path)(error)),
            },
        }
    };
    let peer = foreign_peer(&stream).map_err(HostError::file("look at", &path))?;
    if let Some(user) = peer {
        return Err(HostError::ForeignListener { path, user });
    }
    // The system knows who listens; the record only says.
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let mut connection = Connection::new(stream);
    let greeted = async {
        let hello = ClientHello::new();
        connection.send(&Greeting { hello }).await?;
        match connection.next().await? {
            Some(frame) => Ok(Some(frame.parse::<Greeting<HostHello>>()?.hello)),
            None => Ok(None),
        }
    };
    match timeout_at(until, greeted).await {
        Err(_) => Err(HostError::Unresponsive {
            pid: pid.unwrap_or(record.pid),
        }),
        // It is just ending.
        Ok(Ok(None) | Err(FrameError::Truncated)) => Ok(ConnectResult::NotRunning),
        Ok(Err(FrameError::Io(error))) if is_disconnect(&error) => Ok(ConnectResult::NotRunning),
        Ok(Err(error)) => Err(HostError::InvalidReply(error)),
        Ok(Ok(Some(host))) if host.instance != record.instance => Ok(ConnectResult::Another),
        Ok(Ok(Some(host))) => Ok(ConnectResult::Host(Box::new(Client { connection, host }))),
    }
}

/// Waits until no other command starts a host.
async fn lock_start(folder: &RuntimeDir, until: Instant) -> Result<File, HostError> {
    let file = folder.open_lock_file(START_LOCK)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(RETRY_DELAY).await,
            Err(TryLockError::WouldBlock) => {
                return Err(HostError::NotReady {
                    after: START_TIMEOUT,
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(HostError::file("lock", folder.file_path(START_LOCK))(error));
            }
        }
    }
}

/// Waits until nobody holds the lock of a host, or another than `instance` does; says whether that
/// came true.
pub(super) async fn wait_until_gone(
    folder: &RuntimeDir,
    instance: Option<&str>,
    patience: Duration,
) -> Result<bool, HostError> {
    let until = Instant::now() + patience;
    loop {
        match HostRecord::read_lock_holder(folder)? {
            LockHolder::Free => return Ok(true),
            LockHolder::Held(Some(record)) if instance.is_some_and(|it| it != record.instance) => {
                return Ok(true);
            }
            LockHolder::Held(_) if Instant::now() >= until => return Ok(false),
            LockHolder::Held(_) => sleep(RETRY_DELAY).await,
        }
    }
}
