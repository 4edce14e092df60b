//! Folders that nobody else can change.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// In such a folder only the owner of a file can take it away.
pub(super) const STICKY: u32 = 0o1000;

/// Makes a folder if it is not there, for us alone, and says what its path is without links.
pub(super) fn make(folder: &Path) -> io::Result<PathBuf> {
    if !folder.is_absolute() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not an absolute path",
        ));
    }
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(folder)?;
    // Whoever could change a link on the way cannot lead us elsewhere later.
    fs::canonicalize(folder)
}

/// Refuses a folder in which somebody else could exchange what we put there.
pub(super) fn check(meta: &Metadata) -> io::Result<()> {
    let us = rustix::process::geteuid();
    // Whoever works as root in somebody's home is in their hands anyway.
    if meta.uid() != us.as_raw() && meta.uid() != 0 && !us.is_root() {
        let owner = meta.uid();
        return Err(denied(format!("it belongs to user {owner}")));
    }
    if is_exposed(meta) {
        return Err(denied("others can change what is in it".to_owned()));
    }
    Ok(())
}

/// Whether others can change what is in a folder.
pub(super) fn is_exposed(meta: &Metadata) -> bool {
    meta.mode() & 0o022 != 0 && meta.mode() & STICKY == 0
}

/// Whether something is ours.
pub(super) fn is_ours(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

fn denied(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
