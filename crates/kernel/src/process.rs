//! [`Supervised`]: a child process that cannot outlive its owner, however the owner ends.
//!
//! A supervisor process (see [`supervisor`]) stands between the owner and the child. It adopts every
//! descendant of the child and holds a socket to the owner. When that socket closes, because the owner
//! dropped it or was killed, the supervisor ends all descendants, including those in other process
//! sessions. A second process above it, the watcher, does the same if the supervisor itself is killed.

pub mod busy_poll;
mod child_command;
pub mod daemon;
#[cfg(target_os = "linux")]
mod fork;
mod launcher;
mod memory;
pub mod own_process;
mod signals;
mod socket;
pub mod supervisor;
mod tree;
#[cfg(target_os = "linux")]
mod watcher;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::process::Child;
use tracing::debug;

pub use child_command::ChildCommand;
pub use launcher::Supervisor;
use launcher::SupervisorProcess;
pub use memory::ProcessTable;
pub use socket::Exit;
use socket::{SupervisorMessage, SupervisorSocket};

/// How long a supervisor may take to kill a child, and its watcher if the supervisor does not.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

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
    /// The watcher of the supervisor (Linux), or the supervisor. Reaped by the runtime after it has exited; by then all
    /// descendants have ended.
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
        let bytes = command.encode().map_err(StartError::Program)?;
        let SupervisorProcess { socket, process } =
            supervisor.take().map_err(StartError::Supervisor)?;
        let mut socket = SupervisorSocket::new(socket).map_err(StartError::Supervisor)?;
        socket
            .send_command(&bytes, command.cwd.descriptor())
            .await
            .map_err(StartError::Supervisor)?;
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
                    supervisor: process,
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
        let exit = match self.socket.next_message().await {
            Ok(Some(SupervisorMessage::Exited(exit))) => exit,
            Ok(Some(_)) => Exit::UNKNOWN,
            // Supervisor and watcher were killed. The child is no longer supervised.
            Ok(None) | Err(_) => {
                self.kill_process_group();
                Exit::UNKNOWN
            }
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
        self.resume_watcher();
    }

    /// Kills the child and all its descendants, and waits until the child has ended. If the supervisor does not react
    /// in time, its watcher kills both; a watcher that does not react either is killed with the child's process group.
    pub async fn kill_and_wait(&mut self) -> Exit {
        self.kill();
        if let Ok(exit) = tokio::time::timeout(KILL_TIMEOUT, self.wait()).await {
            return exit;
        }
        self.socket.shut_down();
        if let Ok(exit) = tokio::time::timeout(KILL_TIMEOUT, self.wait()).await {
            return exit;
        }
        self.kill_process_group();
        // Fails if it is already gone.
        self.supervisor.start_kill().ok();
        self.exit = Some(Exit::UNKNOWN);
        Exit::UNKNOWN
    }

    /// Waits at most `timeout` until supervisor and watcher have exited, and with them all descendants of the child.
    /// A child that still runs is killed first.
    pub async fn wait_all_gone(mut self, timeout: Duration) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => self.kill_and_wait().await,
        };
        let all_gone = async {
            // Both hold the socket. After the exit of the child they send nothing that matters.
            while let Ok(Some(_)) = self.socket.next_message().await {}
            self.supervisor.wait().await.ok();
        };
        let _ended = tokio::time::timeout(timeout, all_gone).await;
        exit
    }

    /// Resumes a watcher that was stopped. It resumes the supervisor.
    fn resume_watcher(&self) {
        // A process that the runtime has reaped has no id any more.
        if let Some(pid) = self.supervisor.id().and_then(raw_pid) {
            let _sent = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
        }
    }

    fn kill_process_group(&self) {
        let Some(pid) = raw_pid(self.pid) else {
            return;
        };
        // Fails if the process group is already gone.
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

fn raw_pid(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}
