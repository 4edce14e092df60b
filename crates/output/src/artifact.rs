//! The artifact directory: full outputs stored as files such as `12-1f2e3d4c.log` and `13-1f2e3d4c.png`. The
//! caller names the directory.
//!
//! All projects of a user share one directory, one counter and one sweep. The second part of a file name is the
//! [`ProjectTag`] of the project that stored the artifact. Artifacts of older versions have none. A file such as
//! `12.origin` has the [`ArtifactOrigin`] of an artifact, if it is known.
//!
//! Several processes may use one directory at once. Artifact numbers come from a counter file under a lock, so
//! no number is reused, even after a sweep removed its file. The writer of an artifact holds a lock on it, so
//! that a sweep skips it.

mod counter;
mod file_name;
mod origin;
mod project_tag;
mod read;
mod scope;
mod search;
mod spill_buffer;
mod sweep;
mod value;
mod writer;

use std::fmt;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use counter::Counter;
use file_name::FileName;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::scratch::Scratch;
pub use origin::ArtifactOrigin;
pub use project_tag::ProjectTag;
pub use read::Artifact;
pub use scope::ArtifactScope;
pub use search::{Pattern, SearchHit, SearchOptions, SearchResults};
pub use spill_buffer::StoreFailure;
pub(crate) use spill_buffer::{SpillBuffer, SpillReport};
pub use sweep::SweepReport;
pub use writer::ArtifactWriter;

/// The number of an artifact, shown and serialized as `artifact://12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ArtifactId(pub u64);

impl From<ArtifactId> for String {
    fn from(id: ArtifactId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ArtifactId {
    type Error = ArtifactError;

    fn try_from(text: String) -> Result<Self, ArtifactError> {
        text.parse()
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "artifact://{}", self.0)
    }
}

impl FromStr for ArtifactId {
    type Err = ArtifactError;

    fn from_str(text: &str) -> Result<Self, ArtifactError> {
        let digits = text.strip_prefix("artifact://").unwrap_or(text);
        // Rejects signs and spaces, which `parse` accepts.
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits
            .parse()
            .ok()
            .filter(|&number| plain && number > 0)
            .map(Self)
            .ok_or_else(|| ArtifactError::BadId {
                text: text.to_owned(),
            })
    }
}

/// The content type of an artifact, stored as its file extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactKind {
    /// The text of a cell: the raw bytes of its streams.
    Log,
    /// Other text.
    Text,
    /// `text/html`.
    Html,
    /// JSON.
    Json,
    /// `image/png`.
    Png,
    /// `image/jpeg`.
    Jpeg,
    /// `image/gif`.
    Gif,
    /// `image/svg+xml`.
    Svg,
    /// Anything else.
    Binary,
}

impl ArtifactKind {
    const ALL: [Self; 9] = [
        Self::Log,
        Self::Text,
        Self::Html,
        Self::Json,
        Self::Png,
        Self::Jpeg,
        Self::Gif,
        Self::Svg,
        Self::Binary,
    ];

    /// Returns the kind for a MIME type.
    pub(crate) fn from_mime(mime: &str) -> Self {
        match mime {
            "image/png" => Self::Png,
            "image/jpeg" => Self::Jpeg,
            "image/gif" => Self::Gif,
            "image/svg+xml" => Self::Svg,
            "text/html" => Self::Html,
            "application/json" => Self::Json,
            _ if mime.ends_with("+json") => Self::Json,
            _ if mime.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }

    /// Returns the MIME type of the content.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Log | Self::Text => "text/plain",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Svg => "image/svg+xml",
            Self::Binary => "application/octet-stream",
        }
    }

    fn from_extension(extension: &str) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find(|kind| kind.extension() == extension)
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Text => "txt",
            Self::Html => "html",
            Self::Json => "json",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Svg => "svg",
            Self::Binary => "bin",
        }
    }
}

/// The properties of an artifact in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactInfo {
    /// The artifact's number.
    pub id: ArtifactId,
    /// The project that stored it; `None` for artifacts of older versions.
    pub project: Option<ProjectTag>,
    /// The content type.
    pub kind: ArtifactKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub modified: SystemTime,
    /// Path of the file.
    pub path: PathBuf,
}

/// How much the directory may hold, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum size of all artifacts together, in bytes; a sweep removes the oldest first.
    pub bytes: u64,
    /// Maximum age of an artifact.
    pub age: Duration,
}

