//! Whose text it is: the running cell's, or that of one which has ended.

use std::collections::VecDeque;

use cellwright_output::{Data, Event, Sink, Stream};

use super::frame::Frame;
use crate::kernel::LateText;

/// How much of the last words on standard error is kept, for when it dies.
const TAIL_BYTES: usize = 16 * 1024;

/// How much late text is kept until somebody asks for it; the oldest goes first.
const LATE_BYTES: usize = 256 * 1024;

/// Where text goes.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The cell that text belongs to now.
    pub(super) owner: u64,
    /// The cell that was begun last.
    running: u64,
    late: VecDeque<LateText>,
    late_bytes: usize,
    tail: VecDeque<u8>,
}

impl Route {
    /// A cell is about to run. Until it starts, text is still that of the one before.
    pub(super) fn begin(&mut self, cell: u64) {
        self.running = cell;
    }

    /// Takes text, to `sink` if it is that of the running cell.
    pub(super) fn text(&mut self, stream: Stream, bytes: &[u8], sink: Option<&mut dyn Sink>) {
        if stream == Stream::Stderr {
            let kept = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
            self.tail.extend(kept);
            let excess = self.tail.len().saturating_sub(TAIL_BYTES);
            self.tail.drain(..excess);
        }
        match sink {
            Some(sink) if self.owner == self.running => sink.push(Event::Text { stream, bytes }),
            _ => self.keep(stream, bytes),
        }
    }

    /// A frame that nobody waits for: a thread of an earlier cell displays something.
    pub(super) fn stray(&mut self, frame: &mut Frame) {
        if frame.t == "border" {
            self.owner = frame.cell.unwrap_or(self.owner);
            return;
        }
        if frame.t != "display" {
            return;
        }
        let owner = std::mem::replace(&mut self.owner, frame.id.unwrap_or_default());
        for (mime, data) in frame.take_bundle().data {
            if let (true, Data::Text(mut text)) = (mime == "text/plain", data) {
                text.push('\n');
                self.keep(Stream::Stdout, text.as_bytes());
            }
        }
        self.owner = owner;
    }

    pub(super) fn take_late(&mut self) -> Vec<LateText> {
        self.late_bytes = 0;
        self.late.drain(..).collect()
    }

    pub(super) fn stderr_tail(&self) -> String {
        let (front, back) = self.tail.as_slices();
        let mut bytes = front.to_vec();
        bytes.extend_from_slice(back);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(LATE_BYTES)..];
        self.late_bytes += bytes.len();
        match self.late.back_mut() {
            Some(last) if last.stream == stream && last.request == self.owner => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.late.push_back(LateText {
                request: self.owner,
                stream,
                bytes: bytes.to_vec(),
            }),
        }
        while self.late_bytes > LATE_BYTES
            && let Some(first) = self.late.front_mut()
        {
            let excess = self.late_bytes - LATE_BYTES;
            if first.bytes.len() > excess {
                first.bytes.drain(..excess);
                self.late_bytes -= excess;
            } else {
                self.late_bytes -= first.bytes.len();
                self.late.pop_front();
            }
        }
    }
}
