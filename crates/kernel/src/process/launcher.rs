//! [`Supervisor`]: how an owner starts supervisors, and one that was started before its child is known.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use cellwright_stdext::LockExt;
use tokio::process::{Child, Command};
use tracing::debug;

use super::socket::SupervisorSocket;

/// How to start a supervisor: a program that calls [`supervisor::main`](super::supervisor::main). Clones share the
/// supervisor that was started early.
#[derive(Clone, Debug)]
pub struct Supervisor {
    program: PathBuf,
    arguments: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    early: Arc<Mutex<Option<SupervisorProcess>>>,
}

/// A supervisor that has no child yet. It ends if it is dropped.
#[derive(Debug)]
pub(super) struct SupervisorProcess {
    /// The owner's end of the socket.
    pub(super) socket: OwnedFd,
    /// The watcher of the supervisor (Linux), or the supervisor.
    pub(super) process: Child,
}

impl Supervisor {
    /// Starts `program` with `arguments`. Its environment is empty.
    pub fn new(program: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments,
            env: Vec::new(),
            early: Arc::default(),
        }
    }

    /// Sets the environment of the supervisor. Its children have their own.
    #[must_use]
    pub fn with_env(self, env: Vec<(OsString, OsString)>) -> Self {
        Self { env, ..self }
    }

    /// Its first arguments.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The program.
    pub fn program(&self) -> &PathBuf {
        &self.program
    }

    /// Starts the supervisor of the next child, so that it is ready when the child is known. Must be called within the
    /// tokio runtime that will start the child. A failure is reported by the start of the child, which tries again.
    pub fn start_early(&self) {
        let started = self.spawn();
        if let Err(error) = &started {
            debug!(%error, "no supervisor was started early");
        }
        *self.early.lock_ignoring_poison() = started.ok();
    }

    /// Ends the supervisor that was started early, if no child has taken it.
    pub fn end_early(&self) {
        self.early.lock_ignoring_poison().take();
    }

    /// Takes the supervisor that was started early, or starts one.
    pub(super) fn take(&self) -> io::Result<SupervisorProcess> {
        let early = self.early.lock_ignoring_poison().take();
        early.map_or_else(|| self.spawn(), Ok)
    }

    fn spawn(&self) -> io::Result<SupervisorProcess> {
        let (socket, supervisor_end) = SupervisorSocket::pair()?;
        let process = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            // It keeps no other directory in use.
            .current_dir("/")
            .stdin(Stdio::from(supervisor_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(SupervisorProcess { socket, process })
    }
}
