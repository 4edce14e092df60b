//! File leases of Linux: a program that opens a file waits as long as another process holds a lease on it.
//!
//! A lease makes two things exact that can otherwise only be guessed from time stamps: that no program has a file
//! open for writing, and that no program has read a file yet. The owner of a file may take leases on it; network
//! file systems and other operating systems have none.

use std::fs::File;

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLease {
    /// Another program has the file open.
    InUse,
    /// The file system, the operating system or the owner of the file does not permit leases.
    Unsupported,
}

/// A lease, released on drop or by the end of the process.
#[derive(Debug)]
pub(super) struct Lease {
    #[cfg(target_os = "linux")]
    file: File,
    #[cfg(target_os = "linux")]
    kind: i32,
}

#[cfg(target_os = "linux")]
impl Lease {
    /// Takes a lease on a file that is open for reading. No program has it open for writing; one that opens it
    /// for writing, or truncates it, waits.
    pub(super) fn against_writers(file: &File) -> Result<Self, NoLease> {
        Self::take(file, libc::F_RDLCK)
    }

    /// Takes a lease on a file. No other program has it open; one that opens it waits.
    pub(super) fn against_all(file: &File) -> Result<Self, NoLease> {
        Self::take(file, libc::F_WRLCK)
    }

    fn take(file: &File, kind: i32) -> Result<Self, NoLease> {
        // The value of Linux for all architectures; the crate does not define it for all.
        const F_SETSIG: i32 = 10;
        let file = file.try_clone().map_err(|_| NoLease::Unsupported)?;
        // The system tells the holder that a program waits. The default signal, SIGIO, would end the process;
        // this one is ignored by default.
        fcntl(&file, F_SETSIG, libc::SIGURG).ok_or(NoLease::Unsupported)?;
        match fcntl(&file, libc::F_SETLEASE, kind) {
            Some(_) => Ok(Self { file, kind }),
            None if std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) => {
                Err(NoLease::InUse)
            }
            None => Err(NoLease::Unsupported),
        }
    }

    /// Whether a program waits until the lease is released.
    pub(super) fn is_awaited(&self) -> bool {
        fcntl(&self.file, libc::F_GETLEASE, 0) != Some(self.kind)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease {
    fn drop(&mut self) {
        fcntl(&self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// Calls `fcntl` with a command that takes an integer. Returns `None` on failure.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe library offers leases")]
fn fcntl(file: &File, command: i32, argument: i32) -> Option<i32> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the commands of this module take an integer
    // or nothing, so that no memory is read or written.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    (result >= 0).then_some(result)
}

#[cfg(not(target_os = "linux"))]
impl Lease {
    /// There are no leases.
    pub(super) fn against_writers(_: &File) -> Result<Self, NoLease> {
        Err(NoLease::Unsupported)
    }

    /// There are no leases.
    pub(super) fn against_all(_: &File) -> Result<Self, NoLease> {
        Err(NoLease::Unsupported)
    }

    /// Whether a program waits until the lease is released.
    pub(super) fn is_awaited(&self) -> bool {
        false
    }
}
