//! Reads files that should be small, up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Size in bytes of the largest file that is read.
pub(crate) const SIZE_LIMIT: u64 = 1 << 20;

/// Reads a whole file. Returns an error if it is not a regular file or larger than the limit.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_contents(&open_regular(path, OFlags::empty())?)
}

/// Opens a regular file for reading, with additional flags.
pub(crate) fn open_regular(path: &Path, extra: OFlags) -> io::Result<File> {
    // NONBLOCK: to open a pipe would otherwise wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | extra;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Reads the contents of a file, without a UTF-8 byte order mark.
pub(crate) fn read_contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is longer than 1 MiB",
        ));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    Ok(bytes)
}
