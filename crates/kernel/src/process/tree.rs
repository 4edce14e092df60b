//! Every descendant of this process: adopting, finding and ending them. The one file that is
//! particular to an operating system; elsewhere than on Linux only children are found by `ps`.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Orphans among our descendants become our children, not init's.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _adopting = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends every descendant: asks first and waits `grace`, then kills until none is left. Others must
/// reap them meanwhile.
pub(super) fn end(grace: Duration, hopeless: Duration) {
    let begin = Instant::now();
    if !grace.is_zero() {
        let asked = descendants();
        signal(&asked, Signal::TERM);
        while !descendants().is_empty() && begin.elapsed() < grace {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let mut pause = Duration::from_millis(1);
    loop {
        let left = descendants();
        if left.is_empty() || begin.elapsed() > grace + hopeless {
            return;
        }
        signal(&left, Signal::KILL);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(target_os = "linux")]
fn signal(processes: &[Descendant], signal: Signal) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    for &Descendant { pid, parent } in processes {
        let Some(number) = Pid::from_raw(pid) else {
            continue;
        };
        // A handle first, then a second look: the number may belong to somebody else by now.
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(handle) => {
                if parent_of(pid) == Some(parent) {
                    let _sent = pidfd_send_signal(handle, signal);
                }
            }
            // Old systems have no handles.
            Err(rustix::io::Errno::NOSYS) => {
                let _sent = rustix::process::kill_process(number, signal);
            }
            Err(_) => {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn signal(processes: &[Descendant], signal: Signal) {
    for pid in processes
        .iter()
        .filter_map(|process| Pid::from_raw(process.pid))
    {
        let _sent = rustix::process::kill_process(pid, signal);
    }
}

/// A process below this one.
#[derive(Clone, Copy)]
struct Descendant {
    pid: i32,
    parent: i32,
}

/// Everything below this process that still runs, zombies left out.
fn descendants() -> Vec<Descendant> {
    let parents = parents();
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut found: Vec<Descendant> = Vec::new();
    let mut to_ask = vec![me];
    while let Some(parent) = to_ask.pop() {
        for &pid in parents.get(&parent).into_iter().flatten() {
            found.push(Descendant { pid, parent });
            to_ask.push(pid);
        }
    }
    found
}

/// Children by parent, of all processes that are not zombies.
#[cfg(target_os = "linux")]
pub(super) fn parents() -> BTreeMap<i32, Vec<i32>> {
    let mut parents: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return parents;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            parents.entry(parent).or_default().push(pid);
        }
    }
    parents
}

/// The parent of a process that is not a zombie.
#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let end = memchr::memrchr(b')', &stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn parents() -> BTreeMap<i32, Vec<i32>> {
    let mut parents: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(listed) = std::process::Command::new("ps")
        .args(["-axo", "pid=,ppid=,stat="])
        .output()
    else {
        return parents;
    };
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let mut fields = line.split_ascii_whitespace();
        if let (Some(Ok(pid)), Some(Ok(parent)), Some(state)) = (
            fields.next().map(str::parse),
            fields.next().map(str::parse),
            fields.next(),
        ) && !state.starts_with('Z')
        {
            parents.entry(parent).or_default().push(pid);
        }
    }
    parents
}
