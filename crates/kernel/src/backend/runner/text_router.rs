//! Assigns text to the cell that wrote it: the running cell, or one that has ended.

use cellwright_output::{Data, Event, Sink, Stream};

use super::frame::Frame;
use crate::backend::late_output::{LateOutput, Tail};
use crate::kernel::LateText;

/// Sends text to the sink of the running cell, or keeps it as late output.
#[derive(Debug, Default)]
pub(super) struct TextRouter {
    /// The cell that the text read now belongs to.
    pub(super) text_cell: u64,
    /// The cell that was requested last.
    requested_cell: u64,
    late: LateOutput,
    tail: Tail,
}

impl TextRouter {
    /// Registers the next cell. Until it starts, text still belongs to the previous one.
    pub(super) fn begin_cell(&mut self, cell: u64) {
        self.requested_cell = cell;
    }

    /// Routes text: to `sink` if the running cell wrote it, else to the late output.
    pub(super) fn route_text(&mut self, stream: Stream, bytes: &[u8], sink: Option<&mut dyn Sink>) {
        if stream == Stream::Stderr {
            self.tail.push(bytes);
        }
        match sink {
            Some(sink) if self.text_cell == self.requested_cell => {
                sink.push(Event::Text { stream, bytes });
            }
            _ => self.late.push(self.text_cell, stream, bytes),
        }
    }

    /// Handles a frame that does not belong to the running cell: a thread of an earlier cell displays something.
    pub(super) fn handle_unrelated(&mut self, frame: &mut Frame) {
        if frame.frame_type == "sync" {
            self.text_cell = frame.cell.unwrap_or(self.text_cell);
            return;
        }
        if frame.frame_type != "display" {
            return;
        }
        let cell = frame.id.unwrap_or_default();
        for (mime, data) in frame.take_bundle().data {
            if let (true, Data::Text(mut text)) = (mime == "text/plain", data) {
                text.push('\n');
                self.late.push(cell, Stream::Stdout, text.as_bytes());
            }
        }
    }

    pub(super) fn take_late_text(&mut self) -> Vec<LateText> {
        self.late.take()
    }

    pub(super) fn stderr_tail(&self) -> String {
        self.tail.text()
    }
}
