//! Replaces a file so that every reader, at every moment and after every crash, sees either the
//! whole old file or the whole new one.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::guard::{GuardRequest, WritePermit};
use super::lock::Lock;
use super::os::{self, FileStamp, TempFile};
use super::replace::{CheckedFile, DetachedFile, replace};
use crate::error::{NotebookError, Notice};
use crate::revision::{Digest, Revision};

/// The steps of a save, in order. A test can make any of them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveStep {
    /// Create a temporary file in the same directory.
    Create,
    /// Write a chunk of the content.
    Write,
    /// Set mode and owner of the old file.
    Attributes,
    /// Flush the temporary file to disk.
    Sync,
    /// Check that the old file is unchanged.
    Check,
    /// Put the new file in place.
    Publish,
    /// Exchange the names of the files. Programs that open one of them wait, also the caller.
    Exchange,
    /// Check the file that was replaced. Programs that open one of the files wait, also the caller.
    Verify,
    /// The new file is in place; the old one may still be written to.
    Recheck,
    /// Flush the directory.
    SyncDir,
}

/// Called before each step. An error counts as a failure of that step.
pub(crate) type StepHook<'w> = &'w dyn Fn(SaveStep) -> io::Result<()>;

/// The file to replace.
pub(crate) struct ReplacedFile<'o> {
    pub(crate) stamp: FileStamp,
    pub(crate) metadata: &'o fs::Metadata,
    pub(crate) revision: Revision,
}

/// The result of a save.
pub(crate) enum SaveOutcome {
    Written(WrittenFile),
    /// The file already has this content; nothing was written.
    Unchanged {
        revision: Revision,
    },
    /// Another program changed the file since it was loaded; nothing was written.
    ChangedOnDisk,
}

/// A file that was written.
pub(crate) struct WrittenFile {
    pub(crate) revision: Revision,
    /// Notices of the guard.
    pub(crate) notices: Vec<Notice>,
    /// Excludes other writers until the content was read back.
    pub(crate) lock: Option<Lock>,
    /// The file that was replaced.
    pub(crate) detached: Option<DetachedFile>,
}

impl SaveOutcome {
    /// The file with the new content, without a lock if nothing was written; `None` if another program changed it.
    pub(crate) fn into_written(self) -> Option<WrittenFile> {
        match self {
            Self::Written(written) => Some(written),
            Self::Unchanged { revision } => Some(WrittenFile {
                revision,
                notices: Vec::new(),
                lock: None,
                detached: None,
            }),
            Self::ChangedOnDisk => None,
        }
    }
}

