//! ZMTP 3, the protocol under `ZeroMQ`'s sockets, as far as Jupyter uses it: no encryption, and the socket
//! types of the five channels.
//!
//! A [`Reader`] gives whole messages and never more than [`Limits`] allow, whatever the other side
//! announces; it ends when the other side does. A [`Writer`] has written everything when its call returns.
//!
//! <https://rfc.zeromq.org/spec/23/>

mod endpoint;
mod error;
mod handshake;
mod listener;
mod reader;
mod stream;
mod writer;

use bytes::Bytes;

pub use endpoint::Endpoint;
pub use error::ZmtpError;
pub use handshake::{Peer, Role, connect, greet};
pub use listener::Listener;
pub use reader::{Incoming, Limits, Reader};
pub use stream::Stream;
pub use writer::Writer;

/// What a `PONG` carries: what came with the `PING`, after the two bytes of its time to live.
pub fn pong(ping: &Bytes) -> Bytes {
    const LONGEST: usize = 16;
    let context = ping.get(2..).unwrap_or_default();
    Bytes::copy_from_slice(&context[..context.len().min(LONGEST)])
}

/// The flags of a frame.
mod flag {
    /// More frames of the same message follow.
    pub(super) const MORE: u8 = 1;
    /// The length takes eight bytes.
    pub(super) const LONG: u8 = 2;
    /// It is not part of a message.
    pub(super) const COMMAND: u8 = 4;
}
