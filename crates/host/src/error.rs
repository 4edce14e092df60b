//! [`HostError`]: failures between a command and the host. `host/failure.rs` describes them to users.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::runtime_dir::RuntimeDirError;

use super::frame::FrameError;

/// What can go wrong between a command and the host.
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
    /// Somebody else listens where our host should.
    #[error("what listens on {} belongs to user {user}", path.display())]
    ForeignListener { path: PathBuf, user: u32 },
    /// It is there and says nothing.
    #[error("the host (pid {pid}) does not answer")]
    Unresponsive { pid: u32 },
    /// It speaks another protocol.
    #[error("the host (pid {pid}) is of version {version} and speaks protocol {protocol}")]
    ProtocolMismatch {
        pid: u32,
        protocol: u32,
        version: String,
    },
    /// What it says makes no sense.
    #[error("the host did not say what was expected")]
    InvalidReply(#[source] FrameError),
    /// What is to be said does not fit into a message.
    #[error("what is to be sent to the host is larger than {} MiB", super::frame::LINE_LIMIT >> 20)]
    TooLarge,
    /// The reply does not belong to the request.
    #[error("the host sent a reply that does not belong to the request")]
    UnexpectedReply,
    /// It went in the middle of an answer.
    #[error("the host ended before it had answered")]
    Disconnected,
    /// It could not be started, and said why.
    #[error("the host could not be started")]
    NotStarted { words: String },
    /// It was not ready in time.
    #[error("the host was not ready within {} s", after.as_secs())]
    NotReady { after: Duration },
    /// It says no.
    #[error("the host refused: {message}")]
    Refused { code: String, message: String },
    /// It cannot be shown that this process is the host, so it is left alone.
    #[error("the host is said to be pid {pid}, which is some other process")]
    NotTheHost { pid: u32 },
    /// It does not end, whatever is done.
    #[error("the host (pid {pid}) could not be ended")]
    NotKilled { pid: u32 },
}

impl HostError {
    /// Trouble with a file, for `map_err`.
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
            // The other side closed or died; which of the two makes no difference.
            FrameError::Truncated => Self::Disconnected,
            FrameError::TooLarge => Self::TooLarge,
            FrameError::Io(error) if is_disconnect(&error) => Self::Disconnected,
            error => Self::InvalidReply(error),
        }
    }
}

/// Whether an error says that the other side has gone.
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
