//! [`ConnectionFile`]: what a kernel that we start reads, and others find it by.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::Value;

use super::owner::Owner;
use super::{Connection, ConnectionError, folder, hex};
use crate::small;

/// The member of a connection file that says whose it is.
const OWNER: &str = "cellwright";

/// A connection file that is there as long as this is.
#[derive(Debug)]
pub struct ConnectionFile {
    path: PathBuf,
}

impl ConnectionFile {
    /// Writes a connection file with a new name into Jupyter's runtime folder, which is made if it is
    /// not there. Only we can read it; whoever sees it sees it whole.
    pub fn write(runtime: &Path, connection: &Connection) -> Result<Self, ConnectionError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ConnectionError::File { path, source }
        };
        let runtime = prepare(runtime).map_err(failed(runtime))?;
        let name = name().map_err(failed(&runtime))?;
        let path = runtime.join(name);
        put(&path, connection).map_err(failed(&path))?;
        Ok(Self { path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ConnectionFile {
    fn drop(&mut self) {
        // Kernels write it anew and take it away as they like; the name is what is ours.
        drop(fs::remove_file(&self.path));
    }
}

/// The runtime folder, fit for a secret.
fn prepare(runtime: &Path) -> io::Result<PathBuf> {
    let runtime = folder::make(&std::path::absolute(runtime)?)?;
    let mut meta = fs::metadata(&runtime)?;
    if folder::is_exposed(&meta) {
        // Jupyter does the same with every runtime folder.
        let mode = meta.permissions().mode() | folder::STICKY;
        fs::set_permissions(&runtime, Permissions::from_mode(mode))?;
        meta = fs::metadata(&runtime)?;
    }
    folder::check(&meta)?;
    Ok(runtime)
}

fn put(path: &Path, connection: &Connection) -> io::Result<()> {
    let mut members = connection.members();
    members.insert(OWNER.to_owned(), serde_json::to_value(Owner::me())?);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".kernel-")
        .suffix(".json")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(format!("{:#}\n", Value::Object(members)).as_bytes())?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// `kernel-<uuid>.json`, as Jupyter names them.
fn name() -> io::Result<String> {
    let mut id = [0_u8; 16];
    getrandom::fill(&mut id)?;
    // Version 4, as those have that are nothing but random.
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
    Ok(format!("kernel-{}.json", parts.map(hex).join("-")))
}

/// Takes away connection files that processes like ours left behind, and says how many. What is not
/// known to be such a file, and its process to be gone, stays.
pub fn sweep(runtime: &Path) -> usize {
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
        .filter(|entry| is_left(&entry.path()).unwrap_or(false))
        .filter(|entry| fs::remove_file(entry.path()).is_ok())
        .count()
}

/// Whether a file is a connection file of ours whose process is gone.
fn is_left(path: &Path) -> io::Result<bool> {
    let file = small::open(path, OFlags::NOFOLLOW)?;
    let meta = file.metadata()?;
    if !folder::is_ours(&meta) {
        return Ok(false);
    }
    let bytes = small::contents(&file)?;
    // There may be thousands, most of them not ours.
    if memchr::memmem::find(&bytes, OWNER.as_bytes()).is_none() {
        return Ok(false);
    }
    let mut members: Value = serde_json::from_slice(&bytes)?;
    let owner = members.get_mut(OWNER).map(Value::take).unwrap_or_default();
    let owner: Owner = serde_json::from_value(owner)?;
    Ok(owner.is_gone(meta.modified()?))
}
