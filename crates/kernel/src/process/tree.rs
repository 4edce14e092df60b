//! Finds, adopts and ends all descendants of this process. Operating systems differ here: on Linux
//! orphans are adopted and found through `/proc`; elsewhere descendants are found through `ps`, as long
//! as their parents live.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Makes this process the parent of orphaned descendants, instead of init.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _adopting = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all descendants: sends SIGTERM and waits `grace`, then sends SIGKILL until none is left or
/// `give_up` has passed. Zombies do not count: they need not be reaped meanwhile.
pub(super) fn end_descendants(grace: Duration, give_up: Duration) {
    let start = Instant::now();
    if !grace.is_zero() {
        signal_all(&descendants(), Signal::TERM);
        while !descendants().is_empty() && start.elapsed() < grace {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let mut pause = Duration::from_millis(1);
    loop {
        let remaining = descendants();
        if remaining.is_empty() || start.elapsed() > grace + give_up {
            return;
        }
        signal_all(&remaining, Signal::KILL);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(target_os = "linux")]
fn signal_all(processes: &[Descendant], signal: Signal) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    for &Descendant { pid, parent } in processes {
        let Some(number) = Pid::from_raw(pid) else {
            continue;
        };
        // Open a handle, then check again: the pid may have been reused.
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(handle) => {
                if parent_of(pid) == Some(parent) {
                    let _sent = pidfd_send_signal(handle, signal);
                }
            }
            // Old systems have no pidfd.
            Err(rustix::io::Errno::NOSYS) => {
                let _sent = rustix::process::kill_process(number, signal);
            }
            Err(_) => {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn signal_all(processes: &[Descendant], signal: Signal) {
    for pid in processes
        .iter()
        .filter_map(|process| Pid::from_raw(process.pid))
    {
        let _sent = rustix::process::kill_process(pid, signal);
    }
}

/// A descendant of this process.
#[derive(Clone, Copy)]
struct Descendant {
    pid: i32,
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "identifies a process on Linux")
    )]
    parent: i32,
}

/// All descendants of this process that still run, without zombies.
fn descendants() -> Vec<Descendant> {
    let children = children_by_parent();
    let own_pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut found: Vec<Descendant> = Vec::new();
    let mut to_visit = vec![own_pid];
    while let Some(parent) = to_visit.pop() {
        for &pid in children.get(&parent).into_iter().flatten() {
            found.push(Descendant { pid, parent });
            to_visit.push(pid);
        }
    }
    found
}

/// The children of every process, by parent, without zombies.
#[cfg(target_os = "linux")]
pub(super) fn children_by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return children;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent of a process that is not a zombie.
#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may contain parentheses.
    let end = memchr::memrchr(b')', &stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

/// The children of every process, by parent, without zombies.
#[cfg(not(target_os = "linux"))]
pub(super) fn children_by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(output) = std::process::Command::new("ps")
        .args(["-axo", "pid=,ppid=,stat="])
        .output()
    else {
        return children;
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split_ascii_whitespace();
        if let (Some(Ok(pid)), Some(Ok(parent)), Some(state)) = (
            fields.next().map(str::parse),
            fields.next().map(str::parse),
            fields.next(),
        ) && !state.starts_with('Z')
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}
