//! The first message on a connection. It never changes, so that every version can identify every other.

use serde::{Deserialize, Serialize};

use super::frame::Frame;

/// What this version speaks after the first words. `status` and `stop` are understood whatever the
/// number is.
pub(crate) const PROTOCOL: u32 = 3;

/// This version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a command says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    pub(crate) protocol: u32,
    #[serde(default)]
    pub(crate) version: String,
}

/// What the host says to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostHello {
    pub(crate) protocol: u32,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) instance: String,
}

/// Either, as it goes over the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Greeting<T> {
    pub(crate) hello: T,
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
