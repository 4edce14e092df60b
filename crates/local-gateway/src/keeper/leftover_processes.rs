//! Processes that a kernel has detached. The gateway ends only the kernel itself.
//!
//! The gateway sets a variable with a random id for each kernel, which all processes that the kernel starts inherit. Linux
//! reports the variables of a process in `/proc`. Processes without the variable end with the gateway.

use std::collections::HashSet;
use std::fs;

use cellwright_kernel::process::daemon::{EndSignal, ProcessIdentity};

/// The variable with the id of the kernel; the configuration of the gateway sets it.
const VARIABLE: &str = "CELLWRIGHT_KERNEL_ID";

/// How often the processes are searched for: one may start another one while they are ended.
const ROUNDS_MAX: usize = 10;

/// Ends the processes of kernels that do not exist any more.
pub(super) fn end(kernels: &[String]) {
    let variables: Vec<Vec<u8>> = kernels
        .iter()
        .map(|id| format!("{VARIABLE}={id}").into_bytes())
        .collect();
    for _ in 0..ROUNDS_MAX {
        let mut found = false;
        for process in processes_with(&variables) {
            found |= process.signal(EndSignal::Kill);
        }
        if !found {
            return;
        }
    }
}

/// The ids of kernels that have detached a process: such a process is a child of the supervisor, as the gateway is.
pub(super) fn detached_kernels(gateway: u32) -> HashSet<String> {
    let Some(supervisor) = parent(gateway) else {
        return HashSet::new();
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let kernel = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        if pid == gateway || parent(pid) != Some(supervisor) {
            return None;
        }
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        variables.find_map(|variable| {
            let variable = std::str::from_utf8(variable).ok()?;
            let value = variable.strip_prefix(VARIABLE)?.strip_prefix('=')?;
            Some(value.to_owned())
        })
    };
    entries.filter_map(kernel).collect()
}

/// The parent of a process.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The processes that have one of these variables.
fn processes_with(variables: &[Vec<u8>]) -> Vec<ProcessIdentity> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let process = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let identity = ProcessIdentity::of(pid)?;
        // Fails for processes of other users.
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let mut own = environment.split(|&byte| byte == 0);
        own.any(|own| variables.iter().any(|variable| variable == own))
            .then_some(identity)
    };
    entries.filter_map(process).collect()
}
