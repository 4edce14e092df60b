//! What a process needs that lives on in the background: who it is, how it lets go of whoever
//! started it, and how it is told from another process that got its number later.

use std::fs::File;
use std::io;

use rustix::process::Pid;

/// The user that this process acts for.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Lets go of the terminal and of the group that this process was started in. The file mode mask
/// stays: kernels inherit it, and what their code writes is not for its user alone.
pub fn detach() {
    // Fails only if this process leads a group already, which then is its own.
    let _session = rustix::process::setsid();
}

/// Allows this process as many descriptors as it may have, up to what it can use.
pub fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// More would only make it slow to start children.
    const ENOUGH: u64 = 8192;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        // Without it there are fewer, which is told when they run out.
        let _raised = setrlimit(Resource::Nofile, raised);
    }
}

/// Closes every descriptor but the first three. Those that a process was started with are somebody
/// else's pipes and locks, and whoever waits for them would wait as long as this process lives. To be
/// called before anything of its own is open.
pub fn close_inherited() {
    let listed = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
    let Ok(listed) = listed else {
        return;
    };
    let numbers: Vec<i32> = listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in numbers {
        // The listing's own is closed by now, which is an error that does not matter.
        let _closed = nix::unistd::close(number);
    }
}

/// Makes a file what descriptor 1 leads to.
pub fn redirect_output(file: &File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(file)?)
}

/// Makes a file what descriptor 2 leads to.
pub fn redirect_errors(file: &File) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// How many bytes of memory this process occupies, where the system tells.
pub fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// One process: its number, and when it began, by which it differs from every other that has had or
/// will have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number.
    pub pid: u32,
    /// When it began, in the clock ticks (hundredths of a second) of this boot of Linux; elsewhere
    /// unknown.
    pub born: Option<u64>,
}

/// What can be sent to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end; also wakes one that was stopped, so that it can.
    Terminate,
    /// End at once.
    Kill,
}

impl Identity {
    /// This very process.
    pub fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            born: born(pid),
        }
    }

    /// Whether this very process runs.
    pub fn runs(&self) -> bool {
        let Some(pid) = self.number() else {
            return false;
        };
        if self.born.is_some() {
            return born(self.pid) == self.born;
        }
        !matches!(
            rustix::process::test_kill_process(pid),
            Err(rustix::io::Errno::SRCH)
        )
    }

    /// The arguments that a process with this number was started with, where the system tells.
    pub fn arguments(&self) -> Option<Vec<Vec<u8>>> {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid)).ok()?;
        Some(line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect())
    }

    /// Sends a signal to this very process, never to another one with its number; says whether it
    /// could be sent.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = self.number() else {
            return false;
        };
        match signal {
            Signal::Terminate => {
                self.send(pid, rustix::process::Signal::TERM)
                    && self.send(pid, rustix::process::Signal::CONT)
            }
            Signal::Kill => self.send(pid, rustix::process::Signal::KILL),
        }
    }

    fn number(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    #[cfg(target_os = "linux")]
    fn send(&self, pid: Pid, signal: rustix::process::Signal) -> bool {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

        // A handle first, then a second look: the number may belong to somebody else by now.
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => self.runs() && pidfd_send_signal(handle, signal).is_ok(),
            // Old systems have no handles.
            Err(rustix::io::Errno::NOSYS) => {
                self.runs() && rustix::process::kill_process(pid, signal).is_ok()
            }
            Err(_) => false,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send(&self, pid: Pid, signal: rustix::process::Signal) -> bool {
        self.runs() && rustix::process::kill_process(pid, signal).is_ok()
    }
}

/// When a process began; `None` if there is none, or only what is left of one that has ended.
fn born(pid: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let end = memchr::memrchr(b')', &stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // The 22nd field of the line; the state was the third.
    let born = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(born)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_its_number() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let real = Identity {
            pid,
            born: born(pid),
        };
        let other = Identity {
            pid,
            born: real.born.map(|born| born + 1),
        };
        assert!(real.runs() && !other.runs());
        assert!(!other.signal(Signal::Kill));
        assert!(child.try_wait().unwrap().is_none(), "the wrong one was hit");
        assert!(real.signal(Signal::Kill));
        child.wait().unwrap();
        assert!(!real.runs());
        assert!(Identity::own().runs());
    }

    #[test]
    fn memory_is_told() {
        assert!(memory().unwrap() > 100_000);
    }
}
