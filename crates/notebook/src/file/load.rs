//! Reads notebook files, also while another program writes them.
//!
//! Jupyter rewrites files in place: for a moment they are empty or truncated. Such a file is read
//! again for a short time. After that it is an error, and never treated as an empty notebook.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::os::FileStamp;
use super::save::ReplacedFile;
use crate::baseline::Baselines;
use crate::document::Notebook;
use crate::error::{FormatError, NotebookError, Notice};
use crate::revision::Revision;
use crate::scan::{self, ScanError};
use crate::text::MarkerStyle;
use crate::upgrade::parse_any_format;
use crate::view::{NotebookView, ViewBuilder, ViewRequest};

/// A file unmodified for this long is not being written.
const WRITER_GRACE: Duration = Duration::from_secs(2);
/// A broken file that does not change for this long is reported as broken.
const STABLE_TIMEOUT: Duration = Duration::from_millis(300);
/// The longest wait for a file that keeps changing.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_INTERVAL: Duration = Duration::from_millis(15);

/// A notebook and the state of its file when it was loaded.
pub(crate) struct LoadedNotebook {
    pub(crate) notebook: Notebook,
    pub(crate) stamp: FileStamp,
    pub(crate) metadata: fs::Metadata,
}

impl LoadedNotebook {
    /// The file, to be replaced.
    pub(crate) fn to_replace(&self) -> ReplacedFile<'_> {
        ReplacedFile {
            stamp: self.stamp,
            metadata: &self.metadata,
            revision: self.notebook.revision(),
        }
    }
}

/// Loads a whole notebook.
pub fn load(path: &Path) -> Result<Notebook, NotebookError> {
    load_with_stamp(path).map(|loaded| loaded.notebook)
}

pub(crate) fn load_with_stamp(path: &Path) -> Result<LoadedNotebook, NotebookError> {
    read_when_stable(path, |file| {
        let metadata = file.metadata()?;
        let expected = expected_size(&metadata)?;
        // Reserved and released: gives an error instead of an abort if memory is short.
        Vec::<u8>::new().try_reserve_exact(expected + 1)?;
        Ok(LoadedNotebook {
            notebook: scan::read_and_scan(file, expected)?.into(),
            stamp: FileStamp::from_metadata(&metadata),
            metadata,
        })
    })
}

/// The bytes of a file, whatever its content.
pub fn load_raw(path: &Path) -> Result<Vec<u8>, NotebookError> {
    load_bytes_with_stamp(path).map(|(bytes, _, _)| bytes)
}

pub(crate) fn load_bytes_with_stamp(
    path: &Path,
) -> Result<(Vec<u8>, FileStamp, fs::Metadata), NotebookError> {
    read_when_stable(path, |file| {
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(expected_size(&metadata)? + 1)?;
        io::Read::read_to_end(file, &mut bytes)?;
        Ok((bytes, FileStamp::from_metadata(&metadata), metadata))
    })
}

/// Reads the text view of a notebook without keeping the file in memory, and stores its baseline. A file in nbformat 2
/// or 3 is converted as [`load_any_format`] does.
pub fn read_view(
    path: &Path,
    text: Option<MarkerStyle>,
    baselines: Option<&Baselines>,
) -> Result<NotebookView, NotebookError> {
    let request = ViewRequest { text, cell: None };
    let view = match build_view(path, request) {
        Err(error) if is_old_format(&error) => convert(path, request)?.1,
        view => view?,
    };
    store_view_baseline(&view, baselines);
    Ok(view)
}

/// As [`load_with_notices`]. A file in nbformat 2 or 3 is converted in memory as
/// [`upgrade`](crate::upgrade::upgrade) does, and a notice reports it. Its revision is that of the file, so that a
/// change based on it can be merged after the upgrade.
pub fn load_any_format(
    path: &Path,
    baselines: Option<&Baselines>,
) -> Result<(Notebook, Vec<Notice>), NotebookError> {
    match load_with_notices(path, baselines) {
        Err(error) if is_old_format(&error) => {
            let (notebook, view) = convert(path, ViewRequest::default())?;
            store_view_baseline(&view, baselines);
            Ok((notebook, view.notices))
        }
        loaded => loaded,
    }
}

fn is_old_format(error: &NotebookError) -> bool {
    let NotebookError::Format { error, .. } = error else {
        return false;
    };
    matches!(error, FormatError::OldFormat { .. })
}

/// Loads a file in an old format.
fn convert(path: &Path, request: ViewRequest) -> Result<(Notebook, NotebookView), NotebookError> {
    let (notebook, notice) =
        parse_any_format(load_raw(path)?).map_err(|error| format_error(path, error))?;
    let mut view = ViewBuilder::build(request, &notebook);
    view.notices.splice(..0, notice);
    Ok((notebook, view))
}

