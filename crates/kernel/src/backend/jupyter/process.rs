//! [`KernelProcess`]: the process of a kernel, which is either a child or was started by another program.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{fs, thread};

use cellwright_jupyter::connection::{ConnectionFile, SocketDir};
use rustix::io::Errno;
use rustix::process::Pid;

use super::output_tail::ProcessOutputTail;
use crate::process::{Exit, Supervised};

/// How long to wait for the exit of a kernel before its runtime files are removed again.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(3);

/// The process of a kernel.
#[derive(Debug)]
pub(super) enum KernelProcess {
    /// A child process.
    Owned(Box<OwnedProcess>),
    /// A process of another program, which keeps running.
    Attached {
        /// Whether its connections show that it is gone.
        gone: bool,
    },
}

/// A child process and the resources that it needs.
#[derive(Debug)]
pub(super) struct OwnedProcess {
    pub(super) process: Supervised,
    pub(super) output: ProcessOutputTail,
    /// Dropped after the process, which is exiting then.
    pub(super) _files: RuntimeFiles,
}

/// The files of a kernel: its connection file and its sockets. Dropping this removes them.
#[derive(Debug)]
pub(super) struct RuntimeFiles {
    /// The kernel's process id, once it is known.
    pub(super) pid: Option<u32>,
    pub(super) connection_file: ConnectionFile,
    pub(super) sockets: Option<SocketDir>,
}

impl Drop for RuntimeFiles {
    fn drop(&mut self) {
        if self.pid.is_some_and(has_exited) {
            return;
        }
        // A kernel that is still starting may write its connection file and create its sockets again until it exits.
        let pid = self.pid;
        let file = self.connection_file.path().to_owned();
        let sockets = self.sockets.as_ref().map(|folder| folder.path().to_owned());
        let remove = move || {
            let deadline = Instant::now() + REMOVAL_TIMEOUT;
            while !pid.is_some_and(has_exited) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(10));
            }
            fs::remove_file(file).ok();
            if let Some(sockets) = sockets {
                fs::remove_dir_all(sockets).ok();
            }
        };
        let thread = thread::Builder::new().name("jupyter-cleanup".to_owned());
        // Without a thread, files may be left over.
        thread.stack_size(64 * 1024).spawn(remove).ok();
    }
}

impl KernelProcess {
    /// Whether another program started it.
    pub(super) fn is_attached(&self) -> bool {
        matches!(self, Self::Attached { .. })
    }

    /// The id of a child process.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Owned(child) => Some(child.process.pid()),
            Self::Attached { .. } => None,
        }
    }

    /// How it exited, if that is known.
    pub(super) fn exit_status(&self) -> Option<Exit> {
        match self {
            Self::Owned(child) => child.process.exit(),
            Self::Attached { gone } => gone.then_some(Exit::UNKNOWN),
        }
    }

    /// Checks without waiting whether it has exited.
    pub(super) fn poll_exit(&mut self) -> Option<Exit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.exited()).poll(&mut context) {
            Poll::Ready(exit) => Some(exit),
            Poll::Pending => None,
        }
    }

    /// Waits until it exits. Never returns for an attached kernel that seems alive. Cancel-safe.
    pub(super) async fn exited(&mut self) -> Exit {
        match self {
            Self::Owned(child) => child.process.wait().await,
            Self::Attached { gone: true } => Exit::UNKNOWN,
            Self::Attached { gone: false } => std::future::pending().await,
        }
    }

    /// Kills a child process. Marks an attached kernel as gone.
    pub(super) async fn kill(&mut self) -> Exit {
        match self {
            Self::Owned(child) => child.process.kill_and_wait().await,
            Self::Attached { gone } => {
                *gone = true;
                Exit::UNKNOWN
            }
        }
    }

    /// The end of the output of the process, so far.
    pub(super) fn output_tail(&self) -> String {
        match self {
            Self::Owned(child) => child.output.text(),
            Self::Attached { .. } => String::new(),
        }
    }

    /// The end of the output of a process that has exited.
    pub(super) async fn final_output(&mut self) -> String {
        match self {
            Self::Owned(child) => child.output.final_text().await,
            Self::Attached { .. } => String::new(),
        }
    }
}

fn has_exited(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH))
}
