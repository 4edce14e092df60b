//! [`Connection`]: where a kernel's five sockets are, and the key that messages are signed with.
//!
//! [`ConnectionFile`] tells a kernel that we start, and everybody who looks for running kernels.
//! [`SocketFolder`] is where the sockets of such a kernel are. Both are gone when they are dropped; what a
//! process leaves that could not do that is found by [`sweep`] and [`SocketFolder::sweep`].

mod file;
mod folder;
mod owner;
mod read;
mod sockets;

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use self::file::{ConnectionFile, sweep};
pub use self::sockets::{NoSocketFolder, SocketFolder, Unfit};
use crate::zmtp::Endpoint;

/// How messages are signed.
const SIGNATURE: &str = "hmac-sha256";

/// One of the five ways between a kernel and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Requests and their replies.
    Shell,
    /// What the kernel tells everybody.
    Iopub,
    /// What the kernel asks a client.
    Stdin,
    /// Requests that must not wait.
    Control,
    /// Whether it lives.
    Heartbeat,
}

/// Where a kernel's sockets are, and the key that messages are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// How they are reached.
    pub transport: Transport,
    /// Their ports, or the numbers at the end of their paths.
    pub ports: Ports,
    /// The key; empty if messages are not signed.
    pub key: String,
    /// The name of the kernelspec, if that is said.
    pub kernel_name: Option<String>,
}

/// How sockets are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over the network, or on this machine only.
    Tcp {
        /// The address.
        ip: String,
    },
    /// Through the file system.
    Ipc {
        /// What their paths begin with; a dash and the number follow.
        stem: PathBuf,
    },
}

/// The five numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Of the shell channel.
    pub shell: u16,
    /// Of the iopub channel.
    pub iopub: u16,
    /// Of the stdin channel.
    pub stdin: u16,
    /// Of the control channel.
    pub control: u16,
    /// Of the heartbeat channel.
    pub hb: u16,
}

impl Ports {
    /// The numbers in the file system, where any will do.
    pub const IPC: Self = Self {
        shell: 1,
        iopub: 2,
        stdin: 3,
        control: 4,
        hb: 5,
    };
}

/// Why a connection file will not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// It cannot be read or written.
    #[error("the connection file {} cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{} is not a connection file: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

// The key is nobody's business.
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
    /// Sockets on the loopback interface, with a new key.
    pub fn new_tcp(ports: Ports) -> io::Result<Self> {
        let ip = "127.0.0.1".to_owned();
        Ok(Self {
            transport: Transport::Tcp { ip },
            ports,
            key: random(32)?,
            kernel_name: None,
        })
    }

    /// Sockets in the file system, with a new key. The stem should be UTF-8: a connection file can hold
    /// nothing else.
    pub fn new_ipc(stem: PathBuf) -> io::Result<Self> {
        Ok(Self {
            transport: Transport::Ipc { stem },
            ports: Ports::IPC,
            key: random(32)?,
            kernel_name: None,
        })
    }

    /// Reads a connection file.
    ///
    /// It may hold more than is needed, and numbers as text. What is refused, because it could not work:
    /// a channel without a number or with another's, no address, signatures other than HMAC-SHA256, and
    /// encrypted sockets (CURVE).
    pub fn read(path: &Path) -> Result<Self, ConnectionError> {
        read::read(path)
    }

    /// What a connection file says about it.
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
            ("signature_scheme", SIGNATURE.into()),
            ("kernel_name", kernel_name.into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// Where a channel's socket is.
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

/// Something that nobody can guess, as hexadecimal digits.
fn random(bytes: usize) -> io::Result<String> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random)?;
    Ok(hex(&random))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