impl Default for Retention {
    /// Two gigabytes and one week: enough for a few runaway executions, and time to inspect them.
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            age: Duration::from_hours(7 * 24),
        }
    }
}

/// An error in the artifact directory. None of them fails an execution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The artifact does not exist.
    #[error("{id} does not exist")]
    Missing {
        /// The requested artifact.
        id: ArtifactId,
        /// The artifacts of the project.
        available: Vec<ArtifactId>,
    },
    /// Another project stored the artifact.
    #[error("{id} belongs to another project")]
    OtherProject {
        /// The requested artifact.
        id: ArtifactId,
    },
    /// The value was too large for memory and could not be stored.
    #[error("the value could not be stored")]
    NotStored,
    /// The text is not an artifact id.
    #[error("`{text}` is not an artifact: expected artifact://NUMBER")]
    BadId {
        /// The rejected text.
        text: String,
    },
    /// The pattern is not a valid regular expression.
    #[error("`{pattern}` is not a pattern: {reason}")]
    BadPattern {
        /// The rejected pattern.
        pattern: String,
        /// The parser's error message.
        reason: String,
    },
    /// Another process held the directory's lock for too long.
    #[error("{} is in use", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl ArtifactError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// Handle to the artifact directory, for one project or for none. Clones share the directory, which is created with
/// the first artifact.
#[derive(Clone, Debug)]
pub struct Artifacts {
    folder: Arc<ArtifactDir>,
    project: Option<ProjectTag>,
    scope: Option<Arc<ArtifactScope>>,
    /// The working directory of the code whose output is stored.
    code_dir: Option<Arc<Path>>,
    origin: Option<Arc<ArtifactOrigin>>,
}

#[derive(Debug)]
struct ArtifactDir {
    dir: PathBuf,
    retention: Retention,
    /// Bytes written since the last sweep.
    unswept_bytes: AtomicU64,
    /// The file for values without an artifact number.
    scratch: Scratch,
}

/// Bytes written between two sweeps: a sweep examines every file, which costs time.
const SWEEP_AFTER_SIZE: u64 = 16 << 20;

impl Artifacts {
    /// Opens a directory, which need not exist yet. The handle has no project.
    pub fn new(dir: impl Into<PathBuf>, retention: Retention) -> Self {
        let dir = dir.into();
        Self {
            folder: Arc::new(ArtifactDir {
                scratch: Scratch::new(Some(dir.clone())),
                dir,
                retention,
                unswept_bytes: AtomicU64::new(SWEEP_AFTER_SIZE),
            }),
            project: None,
            scope: None,
            code_dir: None,
            origin: None,
        }
    }

    /// Returns a handle to the same directory that stores and lists the artifacts of a project.
    #[must_use]
    pub fn for_project(&self, project: ProjectTag) -> Self {
        Self {
            project: Some(project),
            ..self.clone()
        }
    }

    /// Returns a handle to the same directory that stores the artifacts of code with this working directory, a canonical
    /// path.
    #[must_use]
    pub fn for_code_in(&self, dir: &Path) -> Self {
        Self {
            code_dir: Some(dir.into()),
            ..self.clone()
        }
    }

    /// Returns a handle to the same directory that stores the artifacts of a cell.
    #[must_use]
    pub fn for_origin(&self, origin: ArtifactOrigin) -> Self {
        Self {
            origin: Some(Arc::new(origin)),
            ..self.clone()
        }
    }

    /// Returns the project of the handle.
    pub fn project(&self) -> Option<ProjectTag> {
        self.project
    }

    /// Returns the path of the directory.
    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// Returns the directory's retention limits.
    pub fn retention(&self) -> Retention {
        self.folder.retention
    }

    /// Returns the scratch file in this directory, for values too large for memory.
    pub fn scratch(&self) -> Scratch {
        self.folder.scratch.clone()
    }

