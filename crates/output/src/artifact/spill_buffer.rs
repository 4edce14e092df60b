//! [`SpillBuffer`]: holds bytes in memory, and moves them to an artifact when they exceed a limit.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{ArtifactError, ArtifactId, ArtifactKind, ArtifactWriter, Artifacts};

/// Why an artifact is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    /// The kind of I/O error.
    pub kind: io::ErrorKind,
    /// The error message.
    pub message: String,
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&ArtifactError> for StoreFailure {
    fn from(error: &ArtifactError) -> Self {
        Self {
            kind: match error {
                ArtifactError::Io { source, .. } => source.kind(),
                ArtifactError::Busy { .. } => io::ErrorKind::ResourceBusy,
                _ => io::ErrorKind::Other,
            },
            message: error.to_string(),
        }
    }
}

/// Holds bytes up to a limit. Beyond it, creates an artifact and writes all bytes there, unchanged. Never
/// fails: the report of [`Self::finish`] contains the error.
#[derive(Debug)]
pub(crate) struct SpillBuffer {
    artifacts: Option<Artifacts>,
    kind: ArtifactKind,
    memory_limit: usize,
    buffer: Vec<u8>,
    writer: Option<ArtifactWriter>,
    failure: Option<StoreFailure>,
    total: u64,
}

/// The result of a [`SpillBuffer`].
#[derive(Debug, Default)]
pub(crate) struct SpillReport {
    /// The artifact, if one was created.
    pub(crate) id: Option<ArtifactId>,
    /// Number of bytes pushed.
    pub(crate) total: u64,
    /// Number of bytes in the artifact, counted from the beginning.
    pub(crate) kept: u64,
    /// Why it is missing or incomplete.
    pub(crate) failure: Option<StoreFailure>,
    pub(crate) file: Option<Arc<File>>,
}

impl SpillBuffer {
    /// Creates a buffer that holds up to `memory_limit` bytes. Without `artifacts`, bytes are
    /// dropped, which is not a failure.
    pub(crate) fn new(
        artifacts: Option<Artifacts>,
        kind: ArtifactKind,
        memory_limit: usize,
    ) -> Self {
        Self {
            artifacts,
            kind,
            memory_limit,
            buffer: Vec::new(),
            writer: None,
            failure: None,
            total: 0,
        }
    }

    /// Returns the number of bytes pushed so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the artifact, once it is created.
    pub(crate) fn id(&self) -> Option<ArtifactId> {
        self.writer.as_ref().map(ArtifactWriter::id)
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.artifacts.is_none() || self.failure.is_some() {
            return;
        }
        if self.writer.is_none() {
            if self.buffer.len() + bytes.len() <= self.memory_limit {
                self.buffer.extend_from_slice(bytes);
                return;
            }
            self.create_artifact();
        }
        self.write(bytes);
    }

    /// Creates the artifact now, even below the limit.
    pub(crate) fn create_artifact(&mut self) {
        let Some(artifacts) = self.artifacts.as_ref() else {
            return;
        };
        if self.writer.is_some() || self.failure.is_some() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        match artifacts.create(self.kind) {
            Ok(writer) => {
                self.writer = Some(writer);
                self.write(&buffer);
            }
            Err(error) => self.failure = Some(StoreFailure::from(&error)),
        }
    }

    /// Flushes the artifact and returns the report.
    pub(crate) fn finish(mut self) -> SpillReport {
        if let Some(writer) = &mut self.writer
            && self.failure.is_none()
            && let Err(error) = writer.flush()
        {
            self.failure = Some(store_failure(writer, &error));
        }
        SpillReport {
            id: self.id(),
            total: self.total,
            kept: self.writer.as_ref().map_or(0, ArtifactWriter::written),
            failure: self.failure,
            file: self.writer.as_ref().map(ArtifactWriter::file),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(writer) = &mut self.writer
            && self.failure.is_none()
            && let Err(error) = writer.write(bytes)
        {
            self.failure = Some(store_failure(writer, &error));
        }
    }
}

fn store_failure(writer: &ArtifactWriter, error: &io::Error) -> StoreFailure {
    StoreFailure {
        kind: error.kind(),
        message: format!("{}: {error}", writer.path().display()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Retention;
    use super::*;

    #[test]
    fn spill_buffer_stores_bytes_verbatim() {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path().join("artifacts"), Retention::default());
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(200_000).collect();
        let mut buffer = SpillBuffer::new(Some(artifacts.clone()), ArtifactKind::Log, 1000);
        for chunk in bytes.chunks(333) {
            buffer.push(chunk);
        }
        assert_eq!(buffer.id(), Some(ArtifactId(1)));
        let report = buffer.finish();
        assert_eq!((report.kept, report.total), (200_000, 200_000));
        assert!(report.failure.is_none());
        let stored = fs::read(artifacts.open(ArtifactId(1)).unwrap().path()).unwrap();
        assert!(stored == bytes);
    }

    #[test]
    fn spill_buffer_within_its_limit_creates_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path().join("artifacts"), Retention::default());
        let mut buffer = SpillBuffer::new(Some(artifacts.clone()), ArtifactKind::Log, 10);
        buffer.push(b"0123456789");
        assert_eq!(buffer.id(), None);
        assert!(!artifacts.dir().exists());
        buffer.push(b"a");
        assert_eq!(buffer.finish().kept, 11);
    }
}
