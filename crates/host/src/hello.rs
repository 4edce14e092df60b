//! The first message on a connection. It never changes, so that every version can identify every other.

use serde::{Deserialize, Serialize};

use super::frame::Frame;

/// What this version speaks after the first words. `status` and `stop` are understood whatever the
/// number is.
pub const PROTOCOL: u32 = 3;

/// This version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a command says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    pub protocol: u32,
    #[serde(default)]
    pub version: String,
}

/// What the host says to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub protocol: u32,
    #[serde(default)]
    pub version: String,
    pub pid: u32,
    pub instance: String,
}

/// Either, as it goes over the socket.
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

    /// What stands in a first frame; `None` if that is no hello.
    pub(super) fn of(frame: &Frame) -> Option<Self> {
        frame.parse::<Greeting<Self>>().ok().map(|all| all.hello)
    }
}
