//! [`Owner`]: the process that something in the file system belongs to.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// A process, told from all others that ever had its number.
///
/// Folders are shared, between the machines of a cluster and between containers; a process that is not
/// found may only be out of sight. So this also says where its number means something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Its number.
    pid: i32,
    /// When it began, in the system's own terms; `None` where that cannot be told.
    #[serde(default)]
    started: Option<String>,
    /// The machine's name.
    #[serde(default)]
    host: String,
    /// Which start of the machine it was.
    #[serde(default)]
    boot: Option<String>,
    /// Among which processes the number counts.
    #[serde(default)]
    space: Option<String>,
}

impl Owner {
    /// We.
    pub(super) fn me() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let space = fs::read_link("/proc/self/ns/pid").ok();
        Self {
            pid,
            started: match life(pid) {
                Life::Since(started) => Some(started),
                Life::Over | Life::Unknown => None,
            },
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            boot: boot.map(|boot| boot.trim().to_owned()),
            space: space.map(|space| space.to_string_lossy().into_owned()),
        }
    }

    /// Whether the process has certainly ended that wrote something at some time.
    pub(super) fn is_gone(&self, written: SystemTime) -> bool {
        let me = Self::me();
        if self.host != me.host {
            return false;
        }
        if self.boot != me.boot {
            // Unless it is another machine with the same name, which has been running all the time.
            return booted().is_some_and(|booted| written < booted);
        }
        if self.space != me.space {
            return false;
        }
        let Some(pid) = (self.pid > 0).then(|| Pid::from_raw(self.pid)).flatten() else {
            return false;
        };
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        match life(self.pid) {
            Life::Since(started) => self.started.as_ref().is_some_and(|known| *known != started),
            Life::Over => true,
            Life::Unknown => false,
        }
    }
}

/// What can be told about a process.
enum Life {
    /// It began then.
    Since(String),
    /// It has ended, and waits for its parent to take notice.
    Over,
    /// Nothing.
    Unknown,
}

fn life(pid: i32) -> Life {
    let read = || {
        let stat = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
        // The name in parentheses may hold anything, parentheses too.
        let end = memchr::memrchr(b')', &stat)?;
        let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        if state == "Z" || state == "X" {
            return Some(Life::Over);
        }
        // The 22nd field of the line; the state was the third.
        Some(Life::Since(fields.nth(18)?.to_owned()))
    };
    read().unwrap_or(Life::Unknown)
}

/// When this machine was started.
fn booted() -> Option<SystemTime> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(line.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(change: impl FnOnce(&mut Owner)) -> bool {
        let mut owner = Owner::me();
        change(&mut owner);
        owner.is_gone(SystemTime::now())
    }

    #[test]
    fn we_live() {
        assert!(!gone(|_| {}));
    }

    #[test]
    fn a_number_that_nobody_has_is_gone() {
        assert!(gone(|owner| owner.pid = i32::MAX));
    }

    #[test]
    fn numbers_that_are_none_prove_nothing() {
        for pid in [0, -1, i32::MIN] {
            assert!(!gone(|owner| owner.pid = pid));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_number_with_another_beginning_was_somebody_else() {
        assert!(gone(|owner| owner.started = Some("1".to_owned())));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_waits_for_its_parent_to_notice_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        while !matches!(life(pid), Life::Over) {
            std::thread::yield_now();
        }
        assert!(gone(|owner| {
            owner.pid = pid;
            owner.started = None;
        }));
        child.wait().unwrap();
    }

    #[test]
    fn what_is_out_of_sight_is_not_taken_for_gone() {
        assert!(!gone(|owner| {
            owner.pid = i32::MAX;
            owner.host = "elsewhere".to_owned();
        }));
        assert!(!gone(|owner| {
            owner.pid = i32::MAX;
            owner.space = Some("pid:[1]".to_owned());
        }));
        assert!(!gone(|owner| {
            owner.pid = i32::MAX;
            owner.boot = Some("another".to_owned());
        }));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_written_before_the_machine_was_started_is_nobodys() {
        let mut owner = Owner::me();
        owner.boot = Some("another".to_owned());
        assert!(owner.is_gone(booted().unwrap() - Duration::from_secs(1)));
        assert!(!owner.is_gone(booted().unwrap()));
    }
}
