//! Opens files that other people may have replaced: a pipe does not block, a device is not read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// A link is followed.
    Follow,
    /// A link is an error.
    Refuse,
}

/// Opens a regular file for reading.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    Ok(open_with_size(path, links)?.0)
}

/// Like [`open`]; also returns the size of the file in bytes.
fn open_with_size(path: &Path, links: Links) -> io::Result<(File, u64)> {
    // NONBLOCK: to open a pipe would otherwise wait for its writer.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // FreeBSD returns EMLINK.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::MLINK) if links == Links::Refuse => {
            return Err(io::Error::other("it is a symbolic link"));
        }
        // A socket.
        Err(rustix::io::Errno::NXIO) => return Err(io::Error::other("it is not a regular file")),
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((file, metadata.len()))
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, links: Links, limit: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_with_size(path, links)?;
    let bytes = read_up_to(file, size, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        let message = format!("it is larger than {} MiB", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads at most `limit` bytes of a file that has `size` bytes now. Without the size, the standard library would read small
/// files in many parts, because it does not know how much memory they need.
pub(crate) fn read_up_to(file: File, size: u64, limit: u64) -> io::Result<Vec<u8>> {
    let capacity = usize::try_from(size.min(limit)).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(capacity)?;
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink("file", path("link")).unwrap();
        symlink("missing", path("broken")).unwrap();
        symlink("/dev/zero", path("device")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let read = |name: &str, links| {
            let read = read(&path(name), links, 1 << 20);
            read.map(|bytes| String::from_utf8(bytes).unwrap())
                .map_err(|error| error.to_string())
        };
        for links in [Links::Follow, Links::Refuse] {
            assert_eq!(read("file", links).unwrap(), "text");
            assert_eq!(read("pipe", links).unwrap_err(), "it is not a regular file");
            assert_eq!(
                read("socket", links).unwrap_err(),
                "it is not a regular file"
            );
            assert_eq!(read(".", links).unwrap_err(), "it is a directory");
        }
        assert_eq!(read("link", Links::Follow).unwrap(), "text");
        assert_eq!(
            read("device", Links::Follow).unwrap_err(),
            "it is not a regular file"
        );
        for name in ["link", "broken", "device"] {
            assert_eq!(
                read(name, Links::Refuse).unwrap_err(),
                "it is a symbolic link"
            );
        }
        fs::write(path("large"), vec![0; (1 << 20) + 1]).unwrap();
        assert_eq!(
            read("large", Links::Follow).unwrap_err(),
            "it is larger than 1 MiB"
        );
    }
}
