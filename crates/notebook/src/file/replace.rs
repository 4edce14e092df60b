//! Replaces a file that other programs may be writing: check, exchange, check again.
//!
//! Linux has no operation that replaces a file only if it is still the expected one. Two names can be exchanged,
//! which shows what was replaced, and leases (`lease.rs`) make programs wait that open either file meanwhile:
//!
//! * One lease on the old file: no program has it open for writing, and one that wants to write waits.
//! * One lease on the new file: no program reads it before the check of the old one. If that check fails, the files
//!   are exchanged again, and a program that waits for the new file gets the content of the old one.
//!
//! So no reader sees a file that lacks the change of another program. Without leases the time between the last check
//! and the exchange remains, a few microseconds.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::lease::{Lease, NoLease};
use super::load::hash_file;
use super::os::{FileStamp, TempFile};
use super::save::{ReplacedFile, SaveStep, StepHook};
use crate::revision::Revision;

/// A program that has the file open for writing this long without writing is not waited for.
const WRITER_TIMEOUT: Duration = Duration::from_millis(250);
/// The longest wait for a program that has started to write into a replaced file.
const LATE_WRITER_TIMEOUT: Duration = Duration::from_secs(1);
/// The precision of time stamps: a file that changed within it may change again without getting a new one.
const TIMESTAMP_GRACE: Duration = Duration::from_millis(50);
const WRITER_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The file to replace, with the content that the new one is made from.
#[derive(Debug)]
pub(super) struct CheckedFile {
    file: File,
    stamp: FileStamp,
    revision: Revision,
    lease: Option<Lease>,
}

impl CheckedFile {
    /// Opens the file at `target`. Returns `None` if it is not the one that was loaded any more.
    pub(super) fn open(target: &Path, old: &ReplacedFile<'_>) -> io::Result<Option<Self>> {
        let started = Instant::now();
        loop {
            let mut file = match super::os::open(target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => other?,
            };
            let lease = Lease::against_writers(&file);
            let stamp = FileStamp::from_metadata(&file.metadata()?);
            if matches!(lease, Err(NoLease::InUse))
                && stamp == old.stamp
                && started.elapsed() < WRITER_TIMEOUT
            {
                thread::sleep(WRITER_POLL_INTERVAL);
                continue;
            }
            // A changed time stamp alone (`touch`) is not a change.
            let is_loaded = stamp == old.stamp && !stamp.is_younger_than(TIMESTAMP_GRACE)
                || hash_file(&mut file)? == old.revision;
            let checked = is_loaded.then(|| Self {
                file,
                stamp,
                revision: old.revision,
                lease: lease.ok(),
            });
            return Ok(checked);
        }
    }

    /// Whether the path still names this file, with the content that was checked, and no program waits to write it.
    fn is_at(&self, path: &Path) -> bool {
        let unchanged = |stamp: FileStamp| stamp.has_same_content(&self.stamp);
        fs::symlink_metadata(path)
            .is_ok_and(|metadata| unchanged(FileStamp::from_metadata(&metadata)))
            && !self.lease.as_ref().is_some_and(Lease::is_awaited)
    }
}

/// Replaces `target`, which must still be `checked`, by the temporary file. Returns `None`, with `target` as it was,
/// if another program has changed it.
pub(super) fn replace(
    temp: &mut TempFile,
    target: &Path,
    checked: CheckedFile,
    on_step: StepHook<'_>,
) -> io::Result<Option<DetachedFile>> {
    temp.ensure_named()?;
    let unread = Lease::against_all(&temp.file).ok();
    if !checked.is_at(target) {
        return Ok(None);
    }
    on_step(SaveStep::Exchange)?;
    match temp.exchange(target) {
        Ok(()) => {
            let verified = on_step(SaveStep::Verify);
            if verified.is_err() || !temp.path().is_some_and(|name| checked.is_at(name)) {
                put_back(temp, target, unread.as_ref())?;
                return verified.map(|()| None);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The file system cannot exchange names.
        Err(_) => temp.rename(target)?,
    }
    Ok(Some(DetachedFile(checked)))
}

/// Exchanges the files again, so that `target` is what another program has written.
fn put_back(temp: &mut TempFile, target: &Path, unread: Option<&Lease>) -> io::Result<()> {
    match temp.exchange(target) {
        // Another program has removed the file meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    if !temp.is_own_file()? {
        // Another program has put one more file in place meanwhile. It is the newest.
        temp.exchange(target)?;
    }
    if unread.is_some_and(Lease::is_awaited) {
        // A program that waits has found the new file, and must read what is in place.
        let mut current = super::os::open(target)?;
        temp.file.set_len(0)?;
        temp.file.rewind()?;
        io::copy(&mut current, &mut temp.file)?;
    }
    Ok(())
}

/// A file that was replaced. A program that had it open can still write into it, and the text would be lost.
#[derive(Debug)]
pub(crate) struct DetachedFile(CheckedFile);

impl DetachedFile {
    /// Whether another program has written into the file since the last call of [`DetachedFile::changed_revision`].
    pub(super) fn is_changed(&self) -> bool {
        let stamp = self.0.file.metadata();
        let stamp = stamp.map(|metadata| FileStamp::from_metadata(&metadata));
        stamp.is_ok_and(|stamp| !stamp.has_same_content(&self.0.stamp))
    }

    /// The revision, if another program has written into the file since it was replaced. Waits for one that has it
    /// open for writing.
    pub(super) fn changed_revision(&mut self) -> io::Result<Option<Revision>> {
        let checked = &mut self.0;
        let awaited = match checked.lease.take() {
            // No program had the file open for writing until now.
            Some(lease) if !lease.is_awaited() => return Ok(None),
            lease => lease.is_some(),
        };
        let started = Instant::now();
        loop {
            let is_open = matches!(Lease::against_writers(&checked.file), Err(NoLease::InUse));
            let stamp = FileStamp::from_metadata(&checked.file.metadata()?);
            let is_written = !stamp.has_same_content(&checked.stamp);
            let timeout = if is_written || awaited {
                LATE_WRITER_TIMEOUT
            } else {
                WRITER_TIMEOUT
            };
            if (is_open || awaited && !is_written) && started.elapsed() < timeout {
                thread::sleep(WRITER_POLL_INTERVAL);
                continue;
            }
            if !is_written && !stamp.is_younger_than(TIMESTAMP_GRACE) {
                return Ok(None);
            }
            let revision = hash_file(&mut self.rewound()?)?;
            let checked = &mut self.0;
            let is_changed = revision != checked.revision;
            (checked.stamp, checked.revision) = (stamp, revision);
            return Ok(is_changed.then_some(revision));
        }
    }

    /// The file, at its beginning.
    pub(super) fn rewound(&self) -> io::Result<File> {
        let mut file = self.0.file.try_clone()?;
        file.rewind()?;
        Ok(file)
    }

    /// The content.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        io::Read::read_to_end(&mut self.rewound()?, &mut content)?;
        Ok(content)
    }
}
