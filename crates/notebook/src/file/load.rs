//! Reading notebook files, also while somebody else writes them.
//!
//! Jupyter rewrites files in place: for a moment they are empty or cut. Such a file is read again
//! for a short while; then it is an error, and never taken for an empty notebook.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::os::Stamp;
use crate::baseline::Baselines;
use crate::document::Notebook;
use crate::error::{FormatError, NotebookError};
use crate::revision::Revision;
use crate::scan::{self, Contents, ScanError};
use crate::text::Markers;
use crate::view::{Glance, Viewer, Wanted};

/// A file untouched for this long is not being written.
const SETTLED: Duration = Duration::from_secs(2);
/// A broken file that does not change for this long will not get better.
const STABLE: Duration = Duration::from_millis(300);
/// The longest wait for a file that keeps changing.
const LONGEST: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(15);

/// A notebook and the state of the file it came from.
pub(crate) struct Loaded {
    pub(crate) notebook: Notebook,
    pub(crate) stamp: Stamp,
    pub(crate) metadata: fs::Metadata,
}

/// Loads a whole notebook.
pub fn load(path: &Path) -> Result<Notebook, NotebookError> {
    load_with_stamp(path).map(|loaded| loaded.notebook)
}

pub(crate) fn load_with_stamp(path: &Path) -> Result<Loaded, NotebookError> {
    settle(path, |file| {
        let metadata = file.metadata()?;
        let expected = expected_size(&metadata)?;
        // Asked for and given back: an error instead of an abort when there is not enough memory.
        Vec::<u8>::new().try_reserve_exact(expected + 1)?;
        Ok(Loaded {
            notebook: scan::whole(file, expected)?,
            stamp: Stamp::of(&metadata),
            metadata,
        })
    })
}

/// The bytes of a file, whatever is in it.
pub fn load_raw(path: &Path) -> Result<Vec<u8>, NotebookError> {
    load_bytes(path).map(|(bytes, _, _)| bytes)
}

pub(crate) fn load_bytes(path: &Path) -> Result<(Vec<u8>, Stamp, fs::Metadata), NotebookError> {
    settle(path, |file| {
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(expected_size(&metadata)? + 1)?;
        io::Read::read_to_end(file, &mut bytes)?;
        Ok((bytes, Stamp::of(&metadata), metadata))
    })
}

/// Looks at a notebook without holding it, and remembers what a later merge needs.
pub fn glance(
    path: &Path,
    text: Option<Markers>,
    baselines: Option<&Baselines>,
) -> Result<Glance, NotebookError> {
    let glance = look(path, Wanted { text, cell: None })?;
    remember_glance(&glance, baselines);
    Ok(glance)
}

/// Remembers what a later merge with this notebook needs.
pub fn remember(notebook: &Notebook, baselines: Option<&Baselines>) {
    if baselines.is_some() {
        let wanted = Wanted {
            text: None,
            cell: None,
        };
        remember_glance(&Viewer::look(wanted, notebook), baselines);
    }
}

/// Keeps what a later merge needs. It is a cache: trouble with it is not the caller's.
pub(crate) fn remember_glance(glance: &Glance, baselines: Option<&Baselines>) {
    if let (Some(baselines), Some(baseline)) = (baselines, &glance.baseline) {
        baselines.keep(glance.revision, baseline).ok();
    }
}

pub(crate) fn look(path: &Path, wanted: Wanted) -> Result<Glance, NotebookError> {
    let mut viewer = Viewer::new(wanted);
    let mut file = open(path)?;
    let first = attempt(&mut file, |file| {
        let expected = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        scan::window(file, expected, &mut viewer, Contents::Shown)
    });
    if let Ok(Some((frame, revision))) = first {
        return Ok(viewer.finish(revision, frame.minor));
    }
    // Broken or in motion: the patient way, which also knows where exactly it is broken.
    let loaded = load_with_stamp(path)?;
    Ok(Viewer::look(wanted, &loaded.notebook))
}

