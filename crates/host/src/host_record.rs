//! [`HostRecord`]: identifies the running host, in `host.json` and in its lock file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use cellwright_engine::runtime_dir::{HOST_INFO, HOST_LOCK, RuntimeDir};
use cellwright_kernel::process::daemon::ProcessIdentity;
use cellwright_stdext::private;
use serde::{Deserialize, Serialize};

use super::error::HostError;
use super::hello::{PROTOCOL, VERSION};

/// Maximum size of a record in bytes. Hosts write smaller ones.
const SIZE_LIMIT: u64 = 64 * 1024;

/// Identity and socket of a host. Fields may be added, but not removed: hosts and commands of other versions also read
/// the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    pub pid: u32,
    pub protocol: u32,
    pub version: String,
    /// Path of the socket, relative to the directory if it is inside.
    pub socket: PathBuf,
    /// Random id, different for every host.
    pub instance: String,
    /// Seconds since 1970.
    pub started: u64,
    /// See [`ProcessIdentity::start_ticks`].
    pub born: Option<u64>,
}

impl HostRecord {
    /// Creates the record of this process.
    pub(super) fn new(dir: &RuntimeDir, socket: &std::path::Path) -> Self {
        let identity = ProcessIdentity::current();
        Self {
            pid: identity.pid,
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
            socket: socket.strip_prefix(dir.path()).unwrap_or(socket).to_owned(),
            instance: random_instance_id(),
            started: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            born: identity.start_ticks,
        }
    }

    /// The process that wrote the record.
    pub fn identity(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.born,
        }
    }

    /// Reads `host.json`. Returns `None` if the file is missing or is not a record.
    pub fn read(dir: &RuntimeDir) -> Result<Option<Self>, HostError> {
        let path = dir.file_path(HOST_INFO);
        match private::open_file(OpenOptions::new().read(true), &path) {
            Ok(file) => Ok(parse(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A pipe or a link is not a record either; the next host replaces it.
            Err(error) if error.kind() == io::ErrorKind::Other => Ok(None),
            Err(error) => Err(HostError::file("read", path)(error)),
        }
    }

    /// Reads the state of the lock and the record of its holder.
    pub fn read_lock_holder(dir: &RuntimeDir) -> Result<LockState, HostError> {
        let path = dir.file_path(HOST_LOCK);
        let file = match private::open_file(OpenOptions::new().read(true).write(true), &path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Free),
            Err(error) => return Err(HostError::file("open", path)(error)),
        };
        // A shared lock, so that two readers do not mistake each other for a host.
        match file.try_lock_shared() {
            Ok(()) => Ok(LockState::Free),
            Err(TryLockError::WouldBlock) => Ok(LockState::Held(parse(file))),
            Err(TryLockError::Error(error)) => Err(HostError::file("lock", path)(error)),
        }
    }

    /// Writes `host.json` atomically.
    pub(super) fn publish(&self, dir: &RuntimeDir) -> Result<(), HostError> {
        let path = dir.file_path(HOST_INFO);
        let written = self
            .to_bytes()
            .and_then(|bytes| private::replace_file(&path, &bytes));
        written.map_err(HostError::file("write", path))
    }

    /// Writes the record into the lock file that this process holds.
    pub(super) fn write_to_lock(&self, mut lock: &File) -> io::Result<()> {
        lock.set_len(0)?;
        lock.seek(SeekFrom::Start(0))?;
        lock.write_all(&self.to_bytes()?)
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The state of the lock of a host.
#[derive(Debug)]
pub enum LockState {
    Free,
    /// A process holds the lock. `None` if it has not written its record yet.
    Held(Option<HostRecord>),
}

fn parse(file: File) -> Option<HostRecord> {
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns 128 random bits in hexadecimal digits.
fn random_instance_id() -> String {
    use std::hash::{BuildHasher, RandomState};

    let half =
        |salt: u8| RandomState::new().hash_one((salt, std::process::id(), SystemTime::now()));
    format!("{:016x}{:016x}", half(1), half(2))
}
