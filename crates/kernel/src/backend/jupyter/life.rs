//! [`Life`]: whether a kernel's process is ours, and what can be done about it if so.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{fs, thread};

use cellwright_jupyter::connection::{ConnectionFile, SocketFolder};
use rustix::io::Errno;
use rustix::process::Pid;

use super::words::Words;
use crate::process::{Exit, Supervised};

/// How long a kernel that nobody wants any more may leave traces.
const LAST_TRACES: Duration = Duration::from_secs(3);

/// The life of a kernel.
#[derive(Debug)]
pub(super) enum Life {
    /// It is a child of ours.
    Ours(Box<Child>),
    /// It was there before us, and stays.
    Theirs {
        /// Whether it has gone, as far as can be seen from here.
        gone: bool,
    },
}

/// A kernel's process, with what must stay as long as it lives.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) process: Supervised,
    pub(super) words: Words,
    /// Dropped after the process, so that it is on its way out.
    pub(super) _traces: Traces,
}

/// What there is of a kernel in the file system. It goes with this.
#[derive(Debug)]
pub(super) struct Traces {
    /// The kernel's process, as soon as it is known.
    pub(super) pid: Option<u32>,
    pub(super) listed: ConnectionFile,
    pub(super) sockets: Option<SocketFolder>,
}

impl Drop for Traces {
    fn drop(&mut self) {
        if self.pid.is_some_and(is_gone) {
            return;
        }
        // A kernel that is just starting writes its connection file and its sockets anew, until it has ended.
        let pid = self.pid;
        let file = self.listed.path().to_owned();
        let sockets = self.sockets.as_ref().map(|folder| folder.path().to_owned());
        let again = move || {
            let until = Instant::now() + LAST_TRACES;
            while !pid.is_some_and(is_gone) && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            fs::remove_file(file).ok();
            if let Some(sockets) = sockets {
                fs::remove_dir_all(sockets).ok();
            }
        };
        let thread = thread::Builder::new().name("jupyter-traces".to_owned());
        // If there can be no thread, there are at most traces.
        thread.stack_size(64 * 1024).spawn(again).ok();
    }
}

impl Life {
    /// Whether it was there before us.
    pub(super) fn is_theirs(&self) -> bool {
        matches!(self, Self::Theirs { .. })
    }

    /// How it ended, if that is known already.
    pub(super) fn ended(&self) -> Option<Exit> {
        match self {
            Self::Ours(child) => child.process.exit(),
            Self::Theirs { gone } => gone.then_some(Exit::UNKNOWN),
        }
    }

    /// How it ended, if that can be seen by now.
    pub(super) fn look(&mut self) -> Option<Exit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.exited()).poll(&mut context) {
            Poll::Ready(exit) => Some(exit),
            Poll::Pending => None,
        }
    }

    /// Waits until its process has ended; for ever if nobody can tell. Cancel-safe.
    pub(super) async fn exited(&mut self) -> Exit {
        match self {
            Self::Ours(child) => child.process.exited().await,
            Self::Theirs { gone: true } => Exit::UNKNOWN,
            Self::Theirs { gone: false } => std::future::pending().await,
        }
    }

    /// Ends it without asking, if it is ours; in any case it is of no more use.
    pub(super) async fn end(&mut self) -> Exit {
        match self {
            Self::Ours(child) => child.process.end().await,
            Self::Theirs { gone } => {
                *gone = true;
                Exit::UNKNOWN
            }
        }
    }

    /// What its process said last, by now.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Ours(child) => child.words.text(),
            Self::Theirs { .. } => String::new(),
        }
    }

    /// What its process said last.
    pub(super) async fn last_words(&mut self) -> String {
        match self {
            Self::Ours(child) => child.words.last().await,
            Self::Theirs { .. } => String::new(),
        }
    }
}

fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH))
}
