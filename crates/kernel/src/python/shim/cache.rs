//! The file that keeps resolved shims.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::env_json;

/// How many entries the file keeps; the newest ones.
const ENTRIES_MAX: usize = 32;

/// Size of the largest file that is read, in bytes.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// A resolved shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CacheEntry {
    /// A hash of everything on which the choice of the interpreter depends.
    pub(super) key: String,
    /// The interpreter.
    pub(super) program: PathBuf,
    /// The state of the interpreter's file.
    pub(super) identity: String,
    /// The variables that the shim sets.
    #[serde(with = "env_json")]
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// The entry with this key. A file that cannot be read has none.
pub(super) fn find(path: &Path, key: &str) -> Option<CacheEntry> {
    read(path).into_iter().find(|entry| entry.key == key)
}

/// Adds an entry. Of two processes that do so at once, one may lose its entry.
pub(super) fn insert(path: &Path, entry: CacheEntry) -> io::Result<()> {
    let mut entries = read(path);
    entries.retain(|other| other.key != entry.key);
    entries.insert(0, entry);
    entries.truncate(ENTRIES_MAX);
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    // A reader sees the old file or the new one, never a part.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(&serde_json::to_vec(&entries)?))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        fs::remove_file(&new).ok();
    }
    written
}

fn read(path: &Path) -> Vec<CacheEntry> {
    if path.metadata().is_ok_and(|file| file.len() > FILE_SIZE_MAX) {
        return Vec::new();
    }
    let content = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&content).unwrap_or_default()
}
