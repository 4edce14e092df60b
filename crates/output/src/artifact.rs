//! Full outputs, kept as files in a folder that the caller names: `12.log`, `13.png`.
//!
//! Several processes may use one folder at once. Numbers come from a counter file under a lock, so
//! none is given out twice, not even after its file was swept away. Whoever writes an artifact holds
//! a lock on it, so that nobody sweeps it meanwhile.

mod counter;
pub(crate) mod place;
mod read;
mod recording;
mod search;
mod spill;
mod sweep;
mod value;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use counter::Counter;

use crate::scratch::Scratch;
pub use read::{Artifact, Passage};
pub use recording::Recording;
pub use search::{Hit, Hits, Pattern, Search};
pub use spill::{Failure, Spill, Spilled};
pub use sweep::Swept;

/// The number of an artifact, shown as `artifact://12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId(pub u64);

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "artifact://{}", self.0)
    }
}

impl FromStr for ArtifactId {
    type Err = ArtifactError;

    fn from_str(text: &str) -> Result<Self, ArtifactError> {
        let digits = text.strip_prefix("artifact://").unwrap_or(text);
        // No sign, no spaces: what `parse` would let through too.
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

/// What an artifact holds; its file's extension says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The text of a run, byte for byte as it came.
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
    /// `image/svg+xml`.
    Svg,
    /// Anything else.
    Binary,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Log,
        Self::Text,
        Self::Html,
        Self::Json,
        Self::Png,
        Self::Jpeg,
        Self::Svg,
        Self::Binary,
    ];

    /// The kind that suits a MIME type.
    pub fn of_mime(mime: &str) -> Self {
        match mime {
            "image/png" => Self::Png,
            "image/jpeg" => Self::Jpeg,
            "image/svg+xml" => Self::Svg,
            "text/html" => Self::Html,
            "application/json" => Self::Json,
            _ if mime.ends_with("+json") => Self::Json,
            _ if mime.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }

    /// The MIME type of what it holds.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Log | Self::Text => "text/plain",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Svg => "image/svg+xml",
            Self::Binary => "application/octet-stream",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Text => "txt",
            Self::Html => "html",
            Self::Json => "json",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Svg => "svg",
            Self::Binary => "bin",
        }
    }
}

/// An artifact in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: ArtifactId,
    /// What it holds.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written to.
    pub modified: SystemTime,
    /// Where it is.
    pub path: PathBuf,
}

/// What the folder may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of all artifacts together; the oldest go first.
    pub bytes: u64,
    /// How long an artifact is kept.
    pub age: Duration,
}

impl Default for Retention {
    /// Two gigabytes, a week: room for a few runs that went wild, and time to look at them.
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            age: Duration::from_hours(7 * 24),
        }
    }
}

/// What can go wrong with artifacts. None of it fails a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// No such artifact.
    #[error("{id} does not exist")]
    Missing {
        /// What was asked for.
        id: ArtifactId,
        /// What there is.
        available: Vec<ArtifactId>,
    },
    /// It was too large to hold, and could not be stored.
    #[error("it could not be kept")]
    NotKept,
    /// Not the name of an artifact.
    #[error("`{text}` is not an artifact: expected artifact://NUMBER")]
    BadId {
        /// What was given.
        text: String,
    },
    /// Not a pattern.
    #[error("`{pattern}` is not a pattern: {reason}")]
    BadPattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder's lock was held for too long.
    #[error("{} is in use", dir.display())]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
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

/// The folder of artifacts. Clones share it; nothing is created before the first artifact is.
#[derive(Clone, Debug)]
pub struct Artifacts {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    retention: Retention,
    /// Bytes written since the last sweep.
    unswept: AtomicU64,
    /// A file beside them for what has no number.
    scratch: Scratch,
}

/// How much may be written before the folder is swept again: looking at every file costs time.
const SWEEP_AFTER: u64 = 16 << 20;

