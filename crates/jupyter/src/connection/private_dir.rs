//! Directories that other users cannot change.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The mode bit of a directory in which only the owner of a file can remove it.
pub(super) const STICKY: u32 = 0o1000;

/// Creates a directory for the user alone, if it does not exist. Returns its path without links.
pub(super) fn create(dir: &Path) -> io::Result<PathBuf> {
    if !dir.is_absolute() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not an absolute path",
        ));
    }
    DirBuilder::new().mode(0o700).recursive(true).create(dir)?;
    // A link that is changed later must not lead to another directory.
    fs::canonicalize(dir)
}

/// Returns an error if another user could replace files in the directory.
pub(super) fn check_safe(meta: &Metadata) -> io::Result<()> {
    let user = rustix::process::geteuid();
    // A root process in a user's directory has to trust that user anyway.
    if meta.uid() != user.as_raw() && meta.uid() != 0 && !user.is_root() {
        let owner = meta.uid();
        return Err(permission_denied(format!("it belongs to user {owner}")));
    }
    if is_writable_by_others(meta) {
        return Err(permission_denied(
            "other users can change its contents".to_owned(),
        ));
    }
    Ok(())
}

/// Whether other users can replace files in a directory.
pub(super) fn is_writable_by_others(meta: &Metadata) -> bool {
    meta.mode() & 0o022 != 0 && meta.mode() & STICKY == 0
}

/// Whether the directory belongs to the user, and other users cannot create files in it, except for its group.
pub(super) fn is_for_user(meta: &Metadata) -> bool {
    is_owned_by_user(meta) && meta.mode() & 0o002 == 0
}

/// Whether the user owns the file.
pub(super) fn is_owned_by_user(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

fn permission_denied(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}
