//! [`ServerRecord`]: what a running server writes into Jupyter's runtime directory.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, geteuid, test_kill_process};
use serde::Deserialize;
use tracing::debug;

/// Size in bytes of the largest record that is read.
const RECORD_SIZE_LIMIT: u64 = 64 * 1024;

/// The number of live processes with a record beyond which records are skipped.
pub const RECORDS_MAX: usize = 16;

/// A file `jpserver-PID.json`. Nothing in it is verified, except that the file belongs to this user.
#[derive(Clone, Deserialize)]
pub struct ServerRecord {
    /// The process id of the server.
    pub pid: i32,
    /// The directory that the server serves.
    pub root_dir: PathBuf,
    /// Whether the server speaks TLS.
    #[serde(default)]
    pub secure: bool,
    /// The TCP port; 0 for a server with a Unix socket.
    #[serde(default)]
    pub port: u16,
    /// The path of the Unix socket; empty for a server with a TCP port.
    #[serde(default)]
    pub sock: PathBuf,
    /// The prefix of all paths of the server.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// The address for people; without the token.
    pub url: String,
    /// The token; empty if the server has none.
    #[serde(default)]
    pub(crate) token: String,
}

fn default_base_url() -> String {
    "/".to_owned()
}

impl std::fmt::Debug for ServerRecord {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, url, .. } = self;
        write!(f, "ServerRecord({url}, pid {pid})")
    }
}

/// The records in a runtime directory.
#[derive(Debug, Default)]
pub struct Records {
    /// The records of live processes of this user.
    pub records: Vec<ServerRecord>,
    /// The number of such records that were not read because there are too many.
    pub skipped: usize,
}

/// Reads the records of live processes of this user. Costs one directory listing if there are none.
pub fn read_records(runtime_dir: &Path) -> Records {
    let mut found = Records::default();
    let Ok(entries) = fs::read_dir(runtime_dir) else {
        return found;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(record_pid) else {
            continue;
        };
        // Servers that were killed leave their records, possibly many of them.
        if test_kill_process(pid).is_err() {
            continue;
        }
        if found.records.len() == RECORDS_MAX {
            found.skipped += 1;
            continue;
        }
        let path = entry.path();
        match read_record(&path) {
            Ok(record) if record.pid == pid.as_raw_nonzero().get() => found.records.push(record),
            Ok(_) => debug!(path = %path.display(), "record of another process"),
            Err(reason) => debug!(path = %path.display(), reason, "record ignored"),
        }
    }
    found
}

/// The process id in the name of a record.
fn record_pid(name: &str) -> Option<Pid> {
    let pid = name.strip_prefix("jpserver-")?.strip_suffix(".json")?;
    Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)
}

fn read_record(path: &Path) -> Result<ServerRecord, &'static str> {
    // NONBLOCK: to open a pipe would otherwise wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| "it cannot be opened")?;
    let file = File::from(file);
    let metadata = file.metadata().map_err(|_| "it cannot be read")?;
    if !metadata.is_file() {
        return Err("it is not a regular file");
    }
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err("another user can write it");
    }
    let mut bytes = Vec::new();
    let read = file.take(RECORD_SIZE_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|_| "it cannot be read")?;
    if bytes.len() as u64 > RECORD_SIZE_LIMIT {
        return Err("it is too large");
    }
    let mut record: ServerRecord =
        serde_json::from_slice(&bytes).map_err(|_| "it is not a record")?;
    record.url = without_query(&record.url);
    Ok(record)
}

/// The address without credentials: some servers append the token as a query.
fn without_query(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    url.chars().filter(|char| !char.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records_contain_a_process_id() {
        let pid = |name| record_pid(name).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(pid("jpserver-17.json"), Some(17));
        for name in ["jpserver-0.json", "jpserver--1.json", "jpserver-x.json"] {
            assert_eq!(pid(name), None, "{name}");
        }
        for name in ["jpserver-1-open.html", "kernel-1.json", "jpserver-1.json~"] {
            assert_eq!(pid(name), None, "{name}");
        }
    }

    #[test]
    fn the_address_has_no_token() {
        assert_eq!(
            without_query("http://localhost:1/?token=x#y"),
            "http://localhost:1/"
        );
    }
}