impl Artifacts {
    /// The artifacts in a folder, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>, retention: Retention) -> Self {
        let dir = dir.into();
        Self {
            inner: Arc::new(Inner {
                scratch: Scratch::new(Some(dir.clone())),
                dir,
                retention,
                unswept: AtomicU64::new(SWEEP_AFTER),
            }),
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// What the folder may hold.
    pub fn retention(&self) -> Retention {
        self.inner.retention
    }

    /// A file in the folder for values that are too large for memory.
    pub fn scratch(&self) -> Scratch {
        self.inner.scratch.clone()
    }

    /// Begins a new artifact.
    pub fn create(&self, kind: Kind) -> Result<Recording, ArtifactError> {
        self.make_room(0);
        place::create_folder(self.dir()).map_err(ArtifactError::io(self.dir()))?;
        let counter = Counter::lock(self.dir())?;
        let mut number = counter.next(self)?;
        // Someone may have put a file there by hand; a few steps lead past it.
        for _ in 0..1000 {
            let path = self.path(ArtifactId(number), kind);
            match place::create_file(&path) {
                Ok(file) => {
                    counter.advance_to(number)?;
                    return Ok(Recording::new(self.clone(), ArtifactId(number), path, file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        Err(ArtifactError::Busy {
            dir: self.dir().to_owned(),
        })
    }

    /// Keeps bytes that are all there.
    pub fn store(&self, kind: Kind, bytes: &[u8]) -> Result<ArtifactId, ArtifactError> {
        let (id, _) = self.store_with(kind, |recording| recording.write(bytes))?;
        Ok(id)
    }

    /// Keeps what is written all at once; how many bytes that is.
    fn store_with(
        &self,
        kind: Kind,
        write: impl FnOnce(&mut Recording) -> io::Result<()>,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let mut recording = self.create(kind)?;
        let id = recording.id();
        let path = self.path(id, kind);
        let written = write(&mut recording).and_then(|()| recording.flush());
        if let Err(error) = written {
            drop(recording);
            // Half an image is of no use to anyone.
            fs::remove_file(&path).map_err(ArtifactError::io(&path))?;
            return Err(ArtifactError::io(&path)(error));
        }
        Ok((id, recording.written()))
    }

    /// What there is, oldest first.
    pub fn list(&self) -> Result<Vec<Entry>, ArtifactError> {
        let dir = self.dir();
        let files = match fs::read_dir(dir) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ArtifactError::io(dir)(error)),
        };
        let mut entries = Vec::new();
        for file in files {
            let file = file.map_err(ArtifactError::io(dir))?;
            let Some((id, kind)) = file.file_name().to_str().and_then(parse_name) else {
                continue;
            };
            // Someone else may sweep meanwhile.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            if metadata.is_file() {
                entries.push(Entry {
                    id,
                    kind,
                    bytes: metadata.len(),
                    modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    path: file.path(),
                });
            }
        }
        entries.sort_by_key(|entry| entry.id);
        Ok(entries)
    }

    /// Opens an artifact to read it.
    pub fn open(&self, id: ArtifactId) -> Result<Artifact, ArtifactError> {
        for kind in Kind::ALL {
            let path = self.path(id, kind);
            match File::open(&path) {
                Ok(file) => return Artifact::new(id, kind, path, file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ArtifactError::io(&path)(error)),
            }
        }
        let available = self.list()?.into_iter().map(|entry| entry.id).collect();
        Err(ArtifactError::Missing { id, available })
    }

    fn path(&self, id: ArtifactId, kind: Kind) -> PathBuf {
        self.dir().join(format!("{}.{}", id.0, kind.extension()))
    }

    /// Counts bytes that were written, and sweeps when there were many. A sweep that fails leaves
    /// too much behind, which is no reason not to keep this artifact.
    fn make_room(&self, written: u64) {
        let unswept = self.inner.unswept.fetch_add(written, Ordering::Relaxed) + written;
        if unswept >= SWEEP_AFTER {
            self.inner.unswept.store(0, Ordering::Relaxed);
            drop(self.sweep());
        }
    }
}

fn parse_name(name: &str) -> Option<(ArtifactId, Kind)> {
    let (number, extension) = name.split_once('.')?;
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.extension() == extension)?;
    let id = number.parse().ok()?;
    // `007.log` is not ours: `open` would not find it.
    (id == ArtifactId(number.parse().ok()?) && !number.starts_with('0')).then_some((id, kind))
}
