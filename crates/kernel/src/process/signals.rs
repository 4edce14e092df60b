//! The signals that end a supervisor. They are blocked and received as data, so that the supervisor can
//! end the descendants of its child first.

use std::os::fd::OwnedFd;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Signals that do not end a supervisor: by default they do nothing, or a terminal sends them to stop a
/// process.
const HARMLESS: [Signal; 7] = [
    Signal::SIGCHLD,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
];

/// Blocks all signals of the calling thread, and of all threads and processes that it starts from now on. SIGKILL,
/// SIGSTOP and faults of the process itself cannot be blocked; real-time signals stay as they are.
pub(super) fn block() -> nix::Result<SigSet> {
    let signals: SigSet = Signal::iterator().collect();
    signals.thread_block()?;
    Ok(signals)
}

/// Calls a function that starts a child which must receive signals. Until it returns, a signal can end this process; its
/// watcher has blocked them and ends the child then.
pub(super) fn with_unblocked<T>(
    signals: SigSet,
    start: impl FnOnce() -> std::io::Result<T>,
) -> std::io::Result<T> {
    signals.thread_unblock()?;
    let started = start();
    signals.thread_block()?;
    started
}

/// Whether a signal asks the supervisor to end.
pub(super) fn is_end_request(signal: Signal) -> bool {
    !HARMLESS.contains(&signal)
}

/// Receives blocked signals in a separate thread. The descriptor that it returns is closed at the first signal that
/// asks the supervisor to end.
pub(super) fn end_requests(signals: SigSet) -> std::io::Result<OwnedFd> {
    let (end_request, none_yet) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(move || {
            while signals.wait().is_ok_and(|signal| !is_end_request(signal)) {}
            drop(none_yet);
        })?;
    Ok(end_request)
}
