//! [`KernelError`]: failures of kernels (not of the code they run), and whether a retry is safe.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::process::Exit;

/// A failure of a kernel or a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No interpreter was found.
    #[error("no Python was found")]
    NoPython {
        /// The candidates that were tried, with reasons.
        rejected: Vec<crate::python::RejectedInterpreter>,
    },
    /// The interpreter is too old for the runner.
    #[error("{} is Python {version}; the runner needs 3.8 or newer", interpreter.display())]
    TooOld {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its version, as far as it reported it.
        version: String,
    },
    /// The working directory is not usable.
    #[error("the working directory {} {problem}", path.display())]
    BadDirectory {
        /// The directory.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// The runner's Python files could not be written.
    #[error("the runner's files could not be written to {}", dir.display())]
    Staging {
        /// The last directory that was tried.
        dir: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A program could not be started.
    #[error("{} could not be started", program.display())]
    Launch {
        /// The program.
        program: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The kernel's process ended before it was ready.
    #[error("the kernel ended while starting ({})", describe_exit(*exit))]
    FailedToStart {
        /// How it ended.
        exit: Exit,
        /// The end of its standard error.
        stderr: String,
    },
    /// The kernel was not ready in time.
    #[error("the kernel was not ready after {} s", after.as_secs_f64())]
    NotReady {
        /// How long it was waited for.
        after: Duration,
        /// The end of its standard error.
        stderr: String,
    },
    /// The wait for the kernel was stopped before it was ready, or before the cell had begun.
    #[error("stopped before the code had begun")]
    StoppedEarly {
        /// Why.
        reason: crate::stop::StopReason,
    },
    /// The kernel died.
    #[error("the kernel died ({})", describe_exit(*exit))]
    Died {
        /// How.
        exit: Exit,
        /// The end of its standard error.
        stderr: String,
        /// Whether the code may have begun to run.
        begun: Begun,
    },
    /// The kernel violated the protocol; it was killed.
    #[error("the kernel violated the protocol: {violation}")]
    Protocol {
        /// The violation.
        violation: String,
    },
    /// The process has no file descriptors or processes left.
    #[error("out of {resource}")]
    Exhausted {
        /// What is exhausted.
        resource: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A user module failed, and the kernel must not start without it.
    #[error("failed to load Python module {}{}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Module {
        /// The file.
        path: PathBuf,
        /// The line.
        line: Option<u32>,
        /// The error message.
        message: String,
    },
    /// No kernel of that name is installed.
    #[error("there is no kernel named `{name}`")]
    NoKernelspec {
        /// The name.
        name: String,
        /// The installed kernels.
        available: Vec<String>,
        /// The directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// The installed kernelspec cannot be started.
    #[error("the kernel `{name}` cannot be started")]
    BrokenKernelspec {
        /// The name.
        name: String,
        /// The cause.
        #[source]
        source: cellwright_jupyter::kernelspec::KernelspecError,
    },
    /// The interpreter has no ipykernel.
    #[error("{} has no ipykernel", python.display())]
    NoIpykernel {
        /// The interpreter.
        python: PathBuf,
        /// The shell command that installs it, if the launcher knows one.
        install_command: Option<String>,
    },
    /// A connection file is not usable.
    #[error(transparent)]
    Connection {
        /// The cause.
        source: cellwright_jupyter::connection::ConnectionError,
    },
    /// No directory is usable for the kernel's sockets.
    #[error("no usable directory for the kernel's sockets")]
    NoSockets {
        /// The directories that were tried.
        #[source]
        source: cellwright_jupyter::connection::NoSocketDir,
    },
    /// A kernel did not start over IPC. It may support only TCP.
    #[error(transparent)]
    OverIpc {
        /// How the start failed.
        source: Box<KernelError>,
    },
    /// A kernel that should be running cannot be reached.
    #[error("the kernel of {} cannot be reached: {problem}", connection_file.display())]
    Unreachable {
        /// Its connection file.
        connection_file: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A server did not do what it was asked, or has lost the kernel.
    #[error("{error}")]
    Server {
        /// What happened.
        error: cellwright_gateway::ServerError,
        /// Whether the code may have begun to run.
        begun: Begun,
    },
    /// The shared gateway of this user could not be started.
    #[error("the shared gateway could not be started: {problem}")]
    NoLocalGateway {
        /// The problem.
        problem: String,
        /// The last lines of the gateway's log.
        log: Vec<String>,
        /// The command that installs what is missing.
        install_command: Option<String>,
    },
    /// The kernels of this session died repeatedly before they finished a cell.
    #[error("Python kernel restarted too many times in this session")]
    RestartedTooOften,
    /// The maximum number of sessions is reached, and all of them are busy.
    #[error("all {limit} sessions are busy")]
    TooManySessions {
        /// The maximum number of sessions.
        limit: usize,
    },
    /// The queue of the session is full.
    #[error("{limit} calls are waiting for this session already")]
    QueueFull {
        /// The maximum number of waiting calls.
        limit: usize,
    },
    /// A cell in the middle of a call needs a fresh kernel, but the session has other owners.
    #[error("cell {cell} needs a fresh kernel, but the session has other owners")]
    SharedReset {
        /// The cell, counted from 0.
        cell: usize,
    },
    /// The session was ended before the call was served.
    #[error("the session was ended")]
    SessionEnded,
    /// There is no such session.
    #[error("there is no such session")]
    NoSession,
    /// The kernel could not answer a query.
    #[error("the kernel could not answer: {message}")]
    QueryFailed {
        /// Its error message.
        message: String,
    },
}

/// Whether the code of a cell may have begun to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It certainly did not.
    No,
    /// It did, or may have.
    Maybe,
}

/// The retry that is safe after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// None.
    Never,
    /// Once more, on a fresh kernel.
    OnceOnFreshKernel,
    /// Once more, after releasing spare kernels.
    OnceAfterClearingSpares,
}

impl KernelError {
    /// The complete retry policy: code runs at most once, so only code that certainly did not begin is
    /// repeated.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Died {
                begun: Begun::No, ..
            }
            | Self::Server {
                error:
                    cellwright_gateway::ServerError::KernelGone { .. }
                    | cellwright_gateway::ServerError::ServerRestarted { .. },
                begun: Begun::No,
            } => Retry::OnceOnFreshKernel,
            Self::Exhausted { .. } => Retry::OnceAfterClearingSpares,
            _ => Retry::Never,
        }
    }

    /// An exhaustion error from the error of a failed `open`.
    pub fn from_exhaustion(source: io::Error) -> Self {
        let resource = exhausted_resource(&source).unwrap_or("system resources");
        Self::Exhausted { resource, source }
    }

    /// The error of a failed process start: exhaustion or a launch failure.
    pub(crate) fn from_launch(program: PathBuf, source: io::Error) -> Self {
        match exhausted_resource(&source) {
            Some(resource) => Self::Exhausted { resource, source },
            None => Self::Launch { program, source },
        }
    }
}

/// The resource that the system has run out of.
fn exhausted_resource(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("file descriptors in this process (see `ulimit -n`)"),
        Errno::NFILE => Some("open files on this machine"),
        Errno::AGAIN => Some("processes (see `ulimit -u`)"),
        Errno::NOMEM => Some("memory"),
        _ => None,
    }
}

/// Describes how a process ended.
fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit {
            signal: Some(signal),
            ..
        } => match signal_name(signal) {
            Some(name) => format!("signal {signal}, {name}"),
            None => format!("signal {signal}"),
        },
        Exit {
            code: Some(code), ..
        } => format!("exit code {code}"),
        _ => "exit status unknown".to_owned(),
    }
}

/// The name of a signal that ends kernels.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}
