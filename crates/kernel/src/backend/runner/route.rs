//! Whose text it is: the running cell's, or that of one which has ended.

use cellwright_output::{Data, Event, Sink, Stream};

use super::frame::Frame;
use crate::backend::late::{Late, Tail};
use crate::kernel::LateText;

/// Where text goes.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The cell that text belongs to now.
    pub(super) owner: u64,
    /// The cell that was begun last.
    running: u64,
    late: Late,
    tail: Tail,
}

impl Route {
    /// A cell is about to run. Until it starts, text is still that of the one before.
    pub(super) fn begin(&mut self, cell: u64) {
        self.running = cell;
    }

    /// Takes text, to `sink` if it is that of the running cell.
    pub(super) fn text(&mut self, stream: Stream, bytes: &[u8], sink: Option<&mut dyn Sink>) {
        if stream == Stream::Stderr {
            self.tail.hear(bytes);
        }
        match sink {
            Some(sink) if self.owner == self.running => sink.push(Event::Text { stream, bytes }),
            _ => self.late.keep(self.owner, stream, bytes),
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
        let owner = frame.id.unwrap_or_default();
        for (mime, data) in frame.take_bundle().data {
            if let (true, Data::Text(mut text)) = (mime == "text/plain", data) {
                text.push('\n');
                self.late.keep(owner, Stream::Stdout, text.as_bytes());
            }
        }
    }

    pub(super) fn take_late(&mut self) -> Vec<LateText> {
        self.late.take()
    }

    pub(super) fn stderr_tail(&self) -> String {
        self.tail.text()
    }
}
