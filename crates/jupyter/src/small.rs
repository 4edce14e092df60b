//! Files that are small if they are what they should be.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// How much of a file is looked at.
pub(crate) const LONGEST: u64 = 1 << 20;

/// The whole of a file. Nothing but a regular file is read, and none that is too long.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    contents(&open(path, OFlags::empty())?)
}

/// Opens a file for reading, if it is a regular one.
pub(crate) fn open(path: &Path, more: OFlags) -> io::Result<File> {
    // Without waiting: a pipe without a writer would make us wait for one.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | more;
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

/// What is in a file, without the mark that some editors put in front.
pub(crate) fn contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
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
