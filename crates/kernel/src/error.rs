//! [`KernelError`]: what goes wrong with kernels (not in the code they run), and whether trying again
//! is safe.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::process::Exit;

/// What went wrong with a kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No interpreter was found.
    #[error("no Python was found")]
    NoPython {
        /// Where it was looked for, and why that would not do.
        rejected: Vec<crate::python::Rejected>,
    },
    /// The interpreter is too old for the runner.
    #[error("{} is Python {version}; the runner needs 3.8 or newer", interpreter.display())]
    TooOld {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its version, as far as it told.
        version: String,
    },
    /// The working directory will not do.
    #[error("the working directory {} {why}", path.display())]
    BadDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The runner's own files could not be put anywhere.
    #[error("the runner's files could not be written to {}", folder.display())]
    Staging {
        /// The last folder that was tried.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program could not be started.
    #[error("{} could not be started", program.display())]
    Launch {
        /// The program.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The kernel's process ended before it was ready.
    #[error("the kernel ended while starting ({})", words(*exit))]
    FailedToStart {
        /// How it ended.
        exit: Exit,
        /// What it said last.
        stderr: String,
    },
    /// The kernel was not ready in time.
    #[error("the kernel was not ready after {after:?}")]
    NotReady {
        /// The time it had.
        after: Duration,
        /// What it said last.
        stderr: String,
    },
    /// The wait for the kernel was stopped before it was ready, or before the cell had begun.
    #[error("stopped before the code had begun")]
    StoppedEarly {
        /// Why.
        reason: crate::stop::StopReason,
    },
    /// The kernel died.
    #[error("the kernel died ({})", words(*exit))]
    Died {
        /// How.
        exit: Exit,
        /// What it said last on standard error.
        stderr: String,
        /// Whether the code may have begun to run.
        begun: Begun,
    },
    /// The kernel said something that makes no sense; it was killed.
    #[error("the kernel broke the protocol: {what}")]
    Protocol {
        /// What is wrong.
        what: String,
    },
    /// The process has no file descriptors or processes left.
    #[error("out of {what}")]
    Exhausted {
        /// Of what.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A module of the user's failed, and the kernel was not to start without it.
    #[error("failed to load Python module {}{}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Module {
        /// The file.
        path: PathBuf,
        /// The line.
        line: Option<u32>,
        /// What went wrong.
        what: String,
    },
    /// No kernel of that name is installed.
    #[error("there is no kernel named `{name}`")]
    NoKernelspec {
        /// The name.
        name: String,
        /// The kernels that there are.
        available: Vec<String>,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// A kernel is installed in a way in which it cannot be started.
    #[error("the kernel `{name}` cannot be started")]
    BrokenKernelspec {
        /// The name.
        name: String,
        /// What is wrong.
        #[source]
        fault: cellwright_jupyter::kernelspec::Fault,
    },
    /// The interpreter has no ipykernel.
    #[error("{} has no ipykernel", python.display())]
    NoIpykernel {
        /// The interpreter.
        python: PathBuf,
    },
    /// A connection file will not do.
    #[error(transparent)]
    Connection {
        /// What is wrong with it.
        source: cellwright_jupyter::connection::ConnectionError,
    },
    /// There is no place for a kernel's sockets.
    #[error("no folder will do for the kernel's sockets")]
    NoSockets {
        /// What was tried.
        #[source]
        source: cellwright_jupyter::connection::NoSocketFolder,
    },
    /// A kernel that should be running cannot be reached.
    #[error("the kernel of {} cannot be reached: {why}", connection_file.display())]
    Unreachable {
        /// Its connection file.
        connection_file: PathBuf,
        /// Why.
        why: String,
    },
    /// The kernels of this session die again and again before they finish a cell.
    #[error("Python kernel restarted too many times in this session")]
    RestartedTooOften,
    /// As many sessions are busy as there may be.
    #[error("all {limit} sessions are busy")]
    TooManySessions {
        /// How many there may be.
        limit: usize,
    },
    /// As many calls wait for this session as may.
    #[error("{limit} calls are waiting for this session already")]
    QueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// A cell wants a fresh kernel in the middle of a call, and others go on with this one.
    #[error("cell {cell} wants a fresh kernel, but others use this session")]
    SharedReset {
        /// The cell, counted from 0.
        cell: usize,
    },
    /// The session was ended before it came to this.
    #[error("the session was ended")]
    SessionEnded,
    /// There is no such session.
    #[error("there is no such session")]
    NoSession,
    /// The kernel refused a question.
    #[error("the kernel could not answer: {why}")]
    NoAnswer {
        /// Its words.
        why: String,
    },
}

/// Whether code may have begun to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It certainly did not.
    No,
    /// It did, or may have.
    Maybe,
}

/// What may be done about an error without asking anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing.
    Never,
    /// The same once more, on a fresh kernel.
    OnceOnAFreshKernel,
    /// The same once more, after giving back what is not needed.
    OnceAfterClearing,
}

impl KernelError {
    /// The whole policy: code runs at most once, so only what certainly had not begun is repeated.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Died {
                begun: Begun::No, ..
            } => Retry::OnceOnAFreshKernel,
            Self::Exhausted { .. } => Retry::OnceAfterClearing,
            _ => Retry::Never,
        }
    }

    /// What the system said when something could not be opened.
    pub fn exhausted_by(source: io::Error) -> Self {
        let what = exhausted(&source).unwrap_or("what the system needs for it");
        Self::Exhausted { what, source }
    }

    /// An error of starting a process, with exhaustion told apart.
    pub(crate) fn launch(program: PathBuf, source: io::Error) -> Self {
        match exhausted(&source) {
            Some(what) => Self::Exhausted { what, source },
            None => Self::Launch { program, source },
        }
    }
}

/// What the system has run out of.
fn exhausted(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("file descriptors in this process (see `ulimit -n`)"),
        Errno::NFILE => Some("open files on this machine"),
        Errno::AGAIN => Some("processes (see `ulimit -u`)"),
        Errno::NOMEM => Some("memory"),
        _ => None,
    }
}

/// How a process ended, in words.
fn words(exit: Exit) -> String {
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
        _ => "nobody saw how".to_owned(),
    }
}

/// The name of the signals that end kernels.
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
