//! Busy polling: waits for data that arrives within microseconds. A blocked thread takes longer to wake
//! up.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Polls a descriptor without blocking until it is readable or `limit` has passed. Returns whether it is
/// readable.
pub fn spin_until_readable(descriptor: impl AsFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    let no_wait = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut polled, Some(&no_wait)) {
            Ok(0) if Instant::now() < deadline => std::thread::yield_now(),
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}
