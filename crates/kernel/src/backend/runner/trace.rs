//! A log of the frames on the channel, for debugging.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use cellwright_stdext::secret::redact;

/// Bytes of a frame that are logged.
const TRACED_BYTES_MAX: usize = 4096;

/// The log file, if there is one; clones write to the same file.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Option<Arc<File>>);

impl Trace {
    /// Opens the log. Frames contain code and output, so only the user may read it. Tokens are not logged. If the file cannot be opened, nothing
    /// is logged and code runs anyway.
    pub(super) fn open(path: Option<&Path>) -> Self {
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)
                .ok()
        };
        Self(path.and_then(open).map(Arc::new))
    }

    /// Logs bytes that were sent to the runner.
    pub(super) fn sent(&self, bytes: &[u8]) {
        self.write('>', bytes);
    }

    /// Logs bytes that were received from the runner.
    pub(super) fn received(&self, bytes: &[u8]) {
        self.write('<', bytes);
    }

    fn write(&self, direction: char, bytes: &[u8]) {
        let Some(file) = &self.0 else { return };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs_f64();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(TRACED_BYTES_MAX)]);
        let shown = redact(&shown);
        let more = bytes.len().saturating_sub(TRACED_BYTES_MAX);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" [… {more} bytes]")
        };
        let line = format!("{seconds:.6} {direction} {}{more}\n", shown.trim_end());
        // A single write, so that lines of several kernels do not mix.
        let mut file: &File = file;
        file.write_all(line.as_bytes()).ok();
    }
}
