//! [`RunnerChannel`]: the connection to a runner. It merges frames from a socket and text from two pipes, which are
//! the runner's descriptors 1 and 2, into one order.
//!
//! Text does not pass through the runner, so that the output of threads, C code and child processes arrives
//! even while the interpreter is stuck. *Sync markers* define the order: before a frame the
//! runner writes a marker (a secret nonce of the kernel and a number) into both pipes and puts the number into
//! the frame. Text before the marker is delivered before the frame, text after it later.
//!
//! When both pipes are empty the runner omits the marker, which keeps short cells fast.
//! Such a frame was sent before any text that is in a pipe now. So before text is read from a pipe,
//! the socket is read, and no more text is read than was in the pipe before that.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use cellwright_output::Stream;
use cellwright_stdext::hex;
use memchr::memmem::Finder;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::frame::{Frame, FrameDecoder};
use super::trace::Trace;
use crate::process::ChildPipes;

/// Receives text as it arrives.
pub(super) type OnText<'a> = &'a mut (dyn FnMut(Stream, &[u8]) + Send);

const NONCE_SIZE: usize = 16;
const MARKER_SIZE: usize = NONCE_SIZE + 8;

/// Bytes of text that are held back until the frame before them arrives. More text is delivered out of order
/// instead: a marker without a frame is a bug or a forgery.
const STAGED_TEXT_LIMIT: usize = 1 << 20;

const READ_SIZE: usize = 64 * 1024;

/// How long to poll the socket for the end of a cell that was just sent. Longer than a short cell takes, and
/// negligible for any other.
const SPIN_TIMEOUT: Duration = Duration::from_micros(150);

/// The connection to a runner.
#[derive(Debug)]
pub(super) struct RunnerChannel {
    socket: UnixStream,
    frames: FrameDecoder,
    trace: Trace,
    pipes: [PipeReader; 2],
    buffer: Vec<u8>,
    nonce: Option<Nonce>,
    /// The marker of the last frame that was returned.
    handled_marker: u64,
    /// Until then the socket is polled without sleeping.
    spin_until: Option<Instant>,
}

#[derive(Debug)]
struct Nonce {
    bytes: [u8; NONCE_SIZE],
    finder: Finder<'static>,
}

/// Reads one pipe and removes the sync markers.
#[derive(Debug)]
struct PipeReader {
    stream: Stream,
    /// `None` after the last writer closed it.
    pipe: Option<pipe::Receiver>,
    /// The last marker that was read.
    last_marker: u64,
    /// Bytes that may be the beginning of a marker.
    partial_marker: Vec<u8>,
    /// Text after a marker whose frame has not been returned, with the number of the marker.
    staged: VecDeque<(u64, Vec<u8>)>,
    staged_bytes: usize,
}

