//! How much memory a process and everything below it uses.

use std::collections::BTreeMap;

use super::tree;

/// The processes of this machine at one moment.
#[derive(Debug)]
pub struct Processes {
    children: BTreeMap<i32, Vec<i32>>,
}

impl Processes {
    /// As they are now.
    pub fn now() -> Self {
        Self {
            children: tree::parents(),
        }
    }

    /// The resident memory of a process and of all its descendants, in bytes, where that can be found
    /// out.
    pub fn memory_of(&self, pid: u32) -> Option<u64> {
        let pid = i32::try_from(pid).ok()?;
        let mut total = resident(pid)?;
        let mut to_ask = vec![pid];
        while let Some(parent) = to_ask.pop() {
            for &child in self.children.get(&parent).into_iter().flatten() {
                total += resident(child).unwrap_or(0);
                to_ask.push(child);
            }
        }
        Some(total)
    }
}

#[cfg(target_os = "linux")]
fn resident(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn resident(pid: i32) -> Option<u64> {
    let listed = std::process::Command::new("ps")
        .args(["-o", "rss=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let kilobytes: u64 = String::from_utf8_lossy(&listed.stdout)
        .trim()
        .parse()
        .ok()?;
    Some(kilobytes * 1024)
}
