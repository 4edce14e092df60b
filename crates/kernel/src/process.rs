//! [`Supervised`]: a child process that cannot outlive its owner, however the owner ends.
//!
//! A supervisor process (see [`supervisor`]) stands between the owner and the child. It adopts every
//! descendant of the child and holds a socket to the owner. When that socket closes, because the owner
//! dropped it or was killed, the supervisor ends all descendants, including those in other process
//! sessions.

pub mod busy_poll;
pub mod daemon;
mod memory;
mod socket;
pub mod supervisor;
mod tree;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use cellwright_stdext::Directory;
use tokio::process::Child;
use tracing::debug;

pub use memory::ProcessTable;
pub use socket::Exit;
use socket::{SupervisorMessage, SupervisorSocket};

/// How to start a supervisor: a program that calls [`supervisor::main`] with the arguments after
/// `arguments`.
#[derive(Clone, Debug)]
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// Arguments before the child's command line.
    pub arguments: Vec<OsString>,
}

/// How long a supervisor may take to kill a child.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// A command to start as a child.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    /// Program and arguments. An argument `{channel}` becomes the number of the descriptor that
    /// the child's end of the channel has.
    pub arguments: Vec<OsString>,
    /// The complete environment of the child, except `PWD`, which is `cwd`.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: Directory,
}

/// The owner's ends of the child's channel and output pipes.
#[derive(Debug)]
pub struct ChildPipes {
    /// A socket whose other end only the child holds.
    pub channel: OwnedFd,
    /// The read end of the child's standard output.
    pub stdout: OwnedFd,
    /// The read end of the child's standard error.
    pub stderr: OwnedFd,
}

/// A running child. Dropping it ends the child and everything it started.
#[derive(Debug)]
pub struct Supervised {
    socket: SupervisorSocket,
    pid: u32,
    exit: Option<Exit>,
    /// Reaped by the runtime after it has exited; by then it has ended all descendants.
    supervisor: Child,
}

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The supervisor could not be started or exited early.
    #[error("the supervisor could not be started")]
    Supervisor(#[source] io::Error),
    /// The program could not be started.
    #[error("the program could not be started")]
    Program(#[source] io::Error),
}

impl Supervised {
    /// Starts a command under a supervisor.
    pub async fn start(
        supervisor: &Supervisor,
        command: &ChildCommand,
    ) -> Result<(Self, ChildPipes), StartError> {
        let (own_end, supervisor_end) = SupervisorSocket::pair().map_err(StartError::Supervisor)?;
        let child = tokio::process::Command::new(&supervisor.program)
            .args(&supervisor.arguments)
            .args(&command.arguments)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env("PWD", command.cwd.path())
            // The child changes its directory before it starts the program, which closes the descriptor.
            .current_dir(command.cwd.open_path())
            .stdin(Stdio::from(supervisor_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(StartError::Supervisor)?;
        let mut socket = SupervisorSocket::new(own_end).map_err(StartError::Supervisor)?;
        match socket
            .receive_started()
            .await
            .map_err(StartError::Supervisor)?
        {
            (SupervisorMessage::Started { pid }, Some(pipes)) => {
                debug!(pid, "process started");
                let supervised = Self {
                    socket,
                    pid,
                    exit: None,
                    supervisor: child,
                };
                Ok((supervised, pipes))
            }
            (SupervisorMessage::Failed { errno }, _) => {
                Err(StartError::Program(io::Error::from_raw_os_error(errno)))
            }
            _ => Err(StartError::Supervisor(io::Error::from(
                io::ErrorKind::UnexpectedEof,
            ))),
        }
    }

    /// The process id of the child (not of its supervisor).
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How the child ended, if that is already known.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits until the child has ended. Cancel-safe; can be called again.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit =
            if let Ok(Some(SupervisorMessage::Exited(exit))) = self.socket.next_message().await {
                exit
            } else {
                // A supervisor that exits without a message was killed. The child is no longer supervised.
                self.kill_process_group();
                Exit::UNKNOWN
            };
        debug!(pid = self.pid, ?exit, "process exited");
        self.exit = Some(exit);
        exit
    }

    /// Sends SIGINT to the child's process group, as Ctrl-C would.
    pub fn interrupt(&self) {
        debug!(pid = self.pid, "interrupt requested");
        self.socket.send(socket::INTERRUPT);
    }

    /// Sends SIGTERM to the child's process group.
    pub fn terminate(&self) {
        debug!(pid = self.pid, "terminate requested");
        self.socket.send(socket::TERMINATE);
    }

    /// Kills the child and all its descendants.
    pub fn kill(&self) {
        debug!(pid = self.pid, "kill requested");
        self.socket.send(socket::KILL);
    }

    /// Kills the child and all its descendants, and waits until the child has ended. A supervisor that
    /// does not react in time is killed, too, with the child's process group.
    pub async fn kill_and_wait(&mut self) -> Exit {
        self.kill();
        if let Ok(exit) = tokio::time::timeout(KILL_TIMEOUT, self.wait()).await {
            return exit;
        }
        self.kill_process_group();
        // SIGKILL also ends a stopped supervisor. Fails if it is already gone.
        self.supervisor.start_kill().ok();
        self.exit = Some(Exit::UNKNOWN);
        Exit::UNKNOWN
    }

    /// Waits at most `timeout` until the supervisor has exited, and with it all descendants of the child.
    /// A child that still runs is killed first.
    pub async fn wait_all_gone(mut self, timeout: Duration) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => self.kill_and_wait().await,
        };
        // The supervisor exits after the last descendant.
        let _ended = tokio::time::timeout(timeout, self.supervisor.wait()).await;
        exit
    }

    fn kill_process_group(&self) {
        let Some(pid) = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        else {
            return;
        };
        // Fails if the process group is already gone.
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}
