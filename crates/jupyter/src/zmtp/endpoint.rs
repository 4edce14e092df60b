//! [`Endpoint`]: the address of a socket.

use std::fmt;
use std::path::PathBuf;

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// Host name or IP address.
        host: String,
        /// Port number.
        port: u16,
    },
    /// A Unix socket.
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
