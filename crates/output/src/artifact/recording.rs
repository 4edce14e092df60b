//! An artifact that is being written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ArtifactId, Artifacts};

/// Small writes are gathered up to this size.
const BUFFER: usize = 64 * 1024;

/// An artifact that is being written. As long as it lives nobody sweeps it away.
#[derive(Debug)]
pub struct Recording {
    artifacts: Artifacts,
    id: ArtifactId,
    path: PathBuf,
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Bytes that are in the file.
    written: u64,
}

impl Recording {
    pub(super) fn new(artifacts: Artifacts, id: ArtifactId, path: PathBuf, file: File) -> Self {
        // Where there are no locks, sweeping by age and quota takes the oldest first, which this
        // is not.
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

    /// Its number.
    pub fn id(&self) -> ArtifactId {
        self.id
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes are safely in the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The file; holding it keeps the artifact from being swept.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Appends bytes. After an error the file holds the first [`Self::written`] bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() <= BUFFER {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        if bytes.len() <= BUFFER {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write_through(bytes)
    }

    /// Puts what was gathered into the file.
    pub fn flush(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.write_through(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        result
    }

    fn write_through(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        /// One system call's worth: a quota is looked at in between.
        const PART: usize = 1 << 20;
        while !bytes.is_empty() {
            let part = &bytes[..bytes.len().min(PART)];
            self.artifacts.make_room(part.len() as u64);
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

impl Drop for Recording {
    fn drop(&mut self) {
        // Nobody is left to tell; whoever cares has flushed before.
        drop(self.flush());
    }
}
