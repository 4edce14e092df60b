//! [`ConnectionFile`]: the file from which a kernel reads its connection, and by which clients find it.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellwright_stdext::hex;
use rustix::fs::OFlags;
use serde_json::Value;

use super::owner::Owner;
use super::{Connection, ConnectionError, private_dir};
use crate::bounded_read;

/// The member of a connection file that names the process that wrote it.
const OWNER_MEMBER: &str = "cellwright";

/// A connection file, which is removed when the value is dropped.
#[derive(Debug)]
pub struct ConnectionFile {
    path: PathBuf,
}

impl ConnectionFile {
    /// Writes a connection file with a new name into Jupyter's runtime directory, which is created if needed. Only the user
    /// can read the file. It appears with all its contents.
    pub fn write(runtime: &Path, connection: &Connection) -> Result<Self, ConnectionError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ConnectionError::File { path, source }
        };
        let runtime = prepare_runtime_dir(runtime).map_err(failed(runtime))?;
        let name = random_file_name().map_err(failed(&runtime))?;
        let path = runtime.join(name);
        write_whole(&path, connection).map_err(failed(&path))?;
        Ok(Self { path })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ConnectionFile {
    fn drop(&mut self) {
        // The kernel may have rewritten or removed the file. Its name belongs to this value.
        drop(fs::remove_file(&self.path));
    }
}

/// Creates the runtime directory and makes it safe for a secret. Returns its path without links.
fn prepare_runtime_dir(runtime: &Path) -> io::Result<PathBuf> {
    let runtime = private_dir::create(&std::path::absolute(runtime)?)?;
    let mut meta = fs::metadata(&runtime)?;
    if private_dir::is_writable_by_others(&meta) {
        // Jupyter does the same.
        let mode = meta.permissions().mode() | private_dir::STICKY;
        fs::set_permissions(&runtime, Permissions::from_mode(mode))?;
        meta = fs::metadata(&runtime)?;
    }
    private_dir::check_safe(&meta)?;
    Ok(runtime)
}

/// Writes a connection file that appears with all its contents.
fn write_whole(path: &Path, connection: &Connection) -> io::Result<()> {
    let mut members = connection.members();
    members.insert(
        OWNER_MEMBER.to_owned(),
        serde_json::to_value(Owner::current())?,
    );
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".kernel-")
        .suffix(".json")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(dir)?;
    file.write_all(format!("{:#}\n", Value::Object(members)).as_bytes())?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// `kernel-<uuid>.json`, like the names that Jupyter chooses.
fn random_file_name() -> io::Result<String> {
    let mut id = [0_u8; 16];
    getrandom::fill(&mut id)?;
    // Version 4: a random UUID.
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
    Ok(format!("kernel-{}.json", parts.map(hex::encode).join("-")))
}

/// Removes connection files that other Cellwright processes have left. Returns their number. A file stays unless it is
/// certain that Cellwright wrote it and that its process has exited. A directory to which all users can write is not searched:
/// it may contain any number of entries.
pub fn sweep(runtime: &Path) -> usize {
    if !fs::metadata(runtime).is_ok_and(|meta| private_dir::is_for_user(&meta)) {
        return 0;
    }
    let Ok(entries) = fs::read_dir(runtime) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            let name = name.strip_prefix(b".").unwrap_or(name);
            name.starts_with(b"kernel-") && name.ends_with(b".json")
        })
        .filter(|entry| is_stale(&entry.path()).unwrap_or(false))
        .filter(|entry| fs::remove_file(entry.path()).is_ok())
        .count()
}

/// Whether a file is a Cellwright connection file whose process has exited.
fn is_stale(path: &Path) -> io::Result<bool> {
    let file = bounded_read::open_regular(path, OFlags::NOFOLLOW)?;
    let meta = file.metadata()?;
    if !private_dir::is_owned_by_user(&meta) {
        return Ok(false);
    }
    let bytes = bounded_read::read_contents(&file)?;
    // A quick test: there may be thousands of files, most of them from Jupyter.
    if memchr::memmem::find(&bytes, OWNER_MEMBER.as_bytes()).is_none() {
        return Ok(false);
    }
    let mut members: Value = serde_json::from_slice(&bytes)?;
    let owner = members
        .get_mut(OWNER_MEMBER)
        .map(Value::take)
        .unwrap_or_default();
    let owner: Owner = serde_json::from_value(owner)?;
    Ok(owner.has_exited(meta.modified()?))
}
