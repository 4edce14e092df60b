//! [`Supervised`]: a child process that cannot outlive its owner, whatever way the owner goes.
//!
//! Between us and the child stands a supervisor (see [`supervisor`]): a small process that adopts
//! every descendant of the child and holds a socket to us. When that socket closes, because we let
//! go or were killed, it ends them all, those in sessions of their own included.

pub mod awake;
pub mod background;
mod link;
mod memory;
pub mod supervisor;
mod tree;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Child;

pub use link::Exit;
use link::{Link, Report};
pub use memory::Processes;

/// How to start a supervisor: a program that calls [`supervisor::main`] with the arguments after
/// `arguments`.
#[derive(Clone, Debug)]
pub struct Supervisor {
    /// The program.
    pub program: PathBuf,
    /// What comes before the child's own command line.
    pub arguments: Vec<OsString>,
}

/// How long a supervisor may take to end a child that it was told to kill.
const OBEDIENCE: Duration = Duration::from_secs(3);

/// What to start.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program and arguments. An argument `{channel}` becomes the number of the descriptor that
    /// the child's end of the channel has.
    pub arguments: Vec<OsString>,
    /// The whole environment of the child.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub cwd: PathBuf,
}

/// Our ends of what the child writes to and talks on.
#[derive(Debug)]
pub struct Ends {
    /// A socket whose other end only the child has.
    pub channel: OwnedFd,
    /// What comes out of its descriptor 1.
    pub stdout: OwnedFd,
    /// What comes out of its descriptor 2.
    pub stderr: OwnedFd,
}

/// A running child. Dropping it ends the child and everything it started.
#[derive(Debug)]
pub struct Supervised {
    link: Link,
    pid: u32,
    exit: Option<Exit>,
    /// Reaped by the runtime once it has ended; by then it has ended everything else.
    supervisor: Child,
}

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The supervisor could not be started or went away.
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
        command: &Command,
    ) -> Result<(Self, Ends), StartError> {
        let (ours, theirs) = Link::pair().map_err(StartError::Supervisor)?;
        let child = tokio::process::Command::new(&supervisor.program)
            .args(&supervisor.arguments)
            .args(&command.arguments)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.cwd)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(StartError::Supervisor)?;
        let mut link = Link::new(ours).map_err(StartError::Supervisor)?;
        match link.started().await.map_err(StartError::Supervisor)? {
            (Report::Started { pid }, Some(ends)) => {
                let supervised = Self {
                    link,
                    pid,
                    exit: None,
                    supervisor: child,
                };
                Ok((supervised, ends))
            }
            (Report::Failed { errno }, _) => {
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

    /// How the child ended, if that is known already.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits until the child has ended. Cancel-safe, and may be called again.
    pub async fn exited(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = if let Ok(Some(Report::Exited(exit))) = self.link.report().await {
            exit
        } else {
            // A supervisor that goes without a word was killed. Nobody watches the child now.
            self.end_without_supervisor();
            Exit::UNKNOWN
        };
        self.exit = Some(exit);
        exit
    }

    /// Interrupts the child and what runs in its process group, as Ctrl-C would.
    pub fn interrupt(&self) {
        self.link.send(link::INTERRUPT);
    }

    /// Asks the whole process group to end.
    pub fn terminate(&self) {
        self.link.send(link::TERMINATE);
    }

    /// Ends the child and every descendant, without asking.
    pub fn kill(&self) {
        self.link.send(link::KILL);
    }

    /// Ends the child and every descendant, and waits until the child has ended. A supervisor that
    /// does not do it in time is ended, too, with the child's process group.
    pub async fn end(&mut self) -> Exit {
        self.kill();
        if let Ok(exit) = tokio::time::timeout(OBEDIENCE, self.exited()).await {
            return exit;
        }
        self.end_without_supervisor();
        // Also ends one that is stopped. It may be gone already.
        self.supervisor.start_kill().ok();
        self.exit = Some(Exit::UNKNOWN);
        Exit::UNKNOWN
    }

    /// Waits until the supervisor has gone, and with it everything that the child started. Whatever
    /// has not ended by itself by now is ended.
    pub async fn gone(mut self, patience: Duration) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => self.end().await,
        };
        // The link closes when the last descendant is gone.
        let _ended = tokio::time::timeout(patience, self.supervisor.wait()).await;
        exit
    }

    fn end_without_supervisor(&self) {
        let Some(pid) = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        else {
            return;
        };
        // Fails when there is nobody left, which is what we want.
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}
