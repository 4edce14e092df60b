//! Waiting without going to sleep, for what comes in a moment: to be woken up takes longer.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until something can be read, at most so long; says whether there is.
pub fn readable_soon(descriptor: impl AsFd, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        let mut asked = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut asked, Some(&at_once)) {
            Ok(0) if Instant::now() < until => std::thread::yield_now(),
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}
