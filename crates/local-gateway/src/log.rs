//! The log of a gateway: what it prints. Its size is bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use cellwright_stdext::private;
use cellwright_stdext::secret::redact;

use crate::files::Generation;

const NAME: &str = "gateway.log";
const OLD_NAME: &str = "gateway.log.1";

/// Size in bytes from which the file is rotated.
const SIZE_LIMIT: u64 = 512 * 1024;

/// Maximum size in bytes of the end that errors and checks read.
const TAIL_LIMIT: u64 = 16 * 1024;

/// How many lines an error shows.
const TAIL_LINES_MAX: usize = 12;

/// What programs print when they have no descriptors left.
const EXHAUSTION_TEXTS: [&str; 4] = [
    "too many open files",
    "emfile",
    "enfile",
    "resource temporarily unavailable",
];

/// Whether a text reports that a process has run out of descriptors or processes.
pub fn shows_exhaustion(text: &str) -> bool {
    let text = text.to_lowercase();
    EXHAUSTION_TEXTS.iter().any(|sign| text.contains(sign))
}

/// Writes the log.
pub(crate) struct LogWriter {
    path: PathBuf,
    old: PathBuf,
    file: Option<File>,
    size: u64,
}

impl LogWriter {
    pub(crate) fn open(generation: &Generation) -> Self {
        let path = generation.file(NAME);
        let file = append_to(&path).ok();
        let size = file.as_ref().and_then(|file| file.metadata().ok());
        Self {
            size: size.map_or(0, |metadata| metadata.len()),
            old: generation.file(OLD_NAME),
            path,
            file,
        }
    }

    /// Appends text. A failure is ignored: the gateway works without a log.
    pub(crate) fn write(&mut self, text: &[u8]) {
        if self.size > SIZE_LIMIT {
            fs::rename(&self.path, &self.old).ok();
            self.file = append_to(&self.path).ok();
            self.size = 0;
        }
        if let Some(file) = &mut self.file {
            file.write_all(text).ok();
            self.size += text.len() as u64;
        }
    }
}

/// The log file, for standard error of the keeper.
pub(crate) fn open_for_append(generation: &Generation) -> io::Result<File> {
    append_to(&generation.file(NAME))
}

fn append_to(path: &Path) -> io::Result<File> {
    private::open_file(OpenOptions::new().append(true).create(true), path)
}

/// The end of the log.
pub(crate) fn tail(generation: &Generation) -> String {
    let read = || -> io::Result<String> {
        let path = generation.file(NAME);
        let mut file = private::open_file(OpenOptions::new().read(true), &path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL_LIMIT)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_LIMIT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

/// The last lines of the log, for an error.
pub(crate) fn last_lines(generation: &Generation) -> Vec<String> {
    let tail = tail(generation);
    let lines: Vec<&str> = tail
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let start = lines.len().saturating_sub(TAIL_LINES_MAX);
    let shown = lines[start..].iter();
    shown
        .map(|line| redact(line.trim_end()).into_owned())
        .collect()
}
