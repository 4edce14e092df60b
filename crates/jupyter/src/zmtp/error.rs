//! [`ZmtpError`]: errors of a connection.

use std::io;

/// An error of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZmtpError {
    /// A read or write failed, or the connection ended inside a message.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The peer does not use ZMTP 3.
    #[error("the peer does not use ZMTP 3")]
    NotZmtp,
    /// The peer requires a security mechanism other than NULL.
    #[error("the peer requires the security mechanism {mechanism}")]
    UnsupportedMechanism {
        /// Name of the mechanism.
        mechanism: String,
    },
    /// The socket type of the peer is incompatible.
    #[error("the peer is a socket of type {found}")]
    IncompatibleSocket {
        /// Socket type of the peer.
        found: String,
    },
    /// The peer sent an `ERROR` command.
    #[error("the peer refused the connection: {reason}")]
    PeerError {
        /// The reason in the command.
        reason: String,
    },
    /// A message is larger than the limit.
    #[error("a message of more than {limit} bytes was announced")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A message has more frames than the limit.
    #[error("a message has more than {limit} frames")]
    TooManyFrames {
        /// The limit.
        limit: usize,
    },
    /// A frame or command violates the protocol.
    #[error("invalid frame: {violation}")]
    Malformed {
        /// The violation.
        violation: &'static str,
    },
}
