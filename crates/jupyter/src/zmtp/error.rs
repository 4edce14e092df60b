//! What goes wrong on a connection.

use std::io;

/// What went wrong on a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZmtpError {
    /// The connection itself failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The other side does not speak ZMTP 3.
    #[error("the other side does not speak ZMTP 3")]
    NotZmtp,
    /// The other side wants something that we do not have.
    #[error("the other side wants the security mechanism {mechanism}")]
    Mechanism {
        /// The mechanism that it names.
        mechanism: String,
    },
    /// The socket at the other side is of a type that does not go with ours.
    #[error("the other side is a socket of type {found}")]
    WrongPeer {
        /// The type that it names.
        found: String,
    },
    /// The other side refused the connection.
    #[error("the other side refused: {reason}")]
    Refused {
        /// Its words.
        reason: String,
    },
    /// A message is larger than is allowed.
    #[error("a message of more than {limit} bytes was announced")]
    TooLarge {
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// A message has more frames than is allowed.
    #[error("a message has more than {limit} frames")]
    TooManyFrames {
        /// What is allowed.
        limit: usize,
    },
    /// What came makes no sense.
    #[error("what came is no frame: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
}
