//! The three lines to a runner, in one order: frames from a socket, text from the two pipes that are
//! its descriptors 1 and 2.
//!
//! Text does not pass through the runner, so that threads, C code and child processes are heard too,
//! even while the interpreter is stuck. What came first is known from *borders*: before a frame the
//! runner writes a mark (a secret of the kernel and a number) into both pipes and puts the number into
//! the frame. Text before a border is told before its frame, text behind it after.
//!
//! When both pipes are empty the runner leaves the border out, which is what makes quick cells quick.
//! Such a frame was sent before any text that is in a pipe now. So before text is taken out of a pipe,
//! the socket is read, and no more text is taken than was there before that.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use cellwright_output::Stream;
use memchr::memmem::Finder;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::frame::{Frame, Frames};
use super::trace::Trace;
use crate::process::Ends;

/// Takes text as it comes.
pub(super) type Hear<'a> = &'a mut (dyn FnMut(Stream, &[u8]) + Send);

const NONCE_BYTES: usize = 16;
const BORDER_BYTES: usize = NONCE_BYTES + 8;

/// Text kept back while the frame before it is awaited. More than this is told out of order rather
/// than held: a border without a frame is a mistake or a trick.
const MAX_STAGED: usize = 1 << 20;

const READ_BYTES: usize = 64 * 1024;

/// How long to wait awake for the end of a cell that was just sent. More than a quick cell takes, and
/// too little to matter for any other.
const EAGERNESS: Duration = Duration::from_micros(150);

/// The three lines.
#[derive(Debug)]
pub(super) struct Wire {
    channel: UnixStream,
    frames: Frames,
    trace: Trace,
    lanes: [Lane; 2],
    buffer: Vec<u8>,
    nonce: Option<Nonce>,
    /// The last border whose frame was handed out.
    handled: u64,
    /// Until then the socket is asked again and again instead of sleeping.
    eager_until: Option<Instant>,
}

#[derive(Debug)]
struct Nonce {
    bytes: [u8; NONCE_BYTES],
    finder: Finder<'static>,
}

/// One pipe.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    /// `None` once nobody can write to it any more.
    pipe: Option<pipe::Receiver>,
    /// The last border seen.
    border: u64,
    /// What may be the beginning of a border.
    held: Vec<u8>,
    /// Text behind a border whose frame has not been handed out.
    staged: VecDeque<(u64, Vec<u8>)>,
    staged_bytes: usize,
}

impl Wire {
    pub(super) fn new(ends: Ends, trace: Trace) -> io::Result<Self> {
        let channel = std::os::unix::net::UnixStream::from(ends.channel);
        channel.set_nonblocking(true)?;
        Ok(Self {
            channel: UnixStream::from_std(channel)?,
            frames: Frames::new(trace.clone()),
            trace,
            lanes: [
                Lane::new(Stream::Stdout, ends.stdout)?,
                Lane::new(Stream::Stderr, ends.stderr)?,
            ],
            buffer: vec![0; READ_BYTES],
            nonce: None,
            handled: 0,
            eager_until: None,
        })
    }

    /// From now on borders are marked with this.
    pub(super) fn set_nonce(&mut self, hex: &str) -> Result<(), String> {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .filter_map(|index| u8::from_str_radix(hex.get(2 * index..2 * index + 2)?, 16).ok())
            .collect();
        let bytes: [u8; NONCE_BYTES] = bytes
            .try_into()
            .map_err(|_| format!("{hex:?} is no nonce"))?;
        let finder = Finder::new(&bytes).into_owned();
        self.nonce = Some(Nonce { bytes, finder });
        Ok(())
    }

