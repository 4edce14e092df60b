//! [`HostError`]: failures between a command and the host. `failure.rs` describes them to users.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::runtime_dir::RuntimeDirError;

use super::frame::FrameError;

/// A failure between a command and the host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The directory for the socket and the lock cannot be used.
    #[error(transparent)]
    RuntimeDir(#[from] RuntimeDirError),
    /// A file of the host could not be used.
    #[error("could not {step} {}", path.display())]
    File {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A process of another user listens on the socket.
    #[error("the process that listens on {} belongs to user {user}", path.display())]
    ForeignListener { path: PathBuf, user: u32 },
    /// The host runs but sends no reply in time.
    #[error("the host (pid {pid}) does not answer")]
    Unresponsive { pid: u32 },
    /// The host uses another protocol.
    #[error("the host (pid {pid}) has version {version} and uses protocol {protocol}")]
    ProtocolMismatch {
        pid: u32,
        protocol: u32,
        version: String,
    },
    /// The message from the host is invalid.
    #[error("the host sent an invalid message")]
    InvalidReply(#[source] FrameError),
    /// The request exceeds the size limit of a message.
    #[error("the request to the host is larger than {} MiB", super::frame::LINE_LIMIT >> 20)]
    TooLarge,
    /// The reply does not belong to the request.
    #[error("the host sent a reply that does not belong to the request")]
    UnexpectedReply,
    /// The connection ended before the reply was complete.
    #[error("the host ended before it replied")]
    Disconnected,
    /// The host could not be started. `reason` is its message or its exit status.
    #[error("the host could not be started")]
    NotStarted { reason: String },
    /// The host was not ready in time.
    #[error("the host was not ready within {} s", after.as_secs())]
    NotReady { after: Duration },
    /// The host refused the request.
    #[error("the host refused: {message}")]
    Refused { code: String, message: String },
    /// The process is not certainly the host, so it receives no signal.
    #[error("the host is listed as pid {pid}, which is another process")]
    NotTheHost { pid: u32 },
    /// The host still runs after all signals.
    #[error("the host (pid {pid}) could not be stopped")]
    NotKilled { pid: u32 },
}

impl HostError {
    /// Creates the error of a failed step on a file, for `map_err`.
    pub(super) fn file(
        step: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { step, path, source }
    }
}

impl From<FrameError> for HostError {
    fn from(error: FrameError) -> Self {
        match error {
            // The peer closed the connection or died; both have the same effect.
            FrameError::Truncated => Self::Disconnected,
            FrameError::TooLarge => Self::TooLarge,
            FrameError::Io(error) if is_disconnect(&error) => Self::Disconnected,
            error => Self::InvalidReply(error),
        }
    }
}

/// Whether an error means that the peer has disconnected.
pub(super) fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}
