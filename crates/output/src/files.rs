//! File access that differs between operating systems: private permissions, and reads and writes at an
//! offset.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory that only its owner can enter, and its missing parents.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file that only its owner can read. Fails if the path exists, also as a link.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    open_private(&mut options, path)
}

/// Reads bytes at an offset, without moving the file's position on Unix.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(not(unix))]
    {
        use io::{Read, Seek};
        let mut file = file;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read(buffer)
    }
}

/// Writes bytes at an offset. Returns how many were written.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
    #[cfg(not(unix))]
    {
        use io::{Seek, Write};
        let mut file = file;
        file.seek(io::SeekFrom::Start(offset))?;
        file.write(bytes)
    }
}

/// Opens a file. If this creates the file, only its owner can read it.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
