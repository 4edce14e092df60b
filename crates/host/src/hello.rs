//! The first message on a connection. It never changes, so that every version can identify every other.

use serde::{Deserialize, Serialize};

use super::frame::Frame;

/// The protocol of all requests after the hello. Every host serves `status` and `stop`, whatever the protocol.
pub const PROTOCOL: u32 = 6;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    pub protocol: u32,
    #[serde(default)]
    pub version: String,
}

/// The reply of the host to the hello of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub protocol: u32,
    #[serde(default)]
    pub version: String,
    pub pid: u32,
    pub instance: String,
}

/// Either hello, as it is sent over the socket.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting<T> {
    pub hello: T,
}

impl ClientHello {
    pub(crate) fn new() -> Self {
        Self {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
        }
    }

    /// Parses the first frame. Returns `None` if it is not a hello.
    pub(super) fn from_frame(frame: &Frame) -> Option<Self> {
        frame
            .parse::<Greeting<Self>>()
            .ok()
            .map(|greeting| greeting.hello)
    }
}
