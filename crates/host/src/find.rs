//! Finds the host, or starts one. A process id in a file proves nothing: the host must answer on its socket.

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
use super::host_record::{HostRecord, LockState};
use super::launch::launch;

/// Time limit for the hello of a host.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for finding or starting a host, all attempts included.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// Delay between two attempts.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Delay before the next attempt when a host runs but is unreachable: it restores its files at intervals.
const UNREACHABLE_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Number of attempts to connect while hosts replace each other.
const START_ATTEMPTS: usize = 5;

/// A connection to a host that ran already or that this command started.
pub struct ConnectedHost {
    pub client: Client,
    /// Whether this command started the host.
    pub started: bool,
}

/// Connects to the running host of a directory, whatever its protocol. Returns `None` if no host runs.
pub async fn connect_existing(dir: &RuntimeDir) -> Result<Option<Client>, HostError> {
    for _ in 0..START_ATTEMPTS {
        let Some(record) = record(dir).await? else {
            return Ok(None);
        };
        match connect(dir, &record).await? {
            ConnectResult::Host(client) => {
                debug!(pid = record.pid, "connected to the host");
                return Ok(Some(*client));
            }
            ConnectResult::NotRunning => {
                // This host may have ended and another started after the record was read.
                if self::record(dir).await?.is_none_or(|now| now == record) {
                    return Ok(None);
                }
            }
            ConnectResult::Another => {}
        }
        sleep(RETRY_DELAY).await;
    }
    Ok(None)
}

/// Connects to the host of a directory, and starts one if none runs.
pub async fn find_or_start(
    path: PathBuf,
    idle_exit: Option<Duration>,
) -> Result<ConnectedHost, HostError> {
    let deadline = Instant::now() + START_TIMEOUT;
    let dir = blocking(move || Ok(RuntimeDir::create(&path)?)).await?;
    let connected = |client: Client, started| {
        let client = client.check_protocol()?;
        Ok(ConnectedHost { client, started })
    };
    if let Some(client) = connect_existing(&dir).await? {
        return connected(client, false);
    }
    // Held until the host answers, so that other commands find this host instead of starting one.
    let _start_lock = lock_start(&dir, deadline).await?;
    let mut started = false;
    loop {
        if let Some(client) = connect_existing(&dir).await? {
            return connected(client, started);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(match HostRecord::read_lock_holder(&dir)? {
                LockState::Held(Some(record)) => HostError::Unresponsive { pid: record.pid },
                _ => HostError::NotReady {
                    after: START_TIMEOUT,
                },
            });
        }
        started = launch(&dir, idle_exit, remaining).await?;
        debug!(started, "no host was running");
        if !started {
            sleep(UNREACHABLE_RETRY_DELAY).await;
        }
    }
}

/// Reads the record of the host: from `host.json`, or from the lock file if `host.json` was removed.
async fn record(dir: &RuntimeDir) -> Result<Option<HostRecord>, HostError> {
    let dir = dir.clone();
    blocking(move || {
        if let Some(record) = HostRecord::read(&dir)? {
            return Ok(Some(record));
        }
        match HostRecord::read_lock_holder(&dir)? {
            LockState::Held(record) => Ok(record),
            LockState::Free => Ok(None),
        }
    })
    .await
}

/// Accesses files on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(HostError::file("access", "host.json")(error.into())),
    }
}

/// The result of an attempt to connect.
enum ConnectResult {
    Host(Box<Client>),
    NotRunning,
    /// The host that answered is not the host of the record.
    Another,
}

async fn connect(dir: &RuntimeDir, record: &HostRecord) -> Result<ConnectResult, HostError> {
    let path = dir.path().join(&record.socket);
    let deadline = Instant::now() + HELLO_TIMEOUT;
    let stream = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    return Ok(ConnectResult::NotRunning);
                }
                // The queue of the socket is full.
                io::ErrorKind::WouldBlock if Instant::now() < deadline => sleep(RETRY_DELAY).await,
                io::ErrorKind::WouldBlock => {
                    return Err(HostError::Unresponsive { pid: record.pid });
                }
                _ => return Err(HostError::file("connect to", path)(error)),
            },
        }
    };
    let peer = foreign_peer(&stream).map_err(HostError::file("identify the owner of", &path))?;
    if let Some(user) = peer {
        return Err(HostError::ForeignListener { path, user });
    }
    // The operating system reports the listening process. The record may be wrong.
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let mut connection = Connection::new(stream);
    let exchange_hello = async {
        let hello = ClientHello::new();
        connection.send(&Greeting { hello }).await?;
        match connection.next().await? {
            Some(frame) => Ok(Some(frame.parse::<Greeting<HostHello>>()?.hello)),
            None => Ok(None),
        }
    };
    match timeout_at(deadline, exchange_hello).await {
        Err(_) => Err(HostError::Unresponsive {
            pid: pid.unwrap_or(record.pid),
        }),
        // The host is ending.
        Ok(Ok(None) | Err(FrameError::Truncated)) => Ok(ConnectResult::NotRunning),
        Ok(Err(FrameError::Io(error))) if is_disconnect(&error) => Ok(ConnectResult::NotRunning),
        Ok(Err(error)) => Err(HostError::InvalidReply(error)),
        Ok(Ok(Some(host))) if host.instance != record.instance => Ok(ConnectResult::Another),
        Ok(Ok(Some(host))) => Ok(ConnectResult::Host(Box::new(Client { connection, host }))),
    }
}

/// Waits until no other command starts a host.
async fn lock_start(dir: &RuntimeDir, deadline: Instant) -> Result<File, HostError> {
    let file = dir.open_lock_file(START_LOCK)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(RETRY_DELAY).await,
            Err(TryLockError::WouldBlock) => {
                return Err(HostError::NotReady {
                    after: START_TIMEOUT,
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(HostError::file("lock", dir.file_path(START_LOCK))(error));
            }
        }
    }
}

/// Waits until the lock of the host is free, or until a host other than `instance` holds it. Returns false if that does
/// not happen within `timeout`.
pub(super) async fn wait_until_gone(
    dir: &RuntimeDir,
    instance: Option<&str>,
    timeout: Duration,
) -> Result<bool, HostError> {
    let deadline = Instant::now() + timeout;
    loop {
        match HostRecord::read_lock_holder(dir)? {
            LockState::Free => return Ok(true),
            LockState::Held(Some(record)) if instance.is_some_and(|own| own != record.instance) => {
                return Ok(true);
            }
            LockState::Held(_) if Instant::now() >= deadline => return Ok(false),
            LockState::Held(_) => sleep(RETRY_DELAY).await,
        }
    }
}
