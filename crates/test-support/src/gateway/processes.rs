//! The processes of a server, also those that have another parent by now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const END_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The live processes that belong to a server with this directory: those whose command line or environment names the
/// directory, and their descendants. Kernels name it in the path of their connection file.
///
/// Empty on systems without `/proc`.
pub fn processes_of(directory: &Path) -> Vec<u32> {
    let mark = directory.as_os_str().as_bytes();
    let own = std::process::id();
    let mut found = BTreeSet::new();
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Some((state, parent)) = state_and_parent(pid) else {
            continue;
        };
        if pid == own || matches!(state, 'Z' | 'X') {
            continue;
        }
        parents.insert(pid, parent);
        let names_directory = |file: &str| {
            let content = fs::read(entry.path().join(file)).unwrap_or_default();
            content.windows(mark.len()).any(|part| part == mark)
        };
        if names_directory("cmdline") || names_directory("environ") {
            found.insert(pid);
        }
    }
    loop {
        let before = found.len();
        for (pid, parent) in &parents {
            if found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            return found.into_iter().collect();
        }
    }
}

/// State and parent of a process.
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Kills all processes of the server, also those that it starts meanwhile.
pub(super) fn end_all(directory: &Path) {
    let start = Instant::now();
    loop {
        let processes = processes_of(directory);
        if processes.is_empty() {
            return;
        }
        if start.elapsed() > END_TIMEOUT {
            // A test that has failed already reports its own reason.
            assert!(
                std::thread::panicking(),
                "processes do not end: {processes:?}"
            );
            return;
        }
        for pid in processes {
            kill(pid);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends SIGKILL.
pub(super) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, Signal::KILL).ok();
    }
}
