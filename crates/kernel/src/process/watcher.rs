//! The watcher: the parent of a supervisor. It ends the descendants of a supervisor that was killed, and resumes a
//! supervisor that was suspended.
//!
//! It is a child subreaper like the supervisor, but one level above: if the supervisor dies, the kernel and all orphans
//! that the supervisor had adopted become children of the watcher. It holds the socket of the owner, so that it notices
//! the end of the owner without the supervisor, and so that the owner sees the socket closed only after both are gone.
//! If the watcher dies, the system sends the supervisor a signal, and the supervisor ends its descendants.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal as NixSignal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::fork::{Fork, fork};
use super::socket::{self, SupervisorMessage};
use super::supervisor::{KILL_ALL_TIMEOUT, TERMINATE_GRACE, supervise, timespec};
use super::{signals, tree};

/// How long a supervisor may take to end its descendants after its owner is gone or a signal has asked it to end. Longer
/// than its own two graces.
const SUPERVISOR_GRACE: Duration = Duration::from_millis(1500);

/// Starts the supervisor and watches it to its end. Returns in both processes.
pub(super) fn main(owner: &OwnedFd) -> io::Result<()> {
    tree::adopt_orphans();
    // Before the supervisor exists: a signal must not end the watcher alone.
    let signals = signals::block()?;
    let watcher = rustix::process::getpid();
    let supervisor = match fork() {
        Ok(Fork::Parent(supervisor)) => supervisor,
        Ok(Fork::Child) => {
            let _session = rustix::process::setsid();
            signals.thread_unblock()?;
            return supervise(owner, Some(watcher));
        }
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            socket::send_message(owner, SupervisorMessage::Failed { errno }, &[]);
            return Ok(());
        }
    };
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let succeeded = watch(supervisor, owner, &signals);
    if has_children() {
        // A supervisor that has done its work leaves none; these are orphans of one that was killed.
        tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT);
    }
    if !succeeded {
        socket::send_message(owner, SupervisorMessage::Lost, &[]);
    }
    Ok(())
}

/// Waits until the supervisor has ended. Returns whether it exited by itself.
fn watch(supervisor: Pid, owner: &OwnedFd, signals: &SignalFd) -> bool {
    // When a supervisor that should end is killed.
    let mut deadline: Option<Instant> = None;
    let mut owner_gone = false;
    loop {
        match state(supervisor) {
            State::Runs => {}
            // A suspended supervisor would not notice the end of its owner.
            State::Stopped => send(supervisor, Signal::CONT),
            State::Ended { exited } => return exited,
        }
        let remaining = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) {
            send(supervisor, Signal::KILL);
            deadline = None;
        }
        let mut watched = [
            PollFd::new(signals, PollFlags::IN),
            // Without `IN`: the data is for the supervisor.
            PollFd::new(owner, PollFlags::RDHUP),
        ];
        let count = if owner_gone { 1 } else { 2 };
        let watched = &mut watched[..count];
        if poll(watched, remaining.map(timespec).as_ref()).is_err() {
            continue;
        }
        if watched
            .get(1)
            .is_some_and(|owner| !owner.revents().is_empty())
        {
            owner_gone = true;
            deadline.get_or_insert(Instant::now() + SUPERVISOR_GRACE);
        }
        while let Ok(Some(info)) = signals.read_signal() {
            let number = i32::try_from(info.ssi_signo).unwrap_or(0);
            if NixSignal::try_from(number).is_ok_and(signals::is_end_request) {
                send(supervisor, Signal::TERM);
                deadline.get_or_insert(Instant::now() + SUPERVISOR_GRACE);
            }
        }
    }
}

enum State {
    Runs,
    Stopped,
    Ended { exited: bool },
}

/// What has happened to the supervisor since the last call.
fn state(supervisor: Pid) -> State {
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    match rustix::process::waitid(WaitId::Pid(supervisor), options) {
        Ok(Some(status)) if status.stopped() || status.trapped() => State::Stopped,
        Ok(Some(status)) => State::Ended {
            exited: status.exit_status() == Some(0),
        },
        Ok(None) | Err(Errno::INTR) => State::Runs,
        Err(_) => State::Ended { exited: false },
    }
}

/// Whether this process has children, zombies included.
fn has_children() -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(
        rustix::process::waitid(WaitId::All, peek),
        Err(Errno::CHILD)
    )
}

/// Signals the supervisor, which is not reaped yet: its process id is its own.
fn send(supervisor: Pid, signal: Signal) {
    let _sent = rustix::process::kill_process(supervisor, signal);
}
