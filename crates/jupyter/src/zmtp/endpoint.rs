//! Where a socket is.

use std::fmt;
use std::path::PathBuf;

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A port of a machine.
    Tcp {
        /// Its name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Ipc(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}