/// Hash of what is in a file, whatever it is.
pub(crate) fn revision_of(file: &mut File) -> io::Result<Revision> {
    let mut digest = crate::revision::Digest::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = io::Read::read(file, &mut buffer)?;
        if count == 0 {
            return Ok(digest.finish());
        }
        digest.update(&buffer[..count]);
    }
}

fn expected_size(metadata: &fs::Metadata) -> Result<usize, ScanError> {
    usize::try_from(metadata.len())
        .ok()
        .filter(|&size| u32::try_from(size).is_ok())
        .ok_or(ScanError::Format(FormatError::TooLarge))
}

fn open(path: &Path) -> Result<File, NotebookError> {
    check_regular(path)?;
    super::os::open(path).map_err(|error| cannot_read(path, error))
}

/// Refuses what is no file, before it is opened: opening a named pipe would wait for a writer.
pub(crate) fn check_regular(path: &Path) -> Result<(), NotebookError> {
    let metadata = fs::metadata(path).map_err(|error| cannot_read(path, error))?;
    if !metadata.is_file() {
        return Err(NotebookError::NotAFile {
            path: path.to_owned(),
            what: if metadata.is_dir() {
                "a directory"
            } else {
                "a device or pipe"
            },
        });
    }
    Ok(())
}

fn cannot_read(path: &Path, source: io::Error) -> NotebookError {
    let path = path.to_owned();
    if source.kind() == io::ErrorKind::NotFound {
        NotebookError::NotFound { path }
    } else {
        NotebookError::Io {
            step: "read",
            path,
            source,
        }
    }
}

/// Reads once; `None` if the file changed meanwhile, so that what was read may be a mixture.
fn attempt<T>(
    file: &mut File,
    read: impl FnOnce(&mut File) -> Result<T, ScanError>,
) -> Result<Option<T>, ScanError> {
    let before = Stamp::of(&file.metadata()?);
    let result = read(file);
    let after = Stamp::of(&file.metadata()?);
    match result {
        Ok(value) => Ok((before == after).then_some(value)),
        Err(error) => Err(error),
    }
}

/// Reads until the file holds still and makes sense, within bounds.
pub(crate) fn settle<T>(
    path: &Path,
    mut read: impl FnMut(&mut File) -> Result<T, ScanError>,
) -> Result<T, NotebookError> {
    let started = Instant::now();
    let mut last: Option<(Stamp, Instant)> = None;
    loop {
        let mut file = open(path)?;
        let error = match attempt(&mut file, &mut read) {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(ScanError::Format(error)) if error.may_pass() => Some(error),
            Err(ScanError::Format(error)) => return Err(bad_format(path, error)),
            Err(ScanError::Io(error)) => return Err(cannot_read(path, error)),
        };
        let metadata = fs::metadata(path).map_err(|error| cannot_read(path, error))?;
        let stamp = Stamp::of(&metadata);
        let since = match last {
            Some((seen, since)) if seen == stamp => since,
            _ => Instant::now(),
        };
        last = Some((stamp, since));
        let hopeless = !stamp.is_younger_than(SETTLED) || since.elapsed() > STABLE;
        match error {
            Some(error) if hopeless || started.elapsed() > LONGEST => {
                return Err(bad_format(path, error));
            }
            None if started.elapsed() > LONGEST => {
                return Err(NotebookError::Busy {
                    path: path.to_owned(),
                });
            }
            _ => thread::sleep(PAUSE),
        }
    }
}

fn bad_format(path: &Path, error: FormatError) -> NotebookError {
    NotebookError::Format {
        path: path.to_owned(),
        error,
    }
}

impl From<std::collections::TryReserveError> for ScanError {
    fn from(error: std::collections::TryReserveError) -> Self {
        Self::Io(io::Error::new(io::ErrorKind::OutOfMemory, error))
    }
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
