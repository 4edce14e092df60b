//! What is kept in memory while it is little, and goes to an artifact when it becomes much.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{ArtifactError, ArtifactId, Artifacts, Kind, Recording};

/// Why an artifact is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of error it was.
    pub kind: io::ErrorKind,
    /// The error in words.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&ArtifactError> for Failure {
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

/// Takes bytes, holds the first of them, and once there are more, creates an artifact and writes
/// them all there, exactly as they came. Never fails: what went wrong is told at the end.
#[derive(Debug)]
pub struct Spill {
    artifacts: Option<Artifacts>,
    kind: Kind,
    most_held: usize,
    held: Vec<u8>,
    recording: Option<Recording>,
    failure: Option<Failure>,
    total: u64,
}

/// What became of the bytes.
#[derive(Debug, Default)]
pub struct Spilled {
    /// The artifact, if there is one.
    pub id: Option<ArtifactId>,
    /// How many bytes came.
    pub total: u64,
    /// How many of them, from the beginning, are in the artifact.
    pub kept: u64,
    /// Why it is missing or incomplete.
    pub failure: Option<Failure>,
    pub(crate) file: Option<Arc<File>>,
}

impl Spill {
    /// Holds up to `most_held` bytes. Without artifacts nothing is kept and nothing is wrong.
    pub fn new(artifacts: Option<Artifacts>, kind: Kind, most_held: usize) -> Self {
        Self {
            artifacts,
            kind,
            most_held,
            held: Vec::new(),
            recording: None,
            failure: None,
            total: 0,
        }
    }

    /// How many bytes came so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The artifact, once there is one.
    pub fn id(&self) -> Option<ArtifactId> {
        self.recording.as_ref().map(Recording::id)
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.artifacts.is_none() || self.failure.is_some() {
            return;
        }
        if self.recording.is_none() {
            if self.held.len() + bytes.len() <= self.most_held {
                self.held.extend_from_slice(bytes);
                return;
            }
            self.keep();
        }
        self.record(bytes);
    }

    /// Creates the artifact now, however little there is.
    pub fn keep(&mut self) {
        let Some(artifacts) = self.artifacts.as_ref() else {
            return;
        };
        if self.recording.is_some() || self.failure.is_some() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        match artifacts.create(self.kind) {
            Ok(recording) => {
                self.recording = Some(recording);
                self.record(&held);
            }
            Err(error) => self.failure = Some(Failure::from(&error)),
        }
    }

    /// Ends it; writes out what was gathered.
    pub fn finish(mut self) -> Spilled {
        if let Some(recording) = &mut self.recording
            && self.failure.is_none()
            && let Err(error) = recording.flush()
        {
            self.failure = Some(failure(recording, &error));
        }
        Spilled {
            id: self.id(),
            total: self.total,
            kept: self.recording.as_ref().map_or(0, Recording::written),
            failure: self.failure,
            file: self.recording.as_ref().map(Recording::file),
        }
    }

    fn record(&mut self, bytes: &[u8]) {
        if let Some(recording) = &mut self.recording
            && self.failure.is_none()
            && let Err(error) = recording.write(bytes)
        {
            self.failure = Some(failure(recording, &error));
        }
    }
}

fn failure(recording: &Recording, error: &io::Error) -> Failure {
    Failure {
        kind: error.kind(),
        message: format!("{}: {error}", recording.path().display()),
    }
}
