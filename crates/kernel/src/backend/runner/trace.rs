//! What goes over the channel, written down for whoever looks for a mistake.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// How much of a frame is written.
const MOST_BYTES: usize = 4096;

/// Where frames are written; clones write to the same file.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Option<Arc<File>>);

impl Trace {
    /// Into this file, if there is to be one. Frames carry code and tokens, so it is for the user alone.
    /// A file that cannot be written to is no reason not to run code.
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

    /// What we said.
    pub(super) fn said(&self, bytes: &[u8]) {
        self.write('>', bytes);
    }

    /// What the runner said.
    pub(super) fn heard(&self, bytes: &[u8]) {
        self.write('<', bytes);
    }

    fn write(&self, direction: char, bytes: &[u8]) {
        let Some(file) = &self.0 else { return };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs_f64();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_BYTES)]);
        let more = bytes.len().saturating_sub(MOST_BYTES);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" [… {more} bytes]")
        };
        let line = format!("{seconds:.6} {direction} {}{more}\n", shown.trim_end());
        // One write, so that lines of several kernels do not mix.
        let mut file: &File = file;
        file.write_all(line.as_bytes()).ok();
    }
}
