//! [`LocalGatewayError`]: why there is no shared gateway.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_stdext::private::PrivateDirError;

/// Why there is no shared gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalGatewayError {
    /// The directory of the gateway cannot be used.
    #[error(transparent)]
    Dir(#[from] PrivateDirError),
    /// A file of the gateway could not be used.
    #[error("could not {step} {}", path.display())]
    Io {
        /// What failed.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The interpreter lacks packages.
    #[error("{} lacks {}", python.display(), packages.join(" and "))]
    MissingPackages {
        /// The interpreter.
        python: PathBuf,
        /// The packages, as the installer names them.
        packages: Vec<&'static str>,
    },
    /// The interpreter could not be asked for its packages.
    #[error("{} could not be run: {reason}", python.display())]
    Python {
        /// The interpreter.
        python: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The gateway ended while it started, or the process that starts it did.
    #[error("the gateway did not start: {reason}")]
    NotStarted {
        /// The reason.
        reason: String,
        /// The last lines of its log.
        log: Vec<String>,
    },
    /// The gateway was not ready in time.
    #[error("the gateway was not ready within {} s", after.as_secs_f64())]
    NotReady {
        /// The limit.
        after: Duration,
        /// The last lines of its log.
        log: Vec<String>,
    },
    /// A kernelspec has arguments that JSON cannot express.
    #[error("the command of the kernel `{name}` is not valid UTF-8")]
    NotUtf8 {
        /// The name of the kernelspec.
        name: String,
    },
    /// The gateway does not end.
    #[error("the process {pid} does not end")]
    NotStopped {
        /// The process id of its keeper.
        pid: u32,
    },
}

impl LocalGatewayError {
    /// Wraps an I/O error, for `map_err`.
    pub(crate) fn io(
        step: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { step, path, source }
    }

    /// The last lines of the gateway's log, if the gateway failed to start.
    pub fn into_log(self) -> Vec<String> {
        match self {
            Self::NotStarted { log, .. } | Self::NotReady { log, .. } => log,
            _ => Vec::new(),
        }
    }
}
