//! [`Log`]: the log file of a host. Its size is bounded, and a failure to write it is ignored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_kernel::process::daemon;
use cellwright_stdext::{LockExt, rfc3339};

/// What is longer becomes the old log.
const SIZE_LIMIT: u64 = 1024 * 1024;

const NAME: &str = "host.log";
const OLD_NAME: &str = "host.log.1";

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl From<tracing::Level> for Level {
    fn from(level: tracing::Level) -> Self {
        match level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warn,
            tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG => Self::Debug,
            tracing::Level::TRACE => Self::Trace,
        }
    }
}

/// The log of a living host.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    old: PathBuf,
    file: Mutex<Option<File>>,
}

impl Log {
    /// The log in a folder.
    pub(super) fn open(folder: &RuntimeDir) -> Self {
        Self {
            path: folder.file_path(NAME),
            old: folder.file_path(OLD_NAME),
            file: Mutex::new(append_to(folder).ok()),
        }
    }

    /// Writes a line.
    pub fn write(&self, level: Level, words: &str) {
        let level = match level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info ",
            Level::Warn => "warn ",
            Level::Error => "error",
        };
        let time = rfc3339::format_seconds(SystemTime::now());
        // One line stays one line.
        let line = format!("{time} {level} {}\n", words.replace('\n', "\n    "));
        let mut held = self.file.lock_ignoring_poison();
        if held.as_ref().is_none_or(|file| self.exceeds_limit(file)) {
            *held = self.rotate();
        }
        if let Some(file) = held.as_mut() {
            // A full disk must not end the host.
            file.write_all(line.as_bytes()).ok();
        }
    }

    /// Whether another file is due: this one is full, or somebody took it away.
    fn exceeds_limit(&self, file: &File) -> bool {
        let full = file.metadata().is_ok_and(|meta| meta.len() >= SIZE_LIMIT);
        full || !self.path.exists()
    }

    /// A new file, which the process's errors go to as well.
    fn rotate(&self) -> Option<File> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= SIZE_LIMIT) {
            fs::rename(&self.path, &self.old).ok()?;
        }
        let file = open_to_append(&self.path).ok()?;
        daemon::redirect_stderr(&file).ok();
        Some(file)
    }
}

/// The log, to write to it.
pub(super) fn append_to(folder: &RuntimeDir) -> io::Result<File> {
    open_to_append(&folder.file_path(NAME))
}

fn open_to_append(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// The last lines of a log, the old one included; empty if there is none.
pub fn last_lines(folder: &RuntimeDir, count: usize) -> io::Result<String> {
    let mut text = String::new();
    for name in [OLD_NAME, NAME] {
        match File::open(folder.file_path(name)) {
            Ok(mut file) => {
                // Hosts bound it; whatever else wrote to it does not.
                let length = file.metadata()?.len();
                file.seek(SeekFrom::Start(length.saturating_sub(2 * SIZE_LIMIT)))?;
                let mut bytes = Vec::new();
                file.take(2 * SIZE_LIMIT).read_to_end(&mut bytes)?;
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    Ok(lines[lines.len().saturating_sub(count)..].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_its_end_can_be_read() {
        let base = tempfile::tempdir().unwrap();
        let folder = RuntimeDir::create(base.path().join("h")).unwrap();
        fs::write(folder.file_path(NAME), vec![b'x'; 1024 * 1024]).unwrap();
        // Not through `Log::write`, which would turn this process's errors to the file.
        let log = Log::open(&folder);
        assert!(log.exceeds_limit(&append_to(&folder).unwrap()));
        fs::write(folder.file_path(OLD_NAME), "one\ntwo\n").unwrap();
        fs::write(folder.file_path(NAME), "three\n").unwrap();
        assert!(!log.exceeds_limit(&append_to(&folder).unwrap()));
        log.write(Level::Warn, "four\nfive");
        let end = last_lines(&folder, 4).unwrap();
        assert!(end.starts_with("two\nthree\n"), "{end}");
        assert!(end.ends_with("warn  four\n    five\n"), "{end}");
    }
}
