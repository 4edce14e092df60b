//! [`GatewayDir`]: the private directory of the gateways of a user, and the numbered directories in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cellwright_stdext::private::{self, PrivateDir};

use crate::error::LocalGatewayError;
use crate::record::GatewayRecord;

const START_LOCK: &str = "start.lock";
const KEEPER_LOCK: &str = "keeper.lock";
const INFO: &str = "info.json";
const USED: &str = "used";
const KERNELSPEC_DIR: &str = "kernelspecs";

/// The directory of the gateways of a user. Other users have no access.
#[derive(Clone, Debug)]
pub struct GatewayDir {
    path: PathBuf,
}

/// The directory of one gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number. The gateway with the highest number gets new kernels.
    pub number: u32,
    /// Its directory.
    pub path: PathBuf,
}

/// Whether the keeper of a gateway runs.
#[derive(Debug)]
pub enum KeeperState {
    /// No: its files are stale.
    Gone,
    /// It has not written its record yet.
    Starting,
    /// It runs.
    Running(Box<GatewayRecord>),
}

impl GatewayDir {
    /// Opens the directory; creates it if it does not exist.
    pub fn create(path: &Path) -> Result<Self, LocalGatewayError> {
        let path = PrivateDir::create(path)?.path().to_owned();
        Ok(Self { path })
    }

    /// Opens the directory; `None` if it does not exist.
    pub fn open(path: &Path) -> Result<Option<Self>, LocalGatewayError> {
        let dir = PrivateDir::open(path)?;
        Ok(dir.map(|dir| Self {
            path: dir.path().to_owned(),
        }))
    }

    /// The directory of the kernelspecs that Cellwright adds, as an entry of `JUPYTER_PATH`.
    pub fn kernelspecs(&self) -> PathBuf {
        self.path.join(KERNELSPEC_DIR)
    }

    /// The lock of a process that starts a gateway. `None`: another process has it.
    pub fn try_lock_start(&self) -> Result<Option<File>, LocalGatewayError> {
        try_lock(&self.path.join(START_LOCK))
    }

    /// The gateways, newest first, running or not.
    pub fn generations(&self) -> Vec<Generation> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let generation = |entry: fs::DirEntry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let path = entry.path();
            Some(Generation { number, path })
        };
        let mut all: Vec<Generation> = entries.filter_map(generation).collect();
        all.sort_by_key(|generation| std::cmp::Reverse(generation.number));
        all
    }

    /// Creates the directory of the next gateway. The caller holds the start lock.
    pub(crate) fn create_generation(&self) -> Result<Generation, LocalGatewayError> {
        let newest = self.generations().first().map_or(0, |newest| newest.number);
        let number = newest + 1;
        let path = PrivateDir::create(&self.path.join(number.to_string()))?;
        Ok(Generation {
            number,
            path: path.path().to_owned(),
        })
    }

    /// Removes the files of gateways that were killed. The caller holds the start lock: otherwise a keeper could be about
    /// to lock its file.
    pub(crate) fn remove_stale(&self) {
        for generation in self.generations() {
            if matches!(generation.keeper(), Ok(KeeperState::Gone)) {
                generation.remove();
            }
        }
    }
}

impl Generation {
    /// Opens the directory of a gateway, as its keeper.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        let path = path.to_owned();
        Some(Self { number, path })
    }

    /// The directory with all gateways.
    pub(crate) fn parent(&self) -> GatewayDir {
        let path = self.path.parent().unwrap_or(&self.path).to_owned();
        GatewayDir { path }
    }

    /// The path of a file of the gateway.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The directory of the connection files and sockets of kernels.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.file("k")
    }

    /// The path of the record.
    pub(crate) fn info(&self) -> PathBuf {
        self.file(INFO)
    }

    /// Becomes the keeper. The lock is held while the file is open. `None`: another process has it.
    pub(crate) fn lock_keeper(&self) -> Result<Option<File>, LocalGatewayError> {
        try_lock(&self.file(KEEPER_LOCK))
    }

    /// Whether the keeper of the gateway runs: it holds its lock.
    pub fn keeper(&self) -> Result<KeeperState, LocalGatewayError> {
        let path = self.file(KEEPER_LOCK);
        let file = match private::open_file(OpenOptions::new().read(true), &path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeeperState::Gone),
            Err(error) => return Err(LocalGatewayError::io("open", path)(error)),
        };
        // A shared lock, so that two readers do not mistake each other for a keeper.
        match file.try_lock_shared() {
            Ok(()) => Ok(KeeperState::Gone),
            Err(TryLockError::WouldBlock) => Ok(match GatewayRecord::read(&self.info()) {
                Some(record) => KeeperState::Running(Box::new(record)),
                None => KeeperState::Starting,
            }),
            Err(TryLockError::Error(error)) => Err(LocalGatewayError::io("lock", path)(error)),
        }
    }

    /// Records that a process asked for the gateway just now.
    pub(crate) fn record_use(&self) {
        // A failure only shortens the time until an idle gateway ends.
        private::replace_file(&self.file(USED), b"").ok();
    }

    /// When a process last asked for the gateway.
    pub(crate) fn last_use(&self) -> Option<SystemTime> {
        let used = fs::metadata(self.file(USED)).ok()?;
        used.modified().ok()
    }

    /// Removes the directory.
    pub(crate) fn remove(&self) {
        // What remains is removed with the next stale gateway.
        fs::remove_dir_all(&self.path).ok();
    }
}

fn try_lock(path: &Path) -> Result<Option<File>, LocalGatewayError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = private::open_file(&options, path).map_err(LocalGatewayError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(LocalGatewayError::io("lock", path)(error)),
    }
}