    /// Sends bytes to the runner. Not cancel-safe: half a frame may have gone.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.trace.said(bytes);
        self.channel.write_all(bytes).await
    }

    /// An answer is expected soon: to be woken up takes longer than most cells do.
    pub(super) fn expect_soon(&mut self) {
        self.eager_until = Some(Instant::now() + EAGERNESS);
    }

    /// Nothing is expected any more.
    pub(super) fn expect_nothing(&mut self) {
        self.eager_until = None;
    }

    /// Asks the socket until something comes or the time is over; whether something came.
    fn ask_eagerly(&mut self) -> bool {
        let Some(until) = self.eager_until else {
            return false;
        };
        while Instant::now() < until {
            let space = rustix::buffer::spare_capacity(self.frames.space());
            match rustix::io::read(&self.channel, space) {
                Ok(count) if count > 0 => return true,
                Err(rustix::io::Errno::AGAIN) => std::thread::yield_now(),
                _ => break,
            }
        }
        self.eager_until = None;
        false
    }

    /// Sends what can be sent at once; says how much that is.
    pub(super) fn try_send(&self, bytes: &[u8]) -> usize {
        let sent = self.channel.try_write(bytes).unwrap_or(0);
        self.trace.said(&bytes[..sent]);
        sent
    }

    /// The next frame; text that comes before it is handed to `hear`. `None` when the runner closed
    /// the channel. Cancel-safe.
    pub(super) async fn next(&mut self, hear: Hear<'_>) -> Result<Option<Frame>, String> {
        self.release(hear);
        // Text known to be in a pipe since before the socket was last read.
        let mut known: Option<(usize, usize)> = None;
        loop {
            if let Some(frame) = self.frames.next()? {
                self.arrive_at(&frame, hear);
                return Ok(Some(frame));
            }
            if let Some((lane, bytes)) = known.take() {
                self.read_lane(lane, bytes, hear);
            }
            if self.ask_eagerly() {
                continue;
            }
            let [stdout, stderr] = &self.lanes;
            tokio::select! {
                ready = self.channel.readable() => ready.map_err(|error| error.to_string())?,
                there = stdout.filled() => known = Some((0, there)),
                there = stderr.filled() => known = Some((1, there)),
            }
            if !self.read_channel() {
                // Text that was there goes with the rest.
                return Ok(None);
            }
        }
    }

    /// The next frame if it is there already: for the time after the runner's end.
    pub(super) fn already(&mut self, hear: Hear<'_>) -> Option<Frame> {
        self.release(hear);
        loop {
            if let Some(frame) = self.frames.next().ok()? {
                self.arrive_at(&frame, hear);
                return Some(frame);
            }
            let before = self.frames.space().len();
            if !self.read_channel() || self.frames.space().len() == before {
                return None;
            }
        }
    }

    /// Reads what the socket has now; whether it is still open.
    fn read_channel(&mut self) -> bool {
        let (channel, space) = (&self.channel, self.frames.space());
        let mut read = || rustix::io::read(channel, rustix::buffer::spare_capacity(space));
        // The runtime asks the socket only if it has heard that it is readable; and it may have heard
        // of text first that was written later. So after it the socket is asked directly.
        let heard = channel.try_io(Interest::READABLE, || Ok(read()?));
        let count = match heard {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match read() {
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
                count => count.map_err(io::Error::from),
            },
            count => count,
        };
        // A reset is how a socket says that the other side died with unread data.
        count.is_ok_and(|count| count > 0)
    }

    /// The text that is there already: for the time after the runner's end.
    pub(super) fn rest(&mut self, hear: Hear<'_>) {
        self.handled = u64::MAX;
        self.release(hear);
        // Somebody who outlived the runner may still be writing: what is there, not what will be.
        for lane in 0..2 {
            let mut left = 2 * (1 << 20) / READ_BYTES;
            while left > 0 && self.read_lane(lane, READ_BYTES, hear) {
                left -= 1;
            }
        }
        self.let_go(hear);
    }

    /// Tells what could have been the beginning of a border and was not.
    fn let_go(&mut self, hear: Hear<'_>) {
        let handled = self.handled;
        for lane in &mut self.lanes {
            let held = std::mem::take(&mut lane.held);
            lane.text(&held, handled, hear);
        }
    }

    /// Reads everything before the frame's border. It was written before the frame, so it is there.
    fn arrive_at(&mut self, frame: &Frame, hear: Hear<'_>) {
        let Some(border) = frame.n else {
            // Both pipes were empty when it was sent: what is held is no border that goes on. Answers
            // to questions stand in no order and say nothing about the pipes.
            if frame.t != "reply" && frame.t != "hello" {
                self.let_go(hear);
            }
            return;
        };
        for lane in 0..2 {
            while self.lanes[lane].border < border && self.read_lane(lane, READ_BYTES, hear) {}
        }
        self.handled = self.handled.max(border);
    }

    /// Tells what waited for a frame that has been handed out.
    fn release(&mut self, hear: Hear<'_>) {
        for lane in &mut self.lanes {
            while let Some((border, _)) = lane.staged.front()
                && (*border <= self.handled || lane.staged_bytes > MAX_STAGED)
                && let Some((_, text)) = lane.staged.pop_front()
            {
                lane.staged_bytes -= text.len();
                hear(lane.stream, &text);
            }
        }
    }

    /// Reads at most so many bytes; whether something came.
    fn read_lane(&mut self, index: usize, bytes: usize, hear: Hear<'_>) -> bool {
        let lane = &mut self.lanes[index];
        let room = bytes.min(self.buffer.len());
        let count = lane.read(&mut self.buffer[..room]);
        if count == 0 {
            return false;
        }
        let chunk = &self.buffer[..count];
        if lane.held.is_empty() {
            lane.take(chunk, self.nonce.as_ref(), self.handled, hear);
        } else {
            let mut joined = std::mem::take(&mut lane.held);
            joined.extend_from_slice(chunk);
            lane.take(&joined, self.nonce.as_ref(), self.handled, hear);
        }
        if lane.staged_bytes > MAX_STAGED {
            self.release(hear);
        }
        true
    }
}