    /// Creates an artifact of the handle's project and returns its writer.
    pub fn create(&self, kind: ArtifactKind) -> Result<ArtifactWriter, ArtifactError> {
        self.sweep_if_due(0);
        files::create_private_dir(self.dir()).map_err(ArtifactError::io(self.dir()))?;
        let counter = Counter::lock(self.dir())?;
        let mut number = counter.next(self)?;
        // A user may have created a file with this name; up to 1000 numbers are skipped.
        for _ in 0..1000 {
            let path = self.path(FileName {
                id: ArtifactId(number),
                project: self.project,
                kind,
            });
            match files::create_private_file(&path) {
                Ok(file) => {
                    counter.advance_to(number)?;
                    self.write_origin(ArtifactId(number));
                    return Ok(ArtifactWriter::new(
                        self.clone(),
                        ArtifactId(number),
                        path,
                        file,
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        Err(ArtifactError::Busy {
            dir: self.dir().to_owned(),
        })
    }

    /// Stores `bytes` as a new artifact.
    pub fn store(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<ArtifactId, ArtifactError> {
        let (id, _) = self.store_with(kind, |writer| writer.write(bytes))?;
        Ok(id)
    }

    /// Stores everything `write` produces as a new artifact. Returns its id and size in bytes.
    fn store_with(
        &self,
        kind: ArtifactKind,
        write: impl FnOnce(&mut ArtifactWriter) -> io::Result<()>,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let mut writer = self.create(kind)?;
        let id = writer.id();
        let written = write(&mut writer).and_then(|()| writer.flush());
        if let Err(error) = written {
            let path = writer.path().to_owned();
            drop(writer);
            // A partial image is useless.
            fs::remove_file(&path).map_err(ArtifactError::io(&path))?;
            self.remove_origin(id);
            return Err(ArtifactError::io(&path)(error));
        }
        Ok((id, writer.written()))
    }

    /// Returns the artifacts of the handle's scope or project, oldest first; without either, those of all projects.
    pub fn list(&self) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let mut entries = self.list_all()?;
        if self.project.is_some() || self.scope.is_some() {
            entries.retain(|entry| self.contains(entry));
        }
        Ok(entries)
    }

    /// Returns the artifacts of all projects, oldest first.
    pub fn list_all(&self) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let mut entries = Vec::new();
        for (name, file) in self.files()? {
            // Another process may have swept this file.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            if metadata.is_file() {
                entries.push(ArtifactInfo {
                    id: name.id,
                    project: name.project,
                    kind: name.kind,
                    bytes: metadata.len(),
                    modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    path: file.path(),
                });
            }
        }
        entries.sort_by_key(|entry| entry.id);
        Ok(entries)
    }

    /// Opens an artifact of any project for reading.
    pub fn open(&self, id: ArtifactId) -> Result<Artifact, ArtifactError> {
        let mut names: Vec<FileName> = self.files()?.into_iter().map(|(name, _)| name).collect();
        names.retain(|name| name.id == id);
        // Two files have the same number only if another program created one of them.
        names.sort_by_key(|name| (name.project != self.project, name.kind));
        for name in names {
            let path = self.path(name);
            match File::open(&path) {
                Ok(file) => return Artifact::new(name, path, file),
                // Another process may have swept this file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        let available = self.list()?.into_iter().map(|entry| entry.id).collect();
        Err(ArtifactError::Missing { id, available })
    }

    /// Opens an artifact for reading. Fails if it does not belong to the handle's scope; without a scope, if it belongs
    /// to another project. Artifacts of older versions belong to none.
    pub fn open_in_project(&self, id: ArtifactId) -> Result<Artifact, ArtifactError> {
        let artifact = self.open(id)?;
        let belongs = match &self.scope {
            Some(scope) => scope.contains(artifact.project, || self.origin(id)),
            None => artifact.project.is_none() || artifact.project == self.project,
        };
        belongs
            .then_some(artifact)
            .ok_or(ArtifactError::OtherProject { id })
    }

    /// Returns the files of all artifacts.
    fn files(&self) -> Result<Vec<(FileName, DirEntry)>, ArtifactError> {
        let dir = self.dir();
        let files = match fs::read_dir(dir) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ArtifactError::io(dir)(error)),
        };
        let mut artifacts = Vec::new();
        for file in files {
            let file = file.map_err(ArtifactError::io(dir))?;
            if let Some(name) = file.file_name().to_str().and_then(FileName::parse) {
                artifacts.push((name, file));
            }
        }
        Ok(artifacts)
    }

    fn path(&self, name: FileName) -> PathBuf {
        self.dir().join(name.to_string())
    }

    /// Counts written bytes, and sweeps the directory after [`SWEEP_AFTER_SIZE`]. A failed sweep only leaves too
    /// many files, so its error is dropped.
    fn sweep_if_due(&self, written: u64) {
        let unswept = self
            .folder
            .unswept_bytes
            .fetch_add(written, Ordering::Relaxed)
            + written;
        if unswept >= SWEEP_AFTER_SIZE {
            self.folder.unswept_bytes.store(0, Ordering::Relaxed);
            drop(self.sweep());
        }
    }
}
