//! [`Connection`]: the addresses of a kernel's five sockets, and the key that signs messages.
//!
//! A [`ConnectionFile`] passes the connection to a kernel, and to clients that look for running kernels. A [`SocketDir`]
//! is the directory of the kernel's sockets. Both are removed when they are dropped. [`sweep`] and [`SocketDir::sweep`]
//! remove those of processes that were killed.

mod file;
mod owner;
mod private_dir;
mod read;
mod socket_dir;

use std::io;
use std::path::{Path, PathBuf};

use cellwright_stdext::hex;
use serde_json::{Map, Value};

pub use self::file::{ConnectionFile, sweep};
pub use self::socket_dir::{NoSocketDir, SocketDir, SocketDirProblem};
use crate::zmtp::Endpoint;

/// The only supported signature scheme.
const SIGNATURE_SCHEME: &str = "hmac-sha256";

/// One of the five channels between a kernel and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Requests and their replies.
    Shell,
    /// Messages that the kernel publishes to all clients.
    Iopub,
    /// Input requests from the kernel to a client.
    Stdin,
    /// Requests that must not wait for running cells.
    Control,
    /// Messages that the kernel sends back, to show that it is alive.
    Heartbeat,
}

/// The addresses of a kernel's sockets, and the key that signs messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// The transport of the sockets.
    pub transport: Transport,
    /// Port numbers, or the numbers at the end of the socket paths.
    pub ports: Ports,
    /// The key; empty if messages are not signed.
    pub key: String,
    /// Name of the kernelspec, if it is known.
    pub kernel_name: Option<String>,
}

/// The transport of the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// IP address or host name.
        ip: String,
    },
    /// Unix sockets.
    Ipc {
        /// Beginning of the socket paths; a dash and the number follow.
        stem: PathBuf,
    },
}

/// The port numbers of the five channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The shell channel.
    pub shell: u16,
    /// The iopub channel.
    pub iopub: u16,
    /// The stdin channel.
    pub stdin: u16,
    /// The control channel.
    pub control: u16,
    /// The heartbeat channel.
    pub hb: u16,
}

impl Ports {
    /// The numbers for Unix sockets. They need not be free ports.
    pub const IPC: Self = Self {
        shell: 1,
        iopub: 2,
        stdin: 3,
        control: 4,
        hb: 5,
    };
}

/// Why a connection file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The file cannot be read or written.
    #[error("the connection file {} cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file is malformed.
    #[error("{} is not a connection file: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

// Does not print the key.
impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("transport", &self.transport)
            .field("ports", &self.ports)
            .field("kernel_name", &self.kernel_name)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection over the loopback interface, with a new key.
    pub fn new_tcp(ports: Ports) -> io::Result<Self> {
        let ip = "127.0.0.1".to_owned();
        Ok(Self {
            transport: Transport::Tcp { ip },
            ports,
            key: random_hex(32)?,
            kernel_name: None,
        })
    }

    /// A connection over Unix sockets, with a new key. The stem should be UTF-8, because a connection file cannot hold
    /// other paths.
    pub fn new_ipc(stem: PathBuf) -> io::Result<Self> {
        Ok(Self {
            transport: Transport::Ipc { stem },
            ports: Ports::IPC,
            key: random_hex(32)?,
            kernel_name: None,
        })
    }

    /// Reads a connection file.
    ///
    /// Additional members are ignored, and numbers may be strings. The file is rejected if a channel has no port or that
    /// of another channel, if there is no address, and for signatures other than HMAC-SHA256 and encrypted sockets
    /// (CURVE).
    pub fn read(path: &Path) -> Result<Self, ConnectionError> {
        read::read(path)
    }

    /// The text of a connection file.
    pub fn to_json(&self) -> String {
        let mut text = format!("{:#}", Value::Object(self.members()));
        text.push('\n');
        text
    }

    fn members(&self) -> Map<String, Value> {
        let (transport, ip) = match &self.transport {
            Transport::Tcp { ip } => ("tcp", ip.clone()),
            Transport::Ipc { stem } => ("ipc", stem.to_string_lossy().into_owned()),
        };
        let kernel_name = self.kernel_name.as_deref().unwrap_or_default();
        [
            ("shell_port", self.ports.shell.into()),
            ("iopub_port", self.ports.iopub.into()),
            ("stdin_port", self.ports.stdin.into()),
            ("control_port", self.ports.control.into()),
            ("hb_port", self.ports.hb.into()),
            ("ip", ip.into()),
            ("key", self.key.as_str().into()),
            ("transport", transport.into()),
            ("signature_scheme", SIGNATURE_SCHEME.into()),
            ("kernel_name", kernel_name.into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// The address of a channel's socket.
    pub fn endpoint(&self, channel: Channel) -> Endpoint {
        let port = match channel {
            Channel::Shell => self.ports.shell,
            Channel::Iopub => self.ports.iopub,
            Channel::Stdin => self.ports.stdin,
            Channel::Control => self.ports.control,
            Channel::Heartbeat => self.ports.hb,
        };
        match &self.transport {
            Transport::Tcp { ip } => Endpoint::Tcp {
                host: ip.clone(),
                port,
            },
            Transport::Ipc { stem } => {
                let mut path = stem.clone().into_os_string();
                path.push(format!("-{port}"));
                Endpoint::Ipc(path.into())
            }
        }
    }
}

/// Random bytes as hexadecimal digits.
fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random)?;
    Ok(hex::encode(&random))
}
