//! ZMTP 3.0, the protocol of `ZeroMQ` sockets, over TCP and Unix sockets: the NULL mechanism (no encryption), and the
//! socket types DEALER, ROUTER, SUB, XPUB, REQ and REP.
//!
//! A [`Reader`] returns whole messages and never more than [`Limits`] allow, whatever the peer announces. It ends when the
//! peer disconnects. When a call of a [`Writer`] returns, the system has all its bytes. The module knows nothing about
//! Jupyter: a [`FrameStore`](crate::frame_store::FrameStore) decides where frames are kept.
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
pub use handshake::{Peer, SocketType, connect, handshake};
pub use listener::Listener;
pub use reader::{Limits, Reader, ReceivedItem};
pub use stream::{ReadHalf, Stream, WriteHalf};
pub use writer::Writer;

/// The data of the `PONG` that answers a `PING`: the context after the two bytes of its time to live.
pub(crate) fn pong(ping: &Bytes) -> Bytes {
    const CONTEXT_LIMIT: usize = 16;
    let context = ping.get(2..).unwrap_or_default();
    Bytes::copy_from_slice(&context[..context.len().min(CONTEXT_LIMIT)])
}

/// The flags of a frame.
mod flag {
    /// More frames of the same message follow.
    pub(super) const MORE: u8 = 1;
    /// The length takes eight bytes.
    pub(super) const LONG: u8 = 2;
    /// The frame is a command.
    pub(super) const COMMAND: u8 = 4;
}
