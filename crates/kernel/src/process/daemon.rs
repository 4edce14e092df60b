//! Functions for a background process: its user, how it detaches from the process that started it, and
//! how it is distinguished from a later process with the same pid.

use std::fs::File;
use std::io;

use rustix::process::Pid;

/// The effective user id of this process.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Detaches this process from the terminal and process group in which it was started. The file mode
/// mask stays: kernels inherit it, and the files that their code writes may be meant for other users.
pub fn detach() {
    // Fails only if this process already leads a process group.
    let _session = rustix::process::setsid();
}

/// Raises the soft limit of open descriptors towards the hard limit.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// A higher limit only slows down the start of children.
    const DESCRIPTORS_MAX: u64 = 8192;
    let limit = getrlimit(Resource::Nofile);
    let target = limit
        .maximum
        .map_or(DESCRIPTORS_MAX, |maximum| maximum.min(DESCRIPTORS_MAX));
    if limit.current.is_some_and(|current| current < target) {
        let raised = Rlimit {
            current: Some(target),
            ..limit
        };
        // If it fails, an exhausted limit is reported later.
        let _raised = setrlimit(Resource::Nofile, raised);
    }
}

/// Closes every descriptor but the first three. Inherited descriptors are pipes and locks of other
/// processes, which would wait for them as long as this process lives. Must be called before this
/// process opens anything itself.
pub fn close_inherited_descriptors() {
    let entries = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
    let Ok(entries) = entries else {
        return;
    };
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in numbers {
        // The descriptor of the listing itself is already closed; that error does not matter.
        let _closed = nix::unistd::close(number);
    }
}

/// Redirects descriptor 1 to a file.
pub fn redirect_stdout(file: &File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(file)?)
}

/// Redirects descriptor 2 to a file.
pub fn redirect_stderr(file: &File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// Whether a signal such as SIGSTOP has suspended a process.
pub fn is_suspended(pid: u32) -> bool {
    process_state(pid).is_some_and(|state| state.starts_with('T'))
}

/// The state of a process as `ps` writes it.
#[cfg(target_os = "linux")]
fn process_state(pid: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may contain parentheses.
    let end = memchr::memrchr(b')', &stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    Some(rest.split_ascii_whitespace().next()?.to_owned())
}

/// The state of a process as `ps` writes it.
#[cfg(not(target_os = "linux"))]
fn process_state(pid: u32) -> Option<String> {
    let output = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The resident memory of this process in bytes, where the system reports it.
pub fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Identifies a process by its pid and start time, which distinguishes it from every other process that
/// had or will have the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The pid.
    pub pid: u32,
    /// The start time in clock ticks (hundredths of a second) since the boot of Linux; `None` on other
    /// systems.
    pub start_ticks: Option<u64>,
}

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGTERM, followed by SIGCONT so that a stopped process can react.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl ProcessIdentity {
    /// The current process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid),
        }
    }

    /// The process that has this pid now. `None` if there is none, or if the system does not report when it started.
    pub fn of(pid: u32) -> Option<Self> {
        let start_ticks = Some(start_ticks(pid)?);
        Some(Self { pid, start_ticks })
    }

    /// Whether exactly this process still runs.
    pub fn is_running(&self) -> bool {
        let Some(pid) = self.raw_pid() else {
            return false;
        };
        if self.start_ticks.is_some() {
            return start_ticks(self.pid) == self.start_ticks;
        }
        !matches!(
            rustix::process::test_kill_process(pid),
            Err(rustix::io::Errno::SRCH)
        )
    }

    /// The command line of the process with this pid, where the system reports it.
    pub fn command_line(&self) -> Option<Vec<Vec<u8>>> {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid)).ok()?;
        Some(line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect())
    }

    /// Sends a signal to exactly this process, never to another one with the same pid. Returns whether it
    /// was sent.
    pub fn signal(&self, signal: EndSignal) -> bool {
        let Some(pid) = self.raw_pid() else {
            return false;
        };
        match signal {
            EndSignal::Terminate => {
                self.send(pid, rustix::process::Signal::TERM)
                    && self.send(pid, rustix::process::Signal::CONT)
            }
            EndSignal::Kill => self.send(pid, rustix::process::Signal::KILL),
        }
    }

    fn raw_pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    #[cfg(target_os = "linux")]
    fn send(&self, pid: Pid, signal: rustix::process::Signal) -> bool {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

        // Open a handle, then check again: the pid may have been reused.
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => self.is_running() && pidfd_send_signal(handle, signal).is_ok(),
            // Old systems have no pidfd.
            Err(rustix::io::Errno::NOSYS) => {
                self.is_running() && rustix::process::kill_process(pid, signal).is_ok()
            }
            Err(_) => false,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send(&self, pid: Pid, signal: rustix::process::Signal) -> bool {
        self.is_running() && rustix::process::kill_process(pid, signal).is_ok()
    }
}

/// The start time of a process; `None` if there is no such process or it is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may contain parentheses.
    let end = memchr::memrchr(b')', &stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // The 22nd field of the line; the state was the third.
    let start_ticks = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(start_ticks)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn identity_distinguishes_processes_with_the_same_pid() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let real = ProcessIdentity {
            pid,
            start_ticks: start_ticks(pid),
        };
        let other = ProcessIdentity {
            pid,
            start_ticks: real.start_ticks.map(|ticks| ticks + 1),
        };
        assert!(real.is_running() && !other.is_running());
        assert!(!other.signal(EndSignal::Kill));
        assert!(
            child.try_wait().unwrap().is_none(),
            "the wrong process was signalled"
        );
        assert!(real.signal(EndSignal::Kill));
        child.wait().unwrap();
        assert!(!real.is_running());
        assert!(ProcessIdentity::current().is_running());
    }

    #[test]
    fn a_suspended_process_is_recognized() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(!is_suspended(pid));
        rustix::process::kill_process(Pid::from_child(&child), rustix::process::Signal::STOP)
            .unwrap();
        let options = rustix::process::WaitIdOptions::STOPPED;
        let id = rustix::process::WaitId::Pid(Pid::from_child(&child));
        rustix::process::waitid(id, options).unwrap();
        assert!(is_suspended(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_suspended(pid));
    }

    #[test]
    fn resident_memory_is_reported() {
        assert!(resident_memory().unwrap() > 100_000);
    }
}