impl Lane {
    fn new(stream: Stream, pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            stream,
            pipe: Some(pipe::Receiver::from_owned_fd(pipe)?),
            border: 0,
            held: Vec::new(),
            staged: VecDeque::new(),
            staged_bytes: 0,
        })
    }

    /// Waits until there is text, and says how much. Cancel-safe.
    async fn filled(&self) -> usize {
        let Some(pipe) = &self.pipe else {
            return std::future::pending().await;
        };
        loop {
            if pipe.readable().await.is_err() {
                return std::future::pending().await;
            }
            let there = pipe.try_io(|| match rustix::io::ioctl_fionread(pipe) {
                // One read will see the end.
                Ok(0) if at_end(pipe) => Ok(1),
                // Readable no longer: the news was old.
                Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
                // Should the system not tell: some.
                Err(_) => Ok(READ_BYTES),
                Ok(there) => Ok(usize::try_from(there).unwrap_or(READ_BYTES)),
            });
            if let Ok(there) = there {
                return there;
            }
        }
    }

    /// Reads what fits; 0 when there is nothing or never will be.
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let Some(pipe) = &self.pipe else {
            return 0;
        };
        match rustix::io::read(pipe, buffer) {
            Ok(count) if count > 0 => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            _ => {
                self.pipe = None;
                0
            }
        }
    }

    /// Takes borders out of what was read and passes the text on.
    fn take(&mut self, mut bytes: &[u8], nonce: Option<&Nonce>, handled: u64, hear: Hear<'_>) {
        let Some(nonce) = nonce else {
            self.text(bytes, handled, hear);
            return;
        };
        while let Some(found) = nonce.finder.find(bytes) {
            self.text(&bytes[..found], handled, hear);
            let Some(mark) = bytes.get(found..found + BORDER_BYTES) else {
                self.held = bytes[found..].to_vec();
                return;
            };
            let mut number = [0; 8];
            number.copy_from_slice(&mark[NONCE_BYTES..]);
            self.border = self.border.max(u64::from_le_bytes(number));
            bytes = &bytes[found + BORDER_BYTES..];
        }
        let begun = begun_border(bytes, &nonce.bytes);
        self.text(&bytes[..bytes.len() - begun], handled, hear);
        self.held = bytes[bytes.len() - begun..].to_vec();
    }

    fn text(&mut self, bytes: &[u8], handled: u64, hear: Hear<'_>) {
        if bytes.is_empty() {
            return;
        }
        if self.border <= handled && self.staged.is_empty() {
            hear(self.stream, bytes);
        } else {
            self.staged_bytes += bytes.len();
            self.staged.push_back((self.border, bytes.to_vec()));
        }
    }
}

/// Whether nobody can write to a pipe any more and everything was read.
fn at_end(pipe: &pipe::Receiver) -> bool {
    let mut watched = [PollFd::new(pipe, PollFlags::IN)];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let looked = poll(&mut watched, Some(&now)).is_ok();
    let seen = watched[0].revents();
    looked && seen.contains(PollFlags::HUP) && !seen.contains(PollFlags::IN)
}

/// How many bytes at the end may be the beginning of a border.
fn begun_border(bytes: &[u8], nonce: &[u8; NONCE_BYTES]) -> usize {
    let longest = bytes.len().min(NONCE_BYTES - 1);
    (1..=longest)
        .rev()
        .find(|&count| bytes.ends_with(&nonce[..count]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
