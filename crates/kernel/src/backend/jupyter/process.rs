//! [`KernelProcess`]: the process of a kernel, which is either a child or was started by another program.

use std::time::{Duration, Instant};
use std::{fs, thread};

use cellwright_jupyter::connection::{ConnectionFile, SocketDir};
use cellwright_jupyter::kernelspec::InterruptMode;
use rustix::io::Errno;
use rustix::process::Pid;

use super::lifecycle::{InterruptPath, Lifecycle};
use super::output_tail::ProcessOutputTail;
use crate::process::{Exit, Supervised};

/// How long to wait for the exit of a kernel before its runtime files are removed again.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the supervisor may take to end the processes that the kernel started.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The process of a kernel.
#[derive(Debug)]
pub enum KernelProcess {
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
pub struct OwnedProcess {
    pub(super) process: Supervised,
    /// The `interrupt_mode` of its kernelspec.
    pub(super) interrupt_mode: InterruptMode,
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
        let sockets = self.sockets.as_ref().map(|dir| dir.path().to_owned());
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

impl Lifecycle for KernelProcess {
    fn is_attached(&self) -> bool {
        matches!(self, Self::Attached { .. })
    }

    fn pid(&self) -> Option<u32> {
        match self {
            Self::Owned(child) => Some(child.process.pid()),
            Self::Attached { .. } => None,
        }
    }

    fn interrupt(&self) -> InterruptPath {
        match self {
            Self::Owned(child) if child.interrupt_mode == InterruptMode::Signal => {
                child.process.interrupt();
                InterruptPath::Signal
            }
            _ => InterruptPath::Message,
        }
    }

    fn exit(&self) -> Option<Exit> {
        match self {
            Self::Owned(child) => child.process.exit(),
            Self::Attached { gone } => gone.then_some(Exit::UNKNOWN),
        }
    }

    async fn exited(&mut self) -> Exit {
        match self {
            Self::Owned(child) => child.process.wait().await,
            Self::Attached { gone: true } => Exit::UNKNOWN,
            Self::Attached { gone: false } => std::future::pending().await,
        }
    }

    fn record_disconnect(&mut self) {
        match self {
            // The supervisor reports its exit.
            Self::Owned(_) => {}
            Self::Attached { gone } => *gone = true,
        }
    }

    fn terminate(&self) {
        if let Self::Owned(child) = self {
            child.process.terminate();
        }
    }

    async fn kill(&mut self) -> Exit {
        match self {
            Self::Owned(child) => child.process.kill_and_wait().await,
            Self::Attached { gone } => {
                *gone = true;
                Exit::UNKNOWN
            }
        }
    }

    async fn end(self) -> Option<Exit> {
        match self {
            Self::Owned(child) => Some(child.process.wait_all_gone(CLEANUP_TIMEOUT).await),
            Self::Attached { .. } => None,
        }
    }

    fn output_tail(&self) -> String {
        match self {
            Self::Owned(child) => child.output.text(),
            Self::Attached { .. } => String::new(),
        }
    }

    async fn final_output(&mut self) -> String {
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
