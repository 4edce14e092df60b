//! Opens, reads and replaces files of this user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::owner::effective_user;
use crate::regular_file;

/// Opens a regular file of this user. A new file has access for this user alone. The call neither follows a link nor waits for
/// the other end of a pipe.
pub fn open_file(options: &OpenOptions, path: &Path) -> io::Result<File> {
    Ok(open_with_size(options, path)?.0)
}

/// Like [`open_file`]; also returns the size of the file in bytes.
fn open_with_size(options: &OpenOptions, path: &Path) -> io::Result<(File, u64)> {
    let mut options = options.clone();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    options.custom_flags(flags.bits().cast_signed()).mode(0o600);
    let file = options.open(path).map_err(describe)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if meta.uid() != effective_user() {
        let reason = format!("it belongs to user {}", meta.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok((file, meta.len()))
}

/// Names the file types that the system's errors describe in other words.
fn describe(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link"),
        Some(Errno::NXIO) => io::Error::other("it is not a regular file"),
        _ => error,
    }
}

/// Reads a regular file of this user, up to `limit` bytes. A longer file is an error.
pub fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_with_size(OpenOptions::new().read(true), path)?;
    let bytes = regular_file::read_up_to(file, size, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Replaces a file, so that readers see the old or the new content. Access is for this user alone.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{number}.new", std::process::id()));
    // A process with the same number may have been killed before it renamed the file.
    fs::remove_file(&temporary).ok();
    let written = open_file(OpenOptions::new().write(true).create_new(true), &temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The file may not exist.
        fs::remove_file(&temporary).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let file = dir.path().join("file");
        replace_file(&file, b"content").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let reading = || OpenOptions::new().read(true).clone();
        let writing = || OpenOptions::new().write(true).create(true).clone();
        let both = || OpenOptions::new().read(true).write(true).clone();
        for options in [reading(), writing(), both()] {
            let error = open_file(&options, &pipe).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file");
            let error = open_file(&options, &link).unwrap_err().to_string();
            assert_eq!(error, "it is a symbolic link");
            assert!(open_file(&options, &file).is_ok());
        }
        assert!(open_file(&reading(), dir.path()).is_err());
    }

    #[test]
    fn replacing_removes_pipes_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(read_file(&link, 3).unwrap(), b"new");
        let error = read_file(&link, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
