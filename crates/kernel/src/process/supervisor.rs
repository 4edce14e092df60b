//! The supervisor process between an owner and its child.
//!
//! It runs in its own process session, adopts orphaned descendants (Linux: child subreaper) and has the
//! owner's socket as its standard input. One thread reaps children, the other serves the owner; both
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
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::socket::{self, Exit, SupervisorMessage, SupervisorSocket};
use super::tree;

/// How long a child may take to exit by itself after its owner is gone.
const SELF_EXIT_GRACE: Duration = Duration::from_millis(250);

/// How long processes may take to exit after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_millis(500);

/// When to stop killing processes that do not die (those of other users, or in uninterruptible sleep).
const KILL_ALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Capacity of the pipes that the child writes to, in bytes: fewer wake-ups for large output.
const PIPE_CAPACITY: usize = 256 * 1024;

/// Runs a child to its end. `arguments` is its command line, `owner` the socket that the supervisor
/// has as its standard input.
pub fn main(owner: &OwnedFd, arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    // Detaches from the owner's terminal and its Ctrl-C. Fails only if this process already leads a group.
    let _session = rustix::process::setsid();
    tree::adopt_orphans();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let pid = match start(&arguments, owner) {
        Ok(pid) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            socket::send_message(owner, SupervisorMessage::Failed { errno }, &[]);
            return Ok(());
        }
    };
    let (all_gone, reaper_running) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let child = Arc::new(Mutex::new(Some(pid)));
    let reaper = {
        let child = Arc::clone(&child);
        let owner = owner.try_clone()?;
        thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(move || reap(&child, &owner, reaper_running))?
    };
    serve_owner(&child, owner, &all_gone);
    drop(reaper);
    Ok(())
}

fn start(arguments: &[OsString], owner: &OwnedFd) -> io::Result<Pid> {
    let (channel, child_channel) = SupervisorSocket::pair()?;
    let (stdout, child_stdout) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (stderr, child_stderr) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    enlarge_pipe(&stdout);
    enlarge_pipe(&stderr);
    // This is the only thread and it starts only this child: no other process can inherit the socket.
    rustix::io::fcntl_setfd(&child_channel, rustix::io::FdFlags::empty())?;
    let number = OsString::from(child_channel.as_raw_fd().to_string());
    let [program, rest @ ..] = arguments else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let child = Command::new(program)
        .args(rest.iter().map(|argument| {
            if argument == "{channel}" {
                &number
            } else {
                argument
            }
        }))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(child_stdout)
        .stderr(child_stderr)
        .spawn()?;
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
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if *held == Some(pid) {
                *held = None;
                let exit = Exit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                };
                socket::send_message(owner, SupervisorMessage::Exited(exit), &[]);
                // End its descendants in another thread, so that reaping continues.
                let _detached = thread::Builder::new()
                    .stack_size(128 * 1024)
                    .spawn(|| tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT));
            }
        }
    }
    drop(running);
}

/// Executes the commands of the owner until it is gone or all processes have exited.
fn serve_owner(child: &Mutex<Option<Pid>>, owner: &OwnedFd, all_gone: &OwnedFd) {
    loop {
        match wait_event(owner, all_gone, None) {
            SupervisorEvent::None => {}
            SupervisorEvent::Command(socket::INTERRUPT) => signal_group(child, Signal::INT),
            SupervisorEvent::Command(socket::TERMINATE) => signal_group(child, Signal::TERM),
            SupervisorEvent::Command(_) => {
                tree::end_descendants(Duration::ZERO, KILL_ALL_TIMEOUT);
            }
            SupervisorEvent::OwnerGone => {
                // The child sees its channel closed and may exit by itself.
                if !matches!(
                    wait_event(all_gone, all_gone, Some(SELF_EXIT_GRACE)),
                    SupervisorEvent::AllGone
                ) {
                    tree::end_descendants(TERMINATE_GRACE, KILL_ALL_TIMEOUT);
                }
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
    AllGone,
}

fn wait_event(owner: &OwnedFd, all_gone: &OwnedFd, timeout: Option<Duration>) -> SupervisorEvent {
    let mut watched = [
        PollFd::new(all_gone, PollFlags::IN),
        PollFd::new(owner, PollFlags::IN),
    ];
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    if poll(&mut watched, timeout.as_ref()).is_err() {
        return SupervisorEvent::None;
    }
    if !watched[0].revents().is_empty() {
        return SupervisorEvent::AllGone;
    }
    if watched[1].revents().is_empty() {
        return SupervisorEvent::None;
    }
    let mut command = [0];
    match rustix::io::read(owner, &mut command) {
        Ok(0) => SupervisorEvent::OwnerGone,
        Ok(_) => SupervisorEvent::Command(command[0]),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => SupervisorEvent::None,
        Err(_) => SupervisorEvent::OwnerGone,
    }
}

/// Signals the child's process group, unless the child was reaped and its pid may have been reused.
fn signal_group(child: &Mutex<Option<Pid>>, signal: Signal) {
    let held = child.lock_ignoring_poison();
    if let Some(pid) = *held {
        let _sent = rustix::process::kill_process_group(pid, signal);
    }
}
