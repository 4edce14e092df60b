//! Duplicates this process, so that the watcher and its supervisor share the memory of one program start.

use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::Pid;

/// The side of a fork that a process is on.
#[derive(Debug)]
pub(super) enum Fork {
    /// The process that called [`fork`], and the id of the new one.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Duplicates this process. An error if it has more than one thread: locks of the others would stay locked in the new
/// process.
#[expect(unsafe_code, reason = "no safe library offers fork")]
pub(super) fn fork() -> io::Result<Fork> {
    // A directory for each thread; the other two links are the directory's own.
    if std::fs::metadata("/proc/self/task")?.nlink() != 3 {
        return Err(io::Error::from(rustix::io::Errno::DEADLK));
    }
    // SAFETY: this is the only thread, so that no other one can be inside a critical section, and the new process has a
    // complete copy of this one.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => {
            let child = Pid::from_raw(child.as_raw()).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Fork::Parent(child))
        }
        nix::unistd::ForkResult::Child => Ok(Fork::Child),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_does_not_fork() {
        std::thread::scope(|scope| {
            let error = scope.spawn(|| fork().unwrap_err()).join().unwrap();
            let expected = rustix::io::Errno::DEADLK.raw_os_error();
            assert_eq!(error.raw_os_error(), Some(expected));
        });
    }
}
