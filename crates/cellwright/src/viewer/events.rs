//! Prints the events of an execution, one JSON document per line.

use std::io;

use cellwright_diagnostics::failure::Failure;
use cellwright_execution::feed::{DisplayItem, FeedItem};
use cellwright_execution::{
    CellEvent, ErrorReport, ExecutionStatus, ReportDetail, ReportDocument, plain_text,
};
use cellwright_operations::check::CheckReport;
use cellwright_output::{Limits, LiveTarget, LiveText, Stream};
use schemars::JsonSchema;
use serde::Serialize;

use super::event_documents::{
    Begin, Checked, Continues, Display, DisplayedImage, Done, End, Failed, KernelReady, Lost,
    Raised, Stamped, Text,
};
use super::live::StdoutError;
use super::{Viewer, display_text};
use crate::console::Console;
use crate::document::{StillRunning, Versioned};

pub(super) struct EventViewer<'s> {
    console: &'s Console,
    limits: Limits,
    detail: ReportDetail,
    /// The running cell.
    index: Option<usize>,
    /// The text of stdout and stderr.
    texts: [LiveText; 2],
    error: Option<StdoutError>,
}

impl<'s> EventViewer<'s> {
    pub(super) fn new(console: &'s Console, limits: Limits, detail: ReportDetail) -> Self {
        Self {
            console,
            limits,
            detail,
            index: None,
            texts: [(); 2].map(|()| LiveText::new(LiveTarget::PlainTerminal)),
            error: None,
        }
    }

    fn print(&mut self, event: &(impl Serialize + JsonSchema)) {
        if self.error.is_none() {
            let printed = event_line(event).and_then(|line| self.console.write_json_line(&line));
            self.error = StdoutError::from_result(printed);
        }
    }

    /// Prints the text of a stream; `None` prints what was held back.
    fn write_text(&mut self, stream: Stream, bytes: Option<&[u8]>) {
        let live = &mut self.texts[usize::from(stream == Stream::Stderr)];
        let mut text = String::new();
        match bytes {
            Some(bytes) => live.push(bytes, &mut text),
            None => live.finish(&mut text),
        }
        let text = without_erasing(&text);
        if !text.is_empty() {
            self.print(&Text {
                event: "text",
                index: self.index,
                stream: stream.name(),
                text,
            });
        }
    }

    fn flush(&mut self) {
        self.write_text(Stream::Stdout, None);
        self.write_text(Stream::Stderr, None);
    }

    fn write_display(&mut self, display: &DisplayItem) {
        let Some(text) = display_text(display, &self.limits) else {
            return;
        };
        let images = display.figures.iter().map(|figure| DisplayedImage {
            mime: figure.mime.clone(),
            bytes: figure.bytes,
            width: figure.width,
            height: figure.height,
            artifact: figure.artifact.map(|id| id.to_string()),
        });
        self.print(&Display {
            event: "display",
            index: self.index,
            stream: "stdout",
            text: plain_text(&text).into_owned(),
            images: images.collect(),
            display_id: display.id.clone(),
            update: display.is_update,
        });
    }

    fn write_event(&mut self, event: &CellEvent) {
        match event {
            CellEvent::KernelReady {
                kernel,
                kernel_ready_ms,
            } => self.print(&KernelReady {
                event: "kernel_ready",
                kernel,
                kernel_ready_ms: *kernel_ready_ms,
            }),
            CellEvent::Begin { cell } => {
                self.index = Some(cell.index);
                self.print(&Begin {
                    event: "begin",
                    cell,
                });
            }
            CellEvent::End {
                cell,
                status,
                execution_count,
                duration_ms,
                error,
                expected,
            } => {
                let error = error.as_ref().map(|error| error.to_document(self.detail));
                self.print(&End {
                    event: "end",
                    cell,
                    status: *status,
                    execution_count: *execution_count,
                    duration_ms: *duration_ms,
                    error,
                    expected: *expected,
                });
            }
        }
    }
}

/// Removes the sequences that erase a part of a line, the only ones that [`LiveText`] leaves.
fn without_erasing(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_final = |character: char| ('@'..='~').contains(&character);
        plain.push_str(part.split_once(is_final).map_or("", |(_, rest)| rest));
    }
    plain
}

/// An event with its version and time, without line breaks.
fn event_line(event: &(impl Serialize + JsonSchema)) -> io::Result<String> {
    // As a value, because the outputs of a notebook are JSON with line breaks.
    let document = serde_json::to_value(Versioned::new(Stamped::now(event)))?;
    Ok(document.to_string())
}

/// Prints the result as the last event.
pub(crate) fn print_done(console: &Console, report: &ReportDocument<'_>) -> Result<(), Failure> {
    let event = "done";
    Ok(console.write_json_line(&event_line(&Done { event, report })?)?)
}

/// Prints as the last event that the run continues in the background.
pub(crate) fn print_still_running(
    console: &Console,
    running: StillRunning<'_>,
) -> Result<(), Failure> {
    let event = "running";
    Ok(console.write_json_line(&event_line(&Continues { event, running })?)?)
}

/// Prints the result of a check as the last event.
pub(crate) fn print_checked(console: &Console, report: &CheckReport) -> Result<(), Failure> {
    let event = "done";
    Ok(console.write_json_line(&event_line(&Checked { event, report })?)?)
}

/// Prints a failure as the last event. Errors are ignored, because stderr shows the failure too.
pub(crate) fn print_failure(console: &Console, failure: &Failure) {
    let event = Failed {
        event: "done",
        status: ExecutionStatus::NotStarted,
        error: failure.error_object(),
    };
    if !failure.is_silent()
        && let Ok(line) = event_line(&event)
    {
        console.write_json_line(&line).ok();
    }
}

impl Viewer for EventViewer<'_> {
    fn write_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::CellStart | FeedItem::Clear { .. } => {}
            FeedItem::Text(stream, bytes) => self.write_text(stream, Some(&bytes)),
            FeedItem::Display(display) => self.write_display(&display),
            FeedItem::Error(traceback) => {
                // The exception follows the text before it.
                self.flush();
                self.print(&Raised {
                    event: "error",
                    index: self.index,
                    error: ErrorReport::from(traceback).without_colours(),
                });
            }
            FeedItem::Dropped(bytes) => {
                self.print(&Lost {
                    event: "lost",
                    index: self.index,
                    bytes,
                });
            }
            FeedItem::CellEvent(event) => {
                self.flush();
                self.write_event(&event);
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
