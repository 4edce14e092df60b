//! [`GatewayRecord`]: the content of `info.json`, by which other processes find a gateway.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cellwright_gateway::{Secret, Server, ServerUrl};
use cellwright_kernel::process::daemon::ProcessIdentity;
use cellwright_stdext::private;
use serde::{Deserialize, Serialize};

/// Maximum size of a record in bytes. Keepers write smaller ones.
const SIZE_LIMIT: u64 = 64 * 1024;

/// Address and processes of a gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GatewayRecord {
    /// Its address.
    pub url: ServerUrl,
    /// Its token.
    pub token: Secret,
    /// The process id of the keeper.
    pub pid: u32,
    /// The start time of the keeper, see [`ProcessIdentity::start_ticks`].
    pub start_ticks: Option<u64>,
    /// The process id of the gateway.
    pub gateway_pid: u32,
    /// The interpreter that runs the gateway.
    pub python: PathBuf,
    /// The version of the gateway.
    pub version: Option<String>,
    /// The version of Cellwright that started it.
    pub started_by: String,
    /// When it was started.
    pub started: SystemTime,
}

impl GatewayRecord {
    /// Reads a record. `None` if the file is missing or is not a record.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let bytes = private::read_file(path, SIZE_LIMIT).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        private::replace_file(path, &serde_json::to_vec(self)?)
    }

    /// Sets the time of modification of the file, or writes it again if it was removed.
    pub(crate) fn refresh(&self, path: &Path) -> io::Result<()> {
        match private::open_file(OpenOptions::new().append(true), path) {
            Ok(file) => file.set_modified(SystemTime::now()),
            Err(_) => self.write(path),
        }
    }

    /// The keeper.
    pub fn keeper(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.start_ticks,
        }
    }

    /// How to reach the gateway.
    pub fn server(&self) -> Server {
        Server::new(self.url.clone()).with_token(self.token.clone())
    }
}
