//! The processes between an owner and its child: a supervisor, and above it a watcher (`watcher.rs`).
//!
//! The supervisor runs in its own process session, adopts orphaned descendants (Linux: child subreaper) and has the
//! owner's socket as its standard input. One thread reaps children, one receives signals, one serves the owner; all
//! block until an event arrives.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cellwright_stdext::LockExt;
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::child_command::ReceivedCommand;
use super::socket::{self, Exit, SupervisorMessage, SupervisorSocket};
#[cfg(target_os = "linux")]
use super::watcher;
use super::{signals, tree};

/// How long a child may take to exit by itself after its owner is gone.
const SELF_EXIT_GRACE: Duration = Duration::from_millis(250);

/// How long processes may take to exit after SIGTERM.
pub(super) const TERMINATE_GRACE: Duration = Duration::from_millis(500);

/// When to stop killing processes that do not die (those of other users, or in uninterruptible sleep).
pub(super) const KILL_ALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the exit of the child may take to be reported once the supervisor has ended it.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Capacity of the pipes that the child writes to, in bytes: fewer wake-ups for large output.
const PIPE_CAPACITY: usize = 256 * 1024;

/// Runs a child to its end, as the watcher or as the supervisor. `owner` is the socket that this process has as its
/// standard input. Must be called before this process starts threads.
pub fn main(owner: &OwnedFd) -> io::Result<()> {
    // Detaches from the owner's terminal and its Ctrl-C. Fails only if this process already leads a group. Watcher and
    // supervisor have one session each, so that a signal to a process group reaches only one of them.
    let _session = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    return watcher::main(owner);
    // Other systems have no subreapers: a watcher would adopt nothing.
    #[cfg(not(target_os = "linux"))]
    supervise(owner, None)
}

/// Runs a child to its end. `watcher` is the parent of this process.
pub(super) fn supervise(owner: &OwnedFd, watcher: Option<Pid>) -> io::Result<()> {
    tree::adopt_orphans();
    end_with(watcher)?;
    // Until there is a child, a signal ends this process at once.
    let Some((command, directory)) = socket::receive_command(owner)? else {
        return Ok(());
    };
    let signals = signals::block()?;
    let pid = match start(&command, directory.as_ref(), owner, signals) {
        Ok(pid) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            socket::send_message(owner, SupervisorMessage::Failed { errno }, &[]);
            return Ok(());
        }
    };
    drop((command, directory));
    let (all_gone, reaper_running) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let child = Arc::new(Mutex::new(Some(pid)));
    let reaper = {
        let child = Arc::clone(&child);
        let owner = owner.try_clone()?;
        thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(move || reap(&child, &owner, reaper_running))?
    };
    let sources = EventSources {
        owner,
        all_gone: &all_gone,
        end_request: &signals::end_requests(signals)?,
    };
    serve_owner(&child, &sources);
    drop(reaper);
    resume(watcher);
    Ok(())
}

/// Lets the system send this process SIGTERM when its watcher dies.
fn end_with(watcher: Option<Pid>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if watcher.is_some() {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have died before.
        if rustix::process::getppid() != watcher {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
    let _ = watcher;
    Ok(())
}

/// Resumes a watcher that was stopped, so that it sees the end of this process.
fn resume(watcher: Option<Pid>) {
    if let Some(watcher) = watcher
        && rustix::process::getppid() == Some(watcher)
    {
        let _sent = rustix::process::kill_process(watcher, Signal::CONT);
    }
}

/// Starts the child. `directory` is its working directory if that is held.
fn start(
    received: &ReceivedCommand,
    directory: Option<&OwnedFd>,
    owner: &OwnedFd,
    signals: SigSet,
) -> io::Result<Pid> {
    let (channel, child_channel) = SupervisorSocket::pair()?;
    let (stdout, child_stdout) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (stderr, child_stderr) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    enlarge_pipe(&stdout);
    enlarge_pipe(&stderr);
    // This is the only thread and it starts only this child: no other process can inherit the socket.
    rustix::io::fcntl_setfd(&child_channel, rustix::io::FdFlags::empty())?;
    let number = OsString::from(child_channel.as_raw_fd().to_string());
    let [program, rest @ ..] = received.arguments.as_slice() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The child changes its directory before it starts the program, which closes the descriptor.
    let cwd = directory.map_or_else(
        || received.cwd.clone(),
        |directory| format!("/proc/self/fd/{}", directory.as_raw_fd()).into(),
    );
    let mut command = Command::new(program);
    command
        .args(rest.iter().map(|argument| {
            if argument == "{channel}" {
                &number
            } else {
                argument
            }
        }))
        .env_clear()
        .envs(received.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(child_stdout)
        .stderr(child_stderr);
    let child = signals::with_unblocked(signals, || command.spawn())?;
    // It holds the child's ends of the pipes.
    drop(command);
    let message = SupervisorMessage::Started { pid: child.id() };
    let descriptors = [channel.as_fd(), stdout.as_fd(), stderr.as_fd()];
    socket::send_message(owner, message, &descriptors);
    // The reaper thread waits for this child and all other children.
    Ok(Pid::from_child(&child))
}

/// Enlarges a pipe if the system allows it; the default capacity works, too.
fn enlarge_pipe(pipe: &OwnedFd) {
    #[cfg(target_os = "linux")]
    let _enlarged = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_CAPACITY);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, PIPE_CAPACITY);
}

/// Reaps the child and every adopted orphan until none is left. `running` closes when it returns.
fn reap(child: &Mutex<Option<Pid>>, owner: &OwnedFd, running: OwnedFd) {
    // Peeks first and reaps under the lock, so that no signal is sent to a pid that was freed.
    let peek = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(rustix::process::WaitId::All, peek) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let mut held = child.lock_ignoring_poison();
        let mut has_ended = false;
        let remaining = loop {
            let (pid, status) = match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(reaped)) => reaped,
                Ok(None) => break true,
                Err(error) => break error != rustix::io::Errno::CHILD,
            };
            if *held == Some(pid) {
                has_ended = true;
                *held = None;
                let exit = Exit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                };
                socket::send_message(owner, SupervisorMessage::Exited(exit), &[]);
            }
        };
        // Where orphans are adopted, a process without a child has no descendant.
        if has_ended && (remaining || !cfg!(target_os = "linux")) {
            // End them in another thread, so that reaping continues.
            let _detached = thread::Builder::new()
                .stack_size(128 * 1024)
                .spawn(|| tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT));
        }
    }
    drop(running);
}

