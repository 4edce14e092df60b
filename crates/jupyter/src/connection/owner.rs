//! [`Owner`]: the process that a file belongs to.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// Identifies a process, also among later processes with the same pid.
///
/// Machines of a cluster and containers share directories. A process that is not found may run elsewhere, so this also
/// records where its pid is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// The process id.
    pid: i32,
    /// Start time in clock ticks since boot; `None` if the system does not report it.
    #[serde(default)]
    started: Option<String>,
    /// Host name.
    #[serde(default)]
    host: String,
    /// Id of the current boot of the machine.
    #[serde(default, rename = "boot")]
    boot_id: Option<String>,
    /// The pid namespace.
    #[serde(default, rename = "space")]
    pid_namespace: Option<String>,
}

impl Owner {
    /// The current process.
    pub(super) fn current() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let space = fs::read_link("/proc/self/ns/pid").ok();
        Self {
            pid,
            started: match process_status(pid) {
                ProcessStatus::RunningSince(started) => Some(started),
                ProcessStatus::Exited | ProcessStatus::Unknown => None,
            },
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            boot_id: boot.map(|boot| boot.trim().to_owned()),
            pid_namespace: space.map(|space| space.to_string_lossy().into_owned()),
        }
    }

    /// Whether it is certain that the process has exited. `written` is when it wrote its file.
    pub(super) fn has_exited(&self, written: SystemTime) -> bool {
        let current = Self::current();
        if self.host != current.host {
            return false;
        }
        if self.boot_id != current.boot_id {
            // It may be another running machine with the same name.
            return boot_time().is_some_and(|booted| written < booted);
        }
        if self.pid_namespace != current.pid_namespace {
            return false;
        }
        let Some(pid) = (self.pid > 0).then(|| Pid::from_raw(self.pid)).flatten() else {
            return false;
        };
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        match process_status(self.pid) {
            ProcessStatus::RunningSince(started) => self
                .started
                .as_ref()
                .is_some_and(|recorded| *recorded != started),
            ProcessStatus::Exited => true,
            ProcessStatus::Unknown => false,
        }
    }
}

/// The status of a process.
enum ProcessStatus {
    /// It runs; its start time.
    RunningSince(String),
    /// It has exited, and its parent has not waited for it yet.
    Exited,
    /// The system does not report it.
    Unknown,
}

fn process_status(pid: i32) -> ProcessStatus {
    let read = || {
        let stat = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
        // The name in parentheses may itself contain parentheses.
        let end = memchr::memrchr(b')', &stat)?;
        let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        if state == "Z" || state == "X" {
            return Some(ProcessStatus::Exited);
        }
        // Field 22 of the line; the state is field 3.
        Some(ProcessStatus::RunningSince(fields.nth(18)?.to_owned()))
    };
    read().unwrap_or(ProcessStatus::Unknown)
}

/// The time when this machine was booted.
fn boot_time() -> Option<SystemTime> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(line.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_exited_if(change: impl FnOnce(&mut Owner)) -> bool {
        let mut owner = Owner::current();
        change(&mut owner);
        owner.has_exited(SystemTime::now())
    }

    #[test]
    fn the_current_process_has_not_exited() {
        assert!(!has_exited_if(|_| {}));
    }

    #[test]
    fn a_pid_without_a_process_has_exited() {
        assert!(has_exited_if(|owner| owner.pid = i32::MAX));
    }

    #[test]
    fn an_invalid_pid_proves_nothing() {
        for pid in [0, -1, i32::MIN] {
            assert!(!has_exited_if(|owner| owner.pid = pid));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_same_pid_with_another_start_time_has_exited() {
        assert!(has_exited_if(|owner| owner.started = Some("1".to_owned())));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_zombie_has_exited() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        while !matches!(process_status(pid), ProcessStatus::Exited) {
            std::thread::yield_now();
        }
        assert!(has_exited_if(|owner| {
            owner.pid = pid;
            owner.started = None;
        }));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_elsewhere_has_not_certainly_exited() {
        assert!(!has_exited_if(|owner| {
            owner.pid = i32::MAX;
            owner.host = "elsewhere".to_owned();
        }));
        assert!(!has_exited_if(|owner| {
            owner.pid = i32::MAX;
            owner.pid_namespace = Some("pid:[1]".to_owned());
        }));
        assert!(!has_exited_if(|owner| {
            owner.pid = i32::MAX;
            owner.boot_id = Some("another".to_owned());
        }));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_owner_of_a_file_from_before_the_boot_has_exited() {
        let mut owner = Owner::current();
        owner.boot_id = Some("another".to_owned());
        assert!(owner.has_exited(boot_time().unwrap() - Duration::from_secs(1)));
        assert!(!owner.has_exited(boot_time().unwrap()));
    }
}
