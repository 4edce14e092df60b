//! Replaces a file so that every reader, at every moment and after every crash, sees the old or the
//! new one whole.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use super::load::revision_of;
use super::lock::Lock;
use super::os::{self, Stamp, Temp};
use crate::error::NotebookError;
use crate::revision::{Digest, Revision};

/// The steps of a save, in order. A test can make any of them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Making a temporary file in the same folder.
    Create,
    /// Writing a piece of the content.
    Write,
    /// Giving it the mode and owner of the old file.
    Attributes,
    /// Flushing it to the disk.
    Sync,
    /// Looking once more whether the old file is still what it was.
    Check,
    /// Putting it in place.
    Publish,
    /// Looking whether somebody wrote to the old file until the end.
    Recheck,
    /// Flushing the folder.
    SyncFolder,
}

/// Called before each step; an error is as if the step had failed.
pub(crate) type Watch<'w> = &'w dyn Fn(Step) -> io::Result<()>;

/// What is being replaced.
pub(crate) struct Old<'o> {
    pub(crate) stamp: Stamp,
    pub(crate) metadata: &'o fs::Metadata,
    pub(crate) revision: Revision,
}

/// What came of a save.
pub(crate) enum Saved {
    Written {
        revision: Revision,
        /// Keeps other writers away until the content was read back.
        _lock: Lock,
    },
    /// It is what is there already; nothing was written.
    Same { revision: Revision },
    /// Somebody else changed the file since it was loaded; nothing was written.
    ChangedMeanwhile,
}

/// A part of what is written.
#[derive(Clone, Copy)]
pub(crate) enum Chunk<'c> {
    Bytes(&'c [u8]),
    /// Part of a file: where it begins, and how long it is.
    Stored(&'c fs::File, u64, u64),
}

/// Writes `chunks` to `target` in the place of `old`, or as a new file.
pub(crate) fn save<'c>(
    target: &Path,
    old: Option<&Old<'_>>,
    chunks: impl Iterator<Item = Chunk<'c>>,
    watch: Watch<'_>,
) -> Result<Saved, NotebookError> {
    let folder = os::folder_of(target);
    let failed = |step: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| NotebookError::Io { step, path, source }
    };
    let not_durable = |source| NotebookError::NotDurable {
        path: target.to_owned(),
        source,
    };
    let in_folder = || failed("write a temporary file in the folder", folder);
    if old.is_some() {
        os::check_writable(target).map_err(failed("write to", target))?;
    }
    watch(Step::Create).map_err(in_folder())?;
    let mut temp =
        Temp::create(target).map_err(failed("create a temporary file in the folder", folder))?;
    let revision = write(&temp, chunks, watch).map_err(in_folder())?;
    if old.is_some_and(|old| old.revision == revision) {
        return Ok(Saved::Same { revision });
    }
    watch(Step::Attributes).map_err(in_folder())?;
    match old {
        Some(old) => os::copy_attributes(&temp.file, old.metadata),
        None => os::default_mode(&temp.file),
    }
    .map_err(in_folder())?;
    watch(Step::Sync).map_err(in_folder())?;
    temp.file.sync_all().map_err(in_folder())?;
    watch(Step::Check).map_err(failed("read", target))?;
    let checked = match old {
        Some(old) => unchanged(target, old).map_err(failed("read", target))?,
        None => None,
    };
    if old.is_some() && checked.is_none() {
        return Ok(Saved::ChangedMeanwhile);
    }
    watch(Step::Publish).map_err(failed("replace", target))?;
    // Whoever comes next locks the file that is there then: this one.
    let lock = Lock::on(&temp.file).map_err(in_folder())?;
    if let Some(checked) = checked {
        temp.replace(target).map_err(failed("replace", target))?;
        // Somebody who writes in place may have done so since the check, into what is now ours to
        // throw away. Then their file comes back, and everything begins anew.
        watch(Step::Recheck).map_err(not_durable)?;
        if let Some(Ok(replaced)) = temp.replaced()
            && !replaced.has_same_content(&checked)
            && temp.put_back(target).is_ok()
        {
            return Ok(Saved::ChangedMeanwhile);
        }
    } else {
        temp.publish_new(target)
            .map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => NotebookError::Exists {
                    path: target.to_owned(),
                },
                _ => failed("create", target)(source),
            })?;
    }
    watch(Step::SyncFolder)
        .and_then(|()| os::sync_folder(folder))
        .map_err(not_durable)?;
    Ok(Saved::Written {
        revision,
        _lock: lock,
    })
}

fn write<'c>(
    temp: &Temp,
    chunks: impl Iterator<Item = Chunk<'c>>,
    watch: Watch<'_>,
) -> io::Result<Revision> {
    const BUFFER: usize = 256 * 1024;
    let mut digest = Digest::new();
    let mut out = BufWriter::with_capacity(BUFFER, &temp.file);
    let mut put = |bytes: &[u8]| {
        watch(Step::Write)?;
        digest.update(bytes);
        out.write_all(bytes)
    };
    let mut buffer = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) => bytes.chunks(BUFFER).try_for_each(&mut put)?,
            Chunk::Stored(file, start, length) => {
                let end = start + length;
                let mut at = start;
                while at < end {
                    let most = BUFFER.min(usize::try_from(end - at).unwrap_or(BUFFER));
                    buffer.resize(most, 0);
                    os::read_at(file, &mut buffer, at)?;
                    put(&buffer)?;
                    at += most as u64;
                }
            }
        }
    }
    out.flush()?;
    Ok(digest.finish())
}

/// The state of the file, if it is still what was loaded. Time stamps are trusted only when they are older
/// than their own precision; otherwise the content is compared.
fn unchanged(target: &Path, old: &Old<'_>) -> io::Result<Option<Stamp>> {
    const PRECISION: Duration = Duration::from_millis(50);
    let metadata = match fs::metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let stamp = Stamp::of(&metadata);
    if stamp == old.stamp && !stamp.is_younger_than(PRECISION) {
        return Ok(Some(stamp));
    }
    // `touch` alone is no change.
    let mut file = super::os::open(target)?;
    let same = revision_of(&mut file)? == old.revision;
    Ok(same.then_some(stamp))
}
