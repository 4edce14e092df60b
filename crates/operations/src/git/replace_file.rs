//! Replaces a file in one step.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellwright_stdext::regular_file::{self, Links};

/// Mode of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Replaces a file atomically, or creates it and its directory. With [`Links::Refuse`], a symbolic link is replaced by the
/// file, and its target stays unchanged.
pub(super) fn replace_file(path: &Path, content: &[u8], links: Links) -> io::Result<()> {
    let path: PathBuf = match links {
        Links::Follow => follow(path)?,
        Links::Refuse => path.to_owned(),
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let existing = regular_file::open(&path, Links::Refuse).and_then(|file| file.metadata());
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(NEW_FILE_MODE));
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(content)?;
    if let Ok(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// The path of the file that a path leads to, also if that file does not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => {
                let dir = path.parent().unwrap_or(Path::new("."));
                path = dir.join(target);
            }
            // It is not a link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("there are too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let read = |name: &str| fs::read_to_string(path(name)).unwrap();
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("target"), "old").unwrap();
        fs::set_permissions(path("target"), Permissions::from_mode(0o600)).unwrap();
        symlink("../target", path("sub/link")).unwrap();
        symlink("missing", path("broken")).unwrap();
        replace_file(&path("sub/link"), b"new", Links::Follow).unwrap();
        assert_eq!(read("target"), "new");
        assert_eq!(
            fs::metadata(path("target")).unwrap().permissions().mode() & 0o777,
            0o600
        );
        replace_file(&path("broken"), b"made", Links::Follow).unwrap();
        assert_eq!(read("missing"), "made");
        for name in ["sub/link", "broken"] {
            replace_file(&path(name), b"own", Links::Refuse).unwrap();
            assert!(!fs::symlink_metadata(path(name)).unwrap().is_symlink());
            assert_eq!(read(name), "own");
        }
        assert_eq!(read("target"), "new");
        assert_eq!(read("missing"), "made");
        replace_file(&path("a/b/new"), b"", Links::Refuse).unwrap();
        symlink("loop", path("loop")).unwrap();
        replace_file(&path("loop"), b"", Links::Follow).unwrap_err();
    }
}