/// Executes the commands of the owner until it is gone, a signal asks this process to end, or all processes have
/// exited.
fn serve_owner(child: &Mutex<Option<Pid>>, sources: &EventSources<'_>) {
    loop {
        match sources.wait() {
            SupervisorEvent::None => {}
            SupervisorEvent::Command(socket::INTERRUPT) => signal_group(child, Signal::INT),
            SupervisorEvent::Command(socket::TERMINATE) => signal_group(child, Signal::TERM),
            SupervisorEvent::Command(_) => {
                tree::end_descendants(Duration::ZERO, KILL_ALL_TIMEOUT);
            }
            SupervisorEvent::OwnerGone => {
                // The child sees its channel closed and may exit by itself.
                if !sources.wait_all_gone(SELF_EXIT_GRACE) {
                    tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT);
                }
                return;
            }
            SupervisorEvent::EndRequested => {
                tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT);
                // The reaper reports the exit of the child first.
                sources.wait_all_gone(REPORT_TIMEOUT);
                return;
            }
            SupervisorEvent::AllGone => return,
        }
    }
}

enum SupervisorEvent {
    None,
    Command(u8),
    OwnerGone,
    /// A signal asked the supervisor to end.
    EndRequested,
    AllGone,
}

/// The descriptors that a supervisor waits for.
struct EventSources<'a> {
    /// Commands of the owner.
    owner: &'a OwnedFd,
    /// Closed when all children have exited.
    all_gone: &'a OwnedFd,
    /// Closed when a signal asks the supervisor to end.
    end_request: &'a OwnedFd,
}

impl EventSources<'_> {
    fn wait(&self) -> SupervisorEvent {
        let mut watched = [
            PollFd::new(self.all_gone, PollFlags::IN),
            PollFd::new(self.end_request, PollFlags::IN),
            PollFd::new(self.owner, PollFlags::IN),
        ];
        if poll(&mut watched, None).is_err() {
            return SupervisorEvent::None;
        }
        if !watched[0].revents().is_empty() {
            return SupervisorEvent::AllGone;
        }
        if !watched[1].revents().is_empty() {
            return SupervisorEvent::EndRequested;
        }
        if watched[2].revents().is_empty() {
            return SupervisorEvent::None;
        }
        let mut command = [0];
        match rustix::io::read(self.owner, &mut command) {
            Ok(0) => SupervisorEvent::OwnerGone,
            Ok(_) => SupervisorEvent::Command(command[0]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => SupervisorEvent::None,
            Err(_) => SupervisorEvent::OwnerGone,
        }
    }

    /// Waits at most `timeout` until all children have exited. Returns whether they have.
    fn wait_all_gone(&self, timeout: Duration) -> bool {
        let mut watched = [PollFd::new(self.all_gone, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(timeout))).is_ok_and(|ready| ready > 0)
    }
}

/// A duration as `poll` takes it.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().cast_signed(),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Signals the child's process group, unless the child was reaped and its pid may have been reused.
fn signal_group(child: &Mutex<Option<Pid>>, signal: Signal) {
    let held = child.lock_ignoring_poison();
    if let Some(pid) = *held {
        let _sent = rustix::process::kill_process_group(pid, signal);
    }
}
