//! Prints the events of a run, one JSON document per line.

use std::io;

use cellwright_diagnostics::failure::Failure;
use cellwright_execution::CellEvent;
use cellwright_execution::feed::FeedItem;
use cellwright_output::{Limits, Stream};
use serde::Serialize;
use serde_json::{Value, json};

use super::live::StdoutError;
use super::{Viewer, display_text, traceback_text};
use crate::console::{Console, StdStream};

pub(super) struct EventViewer<'s> {
    console: &'s Console,
    limits: Limits,
    /// The running cell.
    cell: Option<usize>,
    /// The bytes of an incomplete character of each stream.
    partial: [Vec<u8>; 2],
    error: Option<StdoutError>,
}

impl<'s> EventViewer<'s> {
    pub(super) fn new(console: &'s Console, limits: Limits) -> Self {
        Self {
            console,
            limits,
            cell: None,
            partial: [Vec::new(), Vec::new()],
            error: None,
        }
    }

    fn print(&mut self, event: &Value) {
        if self.error.is_none() {
            let printed = self.console.write(StdStream::Stdout, &format!("{event}\n"));
            self.error = StdoutError::from_result(printed);
        }
    }

    fn write_text(&mut self, stream: Stream, bytes: &[u8]) {
        let partial = &mut self.partial[usize::from(stream == Stream::Stderr)];
        partial.extend_from_slice(bytes);
        // An incomplete character at the end waits for its other bytes.
        let whole = match std::str::from_utf8(partial) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => partial.len(),
        };
        let rest = partial.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(partial, rest)).into_owned();
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
            let partial = std::mem::take(&mut self.partial[usize::from(stream == Stream::Stderr)]);
            let text = String::from_utf8_lossy(&partial).into_owned();
            self.print_text("text", stream, &text);
        }
    }
}

/// Prints the result as the last event.
pub(crate) fn print_done(console: &Console, document: &impl Serialize) -> Result<(), Failure> {
    // As a value, because the outputs of a notebook are JSON with line breaks.
    let document = serde_json::to_value(document).map_err(io::Error::from)?;
    let mut event = json!({"version": 1, "event": "done"});
    if let (Some(event), Value::Object(document)) = (event.as_object_mut(), document) {
        event.extend(document);
    }
    console.write_bytes(format!("{event}\n").as_bytes())
}

/// Prints a failure as the last event. Errors are ignored, because stderr shows the failure too.
pub(crate) fn print_failure(console: &Console, failure: &Failure) {
    if !failure.is_silent() {
        let report = json!({"status": "not_started", "error": failure.error_object()});
        print_done(console, &report).ok();
    }
}

impl Viewer for EventViewer<'_> {
    fn write_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::CellStart | FeedItem::Clear { .. } => {}
            FeedItem::Text(stream, bytes) => self.write_text(stream, &bytes),
            FeedItem::Display(display) => {
                if let Some(text) = display_text(&display, &self.limits) {
                    // A display replaces all earlier ones with its id, also those of other cells.
                    self.print(&json!({
                        "event": "display", "index": self.cell, "stream": "stdout", "text": text,
                        "display_id": display.id, "update": display.is_update,
                    }));
                }
            }
            FeedItem::Error(traceback) => {
                self.print_text("display", Stream::Stderr, &traceback_text(&traceback));
            }
            FeedItem::Dropped(bytes) => {
                let cell = self.cell;
                self.print(&json!({"event": "lost", "index": cell, "bytes": bytes}));
            }
            FeedItem::CellEvent(event) => {
                self.flush();
                if let CellEvent::Begin { cell } = event.as_ref() {
                    self.cell = Some(cell.index);
                }
                self.print(&json!(event));
            }
        }
    }

    fn finish(&mut self) {
        self.flush();
    }

    fn error(&self) -> Option<&StdoutError> {
        self.error.as_ref()
    }
}