/// Loads a whole notebook, stores its baseline, and returns it with the notices of
/// [`Notebook::irregularities`]. Reads the file once.
pub fn load_with_notices(
    path: &Path,
    baselines: Option<&Baselines>,
) -> Result<(Notebook, Vec<Notice>), NotebookError> {
    let notebook = load(path)?;
    let view = ViewBuilder::build(ViewRequest::default(), &notebook);
    store_view_baseline(&view, baselines);
    Ok((notebook, view.notices))
}

/// Stores the baseline of a view. It is a cache, so errors are ignored.
pub(crate) fn store_view_baseline(view: &NotebookView, baselines: Option<&Baselines>) {
    if let (Some(baselines), Some(baseline)) = (baselines, &view.baseline) {
        baselines.store(view.revision, baseline).ok();
    }
}

pub(crate) fn build_view(path: &Path, request: ViewRequest) -> Result<NotebookView, NotebookError> {
    let mut builder = ViewBuilder::new(request);
    let mut file = open(path)?;
    let first = read_once(&mut file, |file| {
        let expected = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        scan::scan_stream(file, expected, &mut builder, request.detail())
    });
    if let Ok(Some((spans, revision))) = first {
        return Ok(builder.finish(revision, spans.minor));
    }
    // Broken or being written: load it with retries, which also gives the exact position of an
    // error.
    let loaded = load_with_stamp(path)?;
    Ok(ViewBuilder::build(request, &loaded.notebook))
}

/// The revision of a file, whatever its content.
pub(crate) fn hash_file(file: &mut File) -> io::Result<Revision> {
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
    super::os::open(path).map_err(|error| read_error(path, error))
}

/// Rejects anything but regular files before opening: opening a named pipe would block.
pub(crate) fn check_regular(path: &Path) -> Result<(), NotebookError> {
    let metadata = fs::metadata(path).map_err(|error| read_error(path, error))?;
    if !metadata.is_file() {
        return Err(NotebookError::NotAFile {
            path: path.to_owned(),
            file_type: if metadata.is_dir() {
                "a directory"
            } else {
                "a device or pipe"
            },
        });
    }
    Ok(())
}

fn read_error(path: &Path, source: io::Error) -> NotebookError {
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

/// Reads once. Returns `None` if the file changed during the read, because the result may be a
/// mixture.
fn read_once<T>(
    file: &mut File,
    read: impl FnOnce(&mut File) -> Result<T, ScanError>,
) -> Result<Option<T>, ScanError> {
    let before = FileStamp::from_metadata(&file.metadata()?);
    let result = read(file);
    let after = FileStamp::from_metadata(&file.metadata()?);
    match result {
        Ok(value) => Ok((before == after).then_some(value)),
        Err(error) => Err(error),
    }
}

/// Reads until the file is stable and valid, within the timeouts above.
pub(crate) fn read_when_stable<T>(
    path: &Path,
    mut read: impl FnMut(&mut File) -> Result<T, ScanError>,
) -> Result<T, NotebookError> {
    let started = Instant::now();
    let mut last: Option<(FileStamp, Instant)> = None;
    loop {
        let mut file = open(path)?;
        let error = match read_once(&mut file, &mut read) {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            // A file may look like this while another program is writing it.
            Err(ScanError::Format(error)) if error.is_not_json() => Some(error),
            Err(ScanError::Format(error)) => return Err(format_error(path, error)),
            // Shorter than it was a moment ago.
            Err(ScanError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(ScanError::Io(error)) => return Err(read_error(path, error)),
        };
        let metadata = fs::metadata(path).map_err(|error| read_error(path, error))?;
        let stamp = FileStamp::from_metadata(&metadata);
        let since = match last {
            Some((previous, since)) if previous == stamp => since,
            _ => Instant::now(),
        };
        last = Some((stamp, since));
        let is_settled = !stamp.is_younger_than(WRITER_GRACE) || since.elapsed() > STABLE_TIMEOUT;
        match error {
            Some(error) if is_settled || started.elapsed() > READ_TIMEOUT => {
                return Err(format_error(path, error));
            }
            None if started.elapsed() > READ_TIMEOUT => {
                return Err(NotebookError::Busy {
                    path: path.to_owned(),
                });
            }
            _ => thread::sleep(RETRY_INTERVAL),
        }
    }
}

/// Whether the name of a file ends in `.ipynb`.
pub fn has_notebook_extension(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

pub(crate) fn format_error(path: &Path, error: FormatError) -> NotebookError {
    let path = path.to_owned();
    if error.is_not_json() && !has_notebook_extension(&path) {
        return NotebookError::NotANotebook { path };
    }
    NotebookError::Format { path, error }
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
