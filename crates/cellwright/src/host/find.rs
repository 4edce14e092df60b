//! Finding the host, or starting one. A number in a file proves nothing: what counts is who answers
//! on the socket.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::{Client, Connection, foreign_peer};
use super::error::{HostError, is_gone};
use super::folder::{Folder, START_LOCK};
use super::frame::FrameError;
use super::hello::{ClientHello, Greeting, HostHello};
use super::launch::launch;
use super::record::{Holder, Record};

/// How long a host may take to say who it is.
const HELLO: Duration = Duration::from_secs(2);

/// How long finding or starting a host may take altogether.
const START: Duration = Duration::from_secs(15);

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// How long to wait for a host that is there but cannot be reached: it looks after its files.
const TAKEN_PAUSE: Duration = Duration::from_millis(200);

/// How often a host that changes under our hands is looked for again.
const TRIES: usize = 5;

/// A host that was found, or was not there before.
pub(crate) struct Met {
    pub(crate) client: Client,
    /// Whether this command started it.
    pub(crate) started: bool,
}

/// Connects to the living host of a folder, whatever protocol it speaks; `None` if there is none.
pub(crate) async fn reach(folder: &Folder) -> Result<Option<Client>, HostError> {
    for _ in 0..TRIES {
        let Some(record) = record(folder)? else {
            return Ok(None);
        };
        match connect(folder, &record).await? {
            Answer::Host(client) => return Ok(Some(*client)),
            Answer::Nobody => {
                // It may have ended and another begun since the record was read.
                if self::record(folder)?.is_none_or(|now| now == record) {
                    return Ok(None);
                }
            }
            Answer::Another => {}
        }
        sleep(PAUSE).await;
    }
    Ok(None)
}

/// The host of a folder; started if there is none.
pub(crate) async fn find_or_start(
    path: PathBuf,
    idle_exit: Option<Duration>,
) -> Result<Met, HostError> {
    let until = Instant::now() + START;
    let folder = Folder::make(path)?;
    let met = |client: Client, started| {
        let client = client.same_protocol()?;
        Ok(Met { client, started })
    };
    if let Some(client) = reach(&folder).await? {
        return met(client, false);
    }
    // Held until the host has answered, so that everybody else finds it.
    let _turn = take_turn(&folder, until).await?;
    let mut started = false;
    loop {
        if let Some(client) = reach(&folder).await? {
            return met(client, started);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(match Record::of_holder(&folder)? {
                Holder::Somebody(Some(record)) => HostError::Hung { pid: record.pid },
                _ => HostError::NotReady { after: START },
            });
        }
        started = launch(&folder, idle_exit, left).await?;
        if !started {
            sleep(TAKEN_PAUSE).await;
        }
    }
}

/// What is known about the host. If others cleaned the folder, the lock still tells.
fn record(folder: &Folder) -> Result<Option<Record>, HostError> {
    if let Some(record) = Record::read(folder)? {
        return Ok(Some(record));
    }
    match Record::of_holder(folder)? {
        Holder::Somebody(record) => Ok(record),
        Holder::Nobody => Ok(None),
    }
}

/// Who answered.
enum Answer {
    Host(Box<Client>),
    Nobody,
    /// A host, but not the one of the record.
    Another,
}

async fn connect(folder: &Folder, record: &Record) -> Result<Answer, HostError> {
    let path = folder.path().join(&record.socket);
    let until = Instant::now() + HELLO;
    let stream = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    return Ok(Answer::Nobody);
                }
                // Too many wait there already.
                io::ErrorKind::WouldBlock if Instant::now() < until => sleep(PAUSE).await,
                io::ErrorKind::WouldBlock => return Err(HostError::Hung { pid: record.pid }),
                _ => return Err(HostError::file("connect to", path)(error)),
            },
        }
    };
    let peer = foreign_peer(&stream).map_err(HostError::file("look at", &path))?;
    if let Some(user) = peer {
        return Err(HostError::Stranger { path, user });
    }
    // The system knows who listens; the record only says.
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let mut connection = Connection::new(stream);
    let greeted = async {
        let hello = ClientHello::own();
        connection.send(&Greeting { hello }).await?;
        match connection.next().await? {
            Some(frame) => Ok(Some(frame.parse::<Greeting<HostHello>>()?.hello)),
            None => Ok(None),
        }
    };
    match timeout_at(until, greeted).await {
        Err(_) => Err(HostError::Hung {
            pid: pid.unwrap_or(record.pid),
        }),
        // It is just ending.
        Ok(Ok(None) | Err(FrameError::Half)) => Ok(Answer::Nobody),
        Ok(Err(FrameError::Io(error))) if is_gone(&error) => Ok(Answer::Nobody),
        Ok(Err(error)) => Err(HostError::Garbled(error)),
        Ok(Ok(Some(host))) if host.instance != record.instance => Ok(Answer::Another),
        Ok(Ok(Some(host))) => Ok(Answer::Host(Box::new(Client { connection, host }))),
    }
}

/// Waits until no other command starts a host.
async fn take_turn(folder: &Folder, until: Instant) -> Result<File, HostError> {
    let file = folder.lock_file(START_LOCK)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(PAUSE).await,
            Err(TryLockError::WouldBlock) => return Err(HostError::NotReady { after: START }),
            Err(TryLockError::Error(error)) => {
                return Err(HostError::file("lock", folder.file(START_LOCK))(error));
            }
        }
    }
}

/// Waits until nobody holds the lock of a host, or another than `instance` does; says whether that
/// came true.
pub(super) async fn wait_until_gone(
    folder: &Folder,
    instance: Option<&str>,
    patience: Duration,
) -> Result<bool, HostError> {
    let until = Instant::now() + patience;
    loop {
        match Record::of_holder(folder)? {
            Holder::Nobody => return Ok(true),
            Holder::Somebody(Some(record)) if instance.is_some_and(|it| it != record.instance) => {
                return Ok(true);
            }
            Holder::Somebody(_) if Instant::now() >= until => return Ok(false),
            Holder::Somebody(_) => sleep(PAUSE).await,
        }
    }
}
