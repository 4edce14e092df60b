//! [`Log`]: the log file of a host. Its size is bounded, and a failure to write it is ignored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_kernel::process::daemon;
use cellwright_stdext::{LockExt, private, rfc3339};

/// Size in bytes from which a log file is rotated.
const SIZE_LIMIT: u64 = 1024 * 1024;

const NAME: &str = "host.log";
const OLD_NAME: &str = "host.log.1";

/// The severity of a line.
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

/// The log of a running host.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    old: PathBuf,
    file: Mutex<Option<File>>,
}

impl Log {
    /// Opens the log in a directory.
    pub(super) fn open(dir: &RuntimeDir) -> Self {
        Self {
            path: dir.file_path(NAME),
            old: dir.file_path(OLD_NAME),
            file: Mutex::new(append_to(dir).ok()),
        }
    }

    /// Writes a line.
    pub fn write(&self, level: Level, message: &str) {
        let level = match level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info ",
            Level::Warn => "warn ",
            Level::Error => "error",
        };
        let time = rfc3339::format_seconds(SystemTime::now());
        // Continuation lines are indented, so that only entries start at the margin.
        let line = format!("{time} {level} {}\n", message.replace('\n', "\n    "));
        let mut current = self.file.lock_ignoring_poison();
        if current
            .as_ref()
            .is_none_or(|file| self.needs_new_file(file))
        {
            *current = self.rotate();
        }
        if let Some(file) = current.as_mut() {
            // A full disk must not end the host.
            file.write_all(line.as_bytes()).ok();
        }
    }

    /// Whether a new file is necessary: this one has reached the size limit or was removed.
    fn needs_new_file(&self, file: &File) -> bool {
        let full = file.metadata().is_ok_and(|meta| meta.len() >= SIZE_LIMIT);
        full || !self.path.exists()
    }

    /// Opens a new file and redirects standard error to it.
    fn rotate(&self) -> Option<File> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= SIZE_LIMIT) {
            fs::rename(&self.path, &self.old).ok()?;
        }
        let file = open_to_append(&self.path).ok()?;
        daemon::redirect_stderr(&file).ok();
        Some(file)
    }
}

/// Opens the log for appending.
pub(super) fn append_to(dir: &RuntimeDir) -> io::Result<File> {
    open_to_append(&dir.file_path(NAME))
}

fn open_to_append(path: &std::path::Path) -> io::Result<File> {
    private::open_file(OpenOptions::new().append(true).create(true), path)
}

/// Returns the last lines of the log, including the old file. Empty if there is no log.
pub fn last_lines(dir: &RuntimeDir, count: usize) -> io::Result<String> {
    let mut text = String::new();
    for name in [OLD_NAME, NAME] {
        match private::open_file(OpenOptions::new().read(true), &dir.file_path(name)) {
            Ok(mut file) => {
                // Hosts bound the file, but other programs may have written to it.
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
        let dir = RuntimeDir::create(&base.path().join("h")).unwrap();
        fs::write(dir.file_path(NAME), vec![b'x'; 1024 * 1024]).unwrap();
        // Not through `Log::write`, which would redirect standard error of this process to the file.
        let log = Log::open(&dir);
        assert!(log.needs_new_file(&append_to(&dir).unwrap()));
        fs::write(dir.file_path(OLD_NAME), "one\ntwo\n").unwrap();
        fs::write(dir.file_path(NAME), "three\n").unwrap();
        assert!(!log.needs_new_file(&append_to(&dir).unwrap()));
        log.write(Level::Warn, "four\nfive");
        let end = last_lines(&dir, 4).unwrap();
        assert!(end.starts_with("two\nthree\n"), "{end}");
        assert!(end.ends_with("warn  four\n    five\n"), "{end}");
    }
}
