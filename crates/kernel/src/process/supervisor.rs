//! The supervising side: the program between an owner and its child.
//!
//! It lives in a session of its own, adopts orphaned descendants (Linux: child subreaper) and holds
//! the owner's socket as its standard input. One thread reaps, one listens to the owner; both sleep
//! until something happens.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::link::{self, Exit, Link, Report};
use super::tree;

/// How long a child may take to notice by itself that its owner has gone.
const NOTICE: Duration = Duration::from_millis(250);

/// How long processes may take to end when asked to.
const GRACE: Duration = Duration::from_millis(500);

/// When to stop trying to end processes that do not die (other users', or stuck in the kernel).
const HOPELESS: Duration = Duration::from_secs(10);

/// Room in the pipes that the child writes to: fewer wake-ups when it writes much.
const PIPE_BYTES: usize = 256 * 1024;

/// Runs a child to its end. `arguments` is its command line, `owner` the socket that a supervisor
/// finds as its standard input.
pub fn main(owner: &OwnedFd, arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    // Clear of the owner's terminal and of its Ctrl-C. Fails only if we already lead a group.
    let _session = rustix::process::setsid();
    tree::adopt_orphans();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let pid = match start(&arguments, owner) {
        Ok(pid) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            link::report(owner, Report::Failed { errno }, &[]);
            return Ok(());
        }
    };
    let (all_gone, reaper_lives) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let child = Arc::new(Mutex::new(Some(pid)));
    let reaper = {
        let child = Arc::clone(&child);
        let owner = owner.try_clone()?;
        thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(move || reap(&child, &owner, reaper_lives))?
    };
    listen(&child, owner, &all_gone);
    drop(reaper);
    Ok(())
}

fn start(arguments: &[OsString], owner: &OwnedFd) -> io::Result<Pid> {
    let (channel, theirs) = Link::pair()?;
    let (stdout, out) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (stderr, err) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    widen(&stdout);
    widen(&stderr);
    // We are the only thread and start only this child: nobody else can inherit it.
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty())?;
    let number = OsString::from(theirs.as_raw_fd().to_string());
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
        .stdout(out)
        .stderr(err)
        .spawn()?;
    let report = Report::Started { pid: child.id() };
    let ends = [channel.as_fd(), stdout.as_fd(), stderr.as_fd()];
    link::report(owner, report, &ends);
    // Not waited for here: the reaper does, for this child and every other.
    Ok(Pid::from_child(&child))
}

/// More room if the system gives it; the default will do.
fn widen(pipe: &OwnedFd) {
    #[cfg(target_os = "linux")]
    let _widened = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, PIPE_BYTES);
}

/// Reaps the child and every adopted orphan until none is left; `lives` closes when it ends.
fn reap(child: &Mutex<Option<Pid>>, owner: &OwnedFd, lives: OwnedFd) {
    // Peeks first and reaps under the lock, so that no signal goes to a number that is free again.
    let peek = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(rustix::process::WaitId::All, peek) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let mut held = child.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if *held == Some(pid) {
                *held = None;
                let exit = Exit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                };
                link::report(owner, Report::Exited(exit), &[]);
                // Whatever it started goes with it; the listener need not be asked.
                let _detached = thread::Builder::new()
                    .stack_size(128 * 1024)
                    .spawn(|| tree::end(GRACE, HOPELESS));
            }
        }
    }
    drop(lives);
}

/// Does what the owner says until it has gone or nothing is left to do.
fn listen(child: &Mutex<Option<Pid>>, owner: &OwnedFd, all_gone: &OwnedFd) {
    loop {
        match wait_for(owner, all_gone, None) {
            Heard::Nothing => {}
            Heard::Command(link::INTERRUPT) => signal_group(child, Signal::INT),
            Heard::Command(link::TERMINATE) => signal_group(child, Signal::TERM),
            Heard::Command(_) => {
                tree::end(Duration::ZERO, HOPELESS);
            }
            Heard::OwnerGone => {
                // The child sees its channel closed and may go in peace.
                if !matches!(wait_for(all_gone, all_gone, Some(NOTICE)), Heard::AllGone) {
                    tree::end(GRACE, HOPELESS);
                }
                return;
            }
            Heard::AllGone => return,
        }
    }
}

enum Heard {
    Nothing,
    Command(u8),
    OwnerGone,
    AllGone,
}

fn wait_for(owner: &OwnedFd, all_gone: &OwnedFd, patience: Option<Duration>) -> Heard {
    let until = patience.map(|patience| Instant::now() + patience);
    let mut watched = [
        PollFd::new(all_gone, PollFlags::IN),
        PollFd::new(owner, PollFlags::IN),
    ];
    let timeout = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: i64::from(left.subsec_nanos()),
        }
    });
    if poll(&mut watched, timeout.as_ref()).is_err() {
        return Heard::Nothing;
    }
    if !watched[0].revents().is_empty() {
        return Heard::AllGone;
    }
    if watched[1].revents().is_empty() {
        return Heard::Nothing;
    }
    let mut command = [0];
    match rustix::io::read(owner, &mut command) {
        Ok(0) => Heard::OwnerGone,
        Ok(_) => Heard::Command(command[0]),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Heard::Nothing,
        Err(_) => Heard::OwnerGone,
    }
}

/// Signals the child's process group while the number is certainly still the child's.
fn signal_group(child: &Mutex<Option<Pid>>, signal: Signal) {
    let held = child.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pid) = *held {
        let _sent = rustix::process::kill_process_group(pid, signal);
    }
}