impl RunnerChannel {
    pub(super) fn new(pipes: ChildPipes, trace: Trace) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(pipes.channel);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            frames: FrameDecoder::new(trace.clone()),
            trace,
            pipes: [
                PipeReader::new(Stream::Stdout, pipes.stdout)?,
                PipeReader::new(Stream::Stderr, pipes.stderr)?,
            ],
            buffer: vec![0; READ_SIZE],
            nonce: None,
            handled_marker: 0,
            spin_until: None,
        })
    }

    /// Sets the nonce of the sync markers.
    pub(super) fn set_nonce(&mut self, text: &str) -> Result<(), String> {
        let bytes: [u8; NONCE_SIZE] = hex::decode(text.as_bytes())
            .ok_or_else(|| format!("`{}` is not a valid nonce", text.escape_debug()))?;
        let finder = Finder::new(&bytes).into_owned();
        self.nonce = Some(Nonce { bytes, finder });
        Ok(())
    }

    /// Logs a whole frame before it is sent: in parts, a token could not be recognised.
    pub(super) fn trace_frame(&self, frame: &[u8]) {
        self.trace.sent(frame);
    }

    /// Sends bytes to the runner. Not cancel-safe: a part of a frame may have been sent.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Polls for the next frame for a short time: waking up a sleeping thread takes longer than most cells.
    pub(super) fn spin_for_reply(&mut self) {
        self.spin_until = Some(Instant::now() + SPIN_TIMEOUT);
    }

    /// Stops polling.
    pub(super) fn stop_spinning(&mut self) {
        self.spin_until = None;
    }

    /// Polls the socket until data arrives or the time is over. Returns whether data arrived.
    fn spin_read(&mut self) -> bool {
        let Some(until) = self.spin_until else {
            return false;
        };
        while Instant::now() < until {
            let space = rustix::buffer::spare_capacity(self.frames.read_buffer());
            match rustix::io::read(&self.socket, space) {
                Ok(count) if count > 0 => return true,
                Err(rustix::io::Errno::AGAIN) => std::thread::yield_now(),
                _ => break,
            }
        }
        self.spin_until = None;
        false
    }

    /// Sends as much as possible without waiting. Returns the number of bytes.
    pub(super) fn try_send(&self, bytes: &[u8]) -> usize {
        self.socket.try_write(bytes).unwrap_or(0)
    }

    /// Returns the next frame; passes the text before it to `on_text`. `None` when the runner closed
    /// the socket. Cancel-safe.
    pub(super) async fn next_frame(
        &mut self,
        on_text: OnText<'_>,
    ) -> Result<Option<Frame>, String> {
        self.release_staged(on_text);
        // A pipe, and the bytes that were in it before the socket was last read.
        let mut available: Option<(usize, usize)> = None;
        loop {
            if let Some(frame) = self.frames.next()? {
                self.read_to_marker(&frame, on_text);
                return Ok(Some(frame));
            }
            if let Some((pipe, bytes)) = available.take() {
                self.read_pipe(pipe, bytes, on_text);
            }
            if self.spin_read() {
                continue;
            }
            let [stdout, stderr] = &self.pipes;
            tokio::select! {
                ready = self.socket.readable() => ready.map_err(|error| error.to_string())?,
                bytes = stdout.readable_bytes() => available = Some((0, bytes)),
                bytes = stderr.readable_bytes() => available = Some((1, bytes)),
            }
            if !self.read_socket() {
                // The caller reads the rest of the text with `drain_text`.
                return Ok(None);
            }
        }
    }

    /// Returns the next frame if it has arrived: for use after the runner has exited.
    pub(super) fn try_next_frame(&mut self, on_text: OnText<'_>) -> Option<Frame> {
        self.release_staged(on_text);
        loop {
            if let Some(frame) = self.frames.next().ok()? {
                self.read_to_marker(&frame, on_text);
                return Some(frame);
            }
            let before = self.frames.read_buffer().len();
            if !self.read_socket() || self.frames.read_buffer().len() == before {
                return None;
            }
        }
    }

    /// Reads the available bytes of the socket. Returns whether it is still open.
    fn read_socket(&mut self) -> bool {
        let (socket, buffer) = (&self.socket, self.frames.read_buffer());
        let mut read = || rustix::io::read(socket, rustix::buffer::spare_capacity(buffer));
        // The runtime reads the socket only if it has seen it readable, and it may have seen text
        // first that was written later. So the socket is also read directly.
        let count = socket.try_io(Interest::READABLE, || Ok(read()?));
        let count = match count {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match read() {
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
                count => count.map_err(io::Error::from),
            },
            count => count,
        };
        // A socket reports a reset if the other side died with unread data.
        count.is_ok_and(|count| count > 0)
    }

    /// Passes on all text that has arrived: for use after the runner has exited.
    pub(super) fn drain_text(&mut self, on_text: OnText<'_>) {
        self.handled_marker = u64::MAX;
        self.release_staged(on_text);
        // A process that outlived the runner may still be writing: the amount is bounded.
        for pipe in 0..2 {
            let mut left = 2 * (1 << 20) / READ_SIZE;
            while left > 0 && self.read_pipe(pipe, READ_SIZE, on_text) {
                left -= 1;
            }
        }
        self.release_partial_markers(on_text);
    }

    /// Passes on bytes that could have been the beginning of a marker and were not.
    fn release_partial_markers(&mut self, on_text: OnText<'_>) {
        let handled = self.handled_marker;
        for pipe in &mut self.pipes {
            let held = std::mem::take(&mut pipe.partial_marker);
            pipe.push_text(&held, handled, on_text);
        }
    }

    /// Reads all text before the frame's marker, which was written before the frame.
    fn read_to_marker(&mut self, frame: &Frame, on_text: OnText<'_>) {
        let Some(marker) = frame.marker else {
            // Both pipes were empty when it was sent, so held bytes are not a marker. Replies to queries have no
            // defined order and carry no information about the pipes.
            if frame.frame_type != "reply" && frame.frame_type != "hello" {
                self.release_partial_markers(on_text);
            }
            return;
        };
        for pipe in 0..2 {
            while self.pipes[pipe].last_marker < marker && self.read_pipe(pipe, READ_SIZE, on_text)
            {
            }
        }
        self.handled_marker = self.handled_marker.max(marker);
    }

    /// Passes on text whose preceding frame has been returned.
    fn release_staged(&mut self, on_text: OnText<'_>) {
        for pipe in &mut self.pipes {
            while let Some((marker, _)) = pipe.staged.front()
                && (*marker <= self.handled_marker || pipe.staged_bytes > STAGED_TEXT_LIMIT)
                && let Some((_, text)) = pipe.staged.pop_front()
            {
                pipe.staged_bytes -= text.len();
                on_text(pipe.stream, &text);
            }
        }
    }

    /// Reads at most `bytes` bytes. Returns whether there were any.
    fn read_pipe(&mut self, index: usize, bytes: usize, on_text: OnText<'_>) -> bool {
        let pipe = &mut self.pipes[index];
        let size = bytes.min(self.buffer.len());
        let count = pipe.read(&mut self.buffer[..size]);
        if count == 0 {
            return false;
        }
        let chunk = &self.buffer[..count];
        if pipe.partial_marker.is_empty() {
            pipe.split_markers(chunk, self.nonce.as_ref(), self.handled_marker, on_text);
        } else {
            let mut joined = std::mem::take(&mut pipe.partial_marker);
            joined.extend_from_slice(chunk);
            pipe.split_markers(&joined, self.nonce.as_ref(), self.handled_marker, on_text);
        }
        if pipe.staged_bytes > STAGED_TEXT_LIMIT {
            self.release_staged(on_text);
        }
        true
    }
}

