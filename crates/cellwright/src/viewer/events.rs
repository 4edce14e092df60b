//! Prints the events of a run, one JSON document per line.

use cellwright_output::Stream;
use serde_json::{Value, json};

use super::Viewer;
use super::live::StdoutError;
use crate::console::{Console, StdStream};
use crate::execution::CellEvent;
use crate::execution::feed::FeedItem;
use crate::failure::Failure;

pub(super) struct EventViewer<'s> {
    screen: &'s Console,
    /// The cell that says what comes.
    cell: Option<usize>,
    /// The beginning of a character, of each stream.
    partial: [Vec<u8>; 2],
    trouble: Option<StdoutError>,
}

impl<'s> EventViewer<'s> {
    pub(super) fn new(screen: &'s Console) -> Self {
        Self {
            screen,
            cell: None,
            partial: [Vec::new(), Vec::new()],
            trouble: None,
        }
    }

    fn print(&mut self, event: &Value) {
        if self.trouble.is_none() {
            let printed = self.screen.write(StdStream::Stdout, &format!("{event}\n"));
            self.trouble = StdoutError::from_result(printed);
        }
    }

    fn text(&mut self, stream: Stream, bytes: &[u8]) {
        let half = &mut self.partial[usize::from(stream == Stream::Stderr)];
        half.extend_from_slice(bytes);
        // What may be the beginning of a character waits for the rest of it.
        let whole = match std::str::from_utf8(half) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => half.len(),
        };
        let rest = half.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(half, rest)).into_owned();
        self.print_text("text", stream, &text);
    }

    fn print_text(&mut self, event: &str, stream: Stream, text: &str) {
        if !text.is_empty() {
            let cell = self.cell;
            let stream = stream.name();
            self.print(&json!({"event": event, "index": cell, "stream": stream, "text": text}));
        }
    }

    fn flush(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let half = std::mem::take(&mut self.partial[usize::from(stream == Stream::Stderr)]);
            let text = String::from_utf8_lossy(&half).into_owned();
            self.print_text("text", stream, &text);
        }
    }
}

/// Tells how everything ended, as the last event.
pub(crate) fn print_done(screen: &Console, answer: Value) -> Result<(), Failure> {
    let mut event = json!({"event": "done"});
    if let (Some(event), Value::Object(answer)) = (event.as_object_mut(), answer) {
        event.extend(answer);
    }
    screen.write_bytes(format!("{event}\n").as_bytes())
}

/// Tells why nothing came of it, as the last event. It is also said to people, so nobody has to be told if
/// this cannot be written.
pub(crate) fn print_failure(screen: &Console, failure: &Failure) {
    if !failure.is_silent() {
        let mut answer = failure.to_json();
        answer["status"] = json!("not_started");
        print_done(screen, answer).ok();
    }
}

impl Viewer for EventViewer<'_> {
    fn write_item(&mut self, chunk: FeedItem) {
        match chunk {
            FeedItem::CellStart => {}
            FeedItem::Text(stream, bytes) => self.text(stream, &bytes),
            FeedItem::Display(stream, text) => self.print_text("display", stream, &text),
            FeedItem::Dropped(bytes) => {
                let cell = self.cell;
                self.print(&json!({"event": "lost", "index": cell, "bytes": bytes}));
            }
            FeedItem::CellEvent(mark) => {
                self.flush();
                if let CellEvent::Begin { cell } = mark.as_ref() {
                    self.cell = Some(cell.index);
                }
                self.print(&json!(mark));
            }
        }
    }

    fn finish(&mut self) {
        self.flush();
    }

    fn error(&self) -> Option<&StdoutError> {
        self.trouble.as_ref()
    }
}
