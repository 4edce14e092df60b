//! [`ArtifactWriter`]: an artifact that is being written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ArtifactId, Artifacts};

/// Smaller writes are buffered up to this size.
const BUFFER_SIZE: usize = 64 * 1024;

/// Writes an artifact. As long as the writer exists, sweeps skip the artifact.
#[derive(Debug)]
pub struct ArtifactWriter {
    artifacts: Artifacts,
    id: ArtifactId,
    path: PathBuf,
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Bytes written to the file.
    written: u64,
}

impl ArtifactWriter {
    pub(super) fn new(artifacts: Artifacts, id: ArtifactId, path: PathBuf, file: File) -> Self {
        // Without lock support, a sweep removes the oldest artifacts first, and this is the newest.
        drop(file.try_lock());
        Self {
            artifacts,
            id,
            path,
            file: Arc::new(file),
            buffer: Vec::new(),
            written: 0,
        }
    }

    /// Returns the artifact's number.
    pub fn id(&self) -> ArtifactId {
        self.id
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes written to the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the file. A sweep skips the artifact while the file is open.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Appends bytes. After an error, the file holds the first [`Self::written`] bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() <= BUFFER_SIZE {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        if bytes.len() <= BUFFER_SIZE {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write_through(bytes)
    }

    /// Writes the buffered bytes to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.write_through(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        result
    }

    fn write_through(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        /// Bytes per system call; the quota is checked before each.
        const WRITE_SIZE: usize = 1 << 20;
        while !bytes.is_empty() {
            let part = &bytes[..bytes.len().min(WRITE_SIZE)];
            self.artifacts.sweep_if_due(part.len() as u64);
            if self.written + part.len() as u64 > self.artifacts.retention().bytes {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            match self.file.as_ref().write(part) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        // The error cannot be reported here. Callers that need it flush first.
        drop(self.flush());
    }
}
