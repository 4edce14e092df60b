//! Memory use of a process and its descendants.

use std::collections::BTreeMap;

use super::tree;

/// The process tree of this machine at one moment.
#[derive(Debug)]
pub struct ProcessTable {
    children: BTreeMap<i32, Vec<i32>>,
}

impl ProcessTable {
    /// Reads the current process tree.
    pub fn capture() -> Self {
        Self {
            children: tree::children_by_parent(),
        }
    }

    /// The resident memory of a process and all its descendants, in bytes. `None` if the process is gone
    /// or the system does not report it.
    pub fn tree_memory(&self, pid: u32) -> Option<u64> {
        let pid = i32::try_from(pid).ok()?;
        let mut total = resident_memory(pid)?;
        let mut to_visit = vec![pid];
        while let Some(parent) = to_visit.pop() {
            for &child in self.children.get(&parent).into_iter().flatten() {
                total += resident_memory(child).unwrap_or(0);
                to_visit.push(child);
            }
        }
        Some(total)
    }
}

#[cfg(target_os = "linux")]
fn resident_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn resident_memory(pid: i32) -> Option<u64> {
    let output = std::process::Command::new("ps")
        .args(["-o", "rss=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let kilobytes: u64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .ok()?;
    Some(kilobytes * 1024)
}