/// A chunk of the new content.
#[derive(Clone, Copy)]
pub(crate) enum Chunk<'c> {
    Bytes(&'c [u8]),
    /// Part of a file: offset and length in bytes.
    Stored(&'c fs::File, u64, u64),
}

/// Receives the chunks of the new content in order.
pub(crate) type ChunkWriter<'w> = &'w mut dyn FnMut(Chunk<'_>) -> io::Result<()>;

/// Checks that the file at `path` can be replaced by one of its size, before the work that produces the new content.
pub fn check_replaceable(path: &Path) -> Result<(), NotebookError> {
    let target = super::change::resolve_target(path)?.path;
    let dir = os::parent_dir(&target);
    let failed = |step: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| NotebookError::Io { step, path, source }
    };
    os::check_writable(&target).map_err(failed("write to", &target))?;
    let size = fs::metadata(&target)
        .map_err(failed("read", &target))?
        .len();
    let temp = TempFile::create(&target, None)
        .map_err(failed("create a temporary file in the directory", dir))?;
    os::check_space(&temp.file, size)
        .map_err(failed("write a temporary file in the directory", dir))
}

/// The mode of a new file before the umask is applied.
const NEW_FILE_MODE: u32 = 0o666;

/// Writes the content that `chunks` passes on to `target`, replacing `old` or creating a new file.
pub(crate) fn save(
    target: &Path,
    old: Option<&ReplacedFile<'_>>,
    chunks: &mut dyn FnMut(ChunkWriter<'_>) -> io::Result<()>,
    guard: GuardRequest<'_>,
    on_step: StepHook<'_>,
) -> Result<SaveOutcome, NotebookError> {
    save_with_mode(target, old, chunks, guard, on_step, NEW_FILE_MODE)
}

/// As [`save`]. A new file has at most the permissions of `mode`.
pub(crate) fn save_with_mode(
    target: &Path,
    old: Option<&ReplacedFile<'_>>,
    chunks: &mut dyn FnMut(ChunkWriter<'_>) -> io::Result<()>,
    guard: GuardRequest<'_>,
    on_step: StepHook<'_>,
    mode: u32,
) -> Result<SaveOutcome, NotebookError> {
    let dir = os::parent_dir(target);
    let failed = |step: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| NotebookError::Io { step, path, source }
    };
    let not_durable = |source| NotebookError::NotDurable {
        path: target.to_owned(),
        source,
    };
    let in_dir = || failed("write a temporary file in the directory", dir);
    if old.is_some() {
        os::check_writable(target).map_err(failed("write to", target))?;
    }
    on_step(SaveStep::Create).map_err(in_dir())?;
    let mut temp = TempFile::create(target, old.map(|old| &old.stamp))
        .map_err(failed("create a temporary file in the directory", dir))?;
    // The next writer locks the file that it finds: this one.
    let lock = Lock::acquire_new(&temp.file).map_err(in_dir())?;
    let revision = write_chunks(&temp, chunks, on_step).map_err(in_dir())?;
    if old.is_some_and(|old| old.revision == revision) {
        return Ok(SaveOutcome::Unchanged { revision });
    }
    on_step(SaveStep::Attributes).map_err(in_dir())?;
    match old {
        Some(old) => os::copy_attributes(&temp.file, old.metadata),
        None => os::set_default_mode(&temp.file, mode),
    }
    .map_err(in_dir())?;
    on_step(SaveStep::Sync).map_err(in_dir())?;
    temp.file.sync_all().map_err(in_dir())?;
    // As late as possible: a room can open at any time.
    let permit = match old {
        Some(_) => guard.permit(target)?,
        None => WritePermit::default(),
    };
    on_step(SaveStep::Check).map_err(failed("read", target))?;
    let checked = match old {
        Some(old) => match CheckedFile::open(target, old).map_err(failed("read", target))? {
            None => return Ok(SaveOutcome::ChangedOnDisk),
            checked => checked,
        },
        None => None,
    };
    on_step(SaveStep::Publish).map_err(failed("replace", target))?;
    let detached = if let Some(checked) = checked {
        let replaced = replace(&mut temp, target, checked, on_step);
        let Some(detached) = replaced.map_err(failed("replace", target))? else {
            return Ok(SaveOutcome::ChangedOnDisk);
        };
        on_step(SaveStep::Recheck).map_err(not_durable)?;
        Some(detached)
    } else {
        temp.publish_new(target)
            .map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => NotebookError::Exists {
                    path: target.to_owned(),
                },
                _ => failed("create", target)(source),
            })?;
        None
    };
    on_step(SaveStep::SyncDir)
        .and_then(|()| os::sync_dir(dir))
        .map_err(not_durable)?;
    if let Some(on_written) = permit.on_written {
        on_written();
    }
    Ok(SaveOutcome::Written(WrittenFile {
        revision,
        notices: permit.notices,
        lock: Some(lock),
        detached,
    }))
}

fn write_chunks(
    temp: &TempFile,
    chunks: &mut dyn FnMut(ChunkWriter<'_>) -> io::Result<()>,
    on_step: StepHook<'_>,
) -> io::Result<Revision> {
    const BUFFER_SIZE: usize = 256 * 1024;
    let mut digest = Digest::new();
    let mut out = BufWriter::with_capacity(BUFFER_SIZE, &temp.file);
    let mut write_part = |bytes: &[u8]| {
        on_step(SaveStep::Write)?;
        digest.update(bytes);
        out.write_all(bytes)
    };
    let mut buffer = Vec::new();
    chunks(&mut |chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.chunks(BUFFER_SIZE).try_for_each(&mut write_part),
        Chunk::Stored(file, start, length) => {
            let end = start + length;
            let mut at = start;
            while at < end {
                let part = BUFFER_SIZE.min(usize::try_from(end - at).unwrap_or(BUFFER_SIZE));
                buffer.resize(part, 0);
                os::read_at(file, &mut buffer, at)?;
                write_part(&buffer)?;
                at += part as u64;
            }
            Ok(())
        }
    })?;
    out.flush()?;
    Ok(digest.finish())
}
