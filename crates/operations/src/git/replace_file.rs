//! Replaces a file in one step.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file atomically, or creates it and its directory. Follows symbolic links.
pub(super) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let Ok(path) = path.canonicalize() else {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        return fs::write(path, content);
    };
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    let permissions = fs::metadata(&path)?.permissions();
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