impl PipeReader {
    fn new(stream: Stream, pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            stream,
            pipe: Some(pipe::Receiver::from_owned_fd(pipe)?),
            last_marker: 0,
            partial_marker: Vec::new(),
            staged: VecDeque::new(),
            staged_bytes: 0,
        })
    }

    /// Waits until the pipe has text. Returns the number of bytes. Cancel-safe.
    async fn readable_bytes(&self) -> usize {
        let Some(pipe) = &self.pipe else {
            return std::future::pending().await;
        };
        loop {
            if pipe.readable().await.is_err() {
                return std::future::pending().await;
            }
            let bytes = pipe.try_io(|| match rustix::io::ioctl_fionread(pipe) {
                // One read finds the end of the pipe.
                Ok(0) if at_end(pipe) => Ok(1),
                // The readiness was stale.
                Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
                // The system does not report the number.
                Err(_) => Ok(READ_SIZE),
                Ok(bytes) => Ok(usize::try_from(bytes).unwrap_or(READ_SIZE)),
            });
            if let Ok(bytes) = bytes {
                return bytes;
            }
        }
    }

    /// Reads into the buffer. Returns 0 if the pipe is empty or closed.
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

    /// Removes sync markers from bytes that were read and passes on the text.
    fn split_markers(
        &mut self,
        mut bytes: &[u8],
        nonce: Option<&Nonce>,
        handled: u64,
        on_text: OnText<'_>,
    ) {
        let Some(nonce) = nonce else {
            self.push_text(bytes, handled, on_text);
            return;
        };
        while let Some(found) = nonce.finder.find(bytes) {
            self.push_text(&bytes[..found], handled, on_text);
            let Some(marker) = bytes.get(found..found + MARKER_SIZE) else {
                self.partial_marker = bytes[found..].to_vec();
                return;
            };
            let mut number = [0; 8];
            number.copy_from_slice(&marker[NONCE_SIZE..]);
            self.last_marker = self.last_marker.max(u64::from_le_bytes(number));
            bytes = &bytes[found + MARKER_SIZE..];
        }
        let text_len = bytes.len() - partial_marker_len(bytes, &nonce.bytes);
        self.push_text(&bytes[..text_len], handled, on_text);
        self.partial_marker = bytes[text_len..].to_vec();
    }

    fn push_text(&mut self, bytes: &[u8], handled: u64, on_text: OnText<'_>) {
        if bytes.is_empty() {
            return;
        }
        if self.last_marker <= handled && self.staged.is_empty() {
            on_text(self.stream, bytes);
        } else {
            self.staged_bytes += bytes.len();
            self.staged.push_back((self.last_marker, bytes.to_vec()));
        }
    }
}

/// Whether all writers of a pipe have closed it and all data was read.
fn at_end(pipe: &pipe::Receiver) -> bool {
    let mut watched = [PollFd::new(pipe, PollFlags::IN)];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let polled = poll(&mut watched, Some(&now)).is_ok();
    let events = watched[0].revents();
    polled && events.contains(PollFlags::HUP) && !events.contains(PollFlags::IN)
}

/// How many bytes at the end may be the beginning of a marker.
fn partial_marker_len(bytes: &[u8], nonce: &[u8; NONCE_SIZE]) -> usize {
    let longest = bytes.len().min(NONCE_SIZE - 1);
    (1..=longest)
        .rev()
        .find(|&count| bytes.ends_with(&nonce[..count]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
