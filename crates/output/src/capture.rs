//! [`Capture`]: the event sink of every cell.
//!
//! It never waits and never fails, and its memory is bounded. It only uses the disk for artifacts and scratch
//! data; if that fails, the capture continues without them.

mod attachments;
mod shorten;
mod updatable_text;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::artifact::{ArtifactId, ArtifactKind, Artifacts, SpillBuffer, SpillReport};
use crate::bounded_json::BoundedJson;
use crate::bundle::{Bundle, json_memory_size};
use crate::cell_text::{BoundedText, CellText, Truncation, traceback_text};
use crate::display_text::{self, DisplayText};
use crate::event::{Event, Sink, Stream, Traceback};
use crate::figure::Figure;
use crate::image::{self, Image};
use crate::limits::Limits;
use crate::notice::Notice;
use crate::outputs::Outputs;
use crate::widgets::{ProgressState, view_id};
pub use updatable_text::UpdatableText;

/// Collects the events of one cell.
#[derive(Debug)]
pub struct Capture {
    limits: Limits,
    artifacts: Option<Artifacts>,
    text: CellText,
    outputs: Outputs,
    /// The raw bytes of the streams, interleaved with the text of displays.
    log: SpillBuffer,
    /// Whether the log's last line is unfinished.
    log_line_open: bool,
    clear_pending: bool,
    /// Whether output is currently shown but not stored in the notebook.
    show_only: bool,
    /// Number of images among the outputs.
    figure_count: usize,
    /// The images of the display that was pushed last.
    last_figures: Vec<Figure>,
    status: VecDeque<Value>,
    status_bytes: u64,
    status_dropped: u64,
    error: Option<Arc<Traceback>>,
    stdin_refused: Option<String>,
    widget_state: Option<Arc<str>>,
}

/// The complete result of a cell.
#[derive(Debug)]
pub struct Captured {
    /// The text for models: selected, cleaned, bounded.
    pub text: String,
    /// How the text is truncated.
    pub truncation: Option<Truncation>,
    /// The images among the outputs.
    pub images: Vec<Image>,
    /// The JSON values among the outputs.
    pub json: Vec<BoundedJson>,
    /// Status events, the latest last.
    pub status: Vec<Value>,
    /// The outputs for a notebook.
    pub outputs: Outputs,
    /// The last exception.
    pub error: Option<Traceback>,
    /// What else the caller should report.
    pub notices: Vec<Notice>,
    /// The prompt of a refused input request.
    pub stdin_refused: Option<String>,
    /// The state of the kernel's widgets, as JSON text for `metadata.widgets`, if it has changed.
    pub widget_state: Option<Arc<str>>,
    /// The text again, if it contains displays that a later cell may update.
    pub updatable_text: Option<UpdatableText>,
}

impl Capture {
    /// Creates a capture. Output beyond the limits goes to `artifacts`.
    pub fn new(limits: Limits, artifacts: Option<Artifacts>) -> Self {
        Self {
            text: CellText::new(&limits),
            outputs: Outputs::new(&limits, artifacts.clone()),
            log: SpillBuffer::new(artifacts.clone(), ArtifactKind::Log, limits.inline_bytes),
            limits,
            artifacts,
            log_line_open: false,
            clear_pending: false,
            show_only: false,
            figure_count: 0,
            last_figures: Vec::new(),
            status: VecDeque::new(),
            status_bytes: 0,
            status_dropped: 0,
            error: None,
            stdin_refused: None,
            widget_state: None,
        }
    }

    /// Sets the ids of the displays of earlier cells: a display with such an id updates them.
    pub fn set_earlier_ids(&mut self, ids: Arc<HashSet<String>>) {
        self.outputs.set_earlier_ids(ids);
    }

    /// Returns the ids of the displays.
    pub fn display_ids(&self) -> impl Iterator<Item = &str> {
        self.outputs.display_ids()
    }

    /// Returns whether a display has this id.
    pub fn has_display(&self, id: &str) -> bool {
        self.outputs.has_display(id)
    }

    /// Returns the bounded text so far, while the cell runs.
    pub fn current_text(&self) -> String {
        self.text.clone().finish().text
    }

    /// Returns the images of the display or update that was pushed last, with their artifacts.
    pub fn take_last_figures(&mut self) -> Vec<Figure> {
        std::mem::take(&mut self.last_figures)
    }

    /// Ends the capture and returns its result.
    pub fn finish(mut self) -> Captured {
        let updatable_text = self
            .outputs
            .has_display_ids()
            .then(|| UpdatableText::new(self.text.clone(), self.limits.clone()));
        let bounded = self.text.finish();
        self.outputs.finish();
        let elided_bytes = self.outputs.elided_bytes();
        if bounded.is_truncated() || elided_bytes > 0 {
            self.log.create_artifact();
        }
        let report = self.log.finish();
        self.outputs.set_log(&report);
        let truncation = truncation_of(&bounded, report.id, report.total - report.kept);
        let mut notices = Vec::new();
        notices.extend(truncation.clone().map(Notice::Truncated));
        notices.extend(not_kept_notice(&report));
        if elided_bytes > 0 {
            notices.push(Notice::StreamsShortened {
                bytes: elided_bytes,
                artifact: report.id.filter(|_| report.failure.is_none()),
            });
        }
        let images = attachments::collect_images(
            &mut self.outputs,
            &self.limits,
            self.artifacts.as_ref(),
            &bounded,
            &mut notices,
        );
        let json = attachments::collect_json(&mut self.outputs, &self.limits, &mut notices);
        let omissions = self.outputs.omissions();
        if !omissions.moved.is_empty() || omissions.lost > 0 {
            notices.push(Notice::DisplaysMoved {
                artifacts: omissions.moved.clone(),
                lost: omissions.lost,
            });
        }
        if omissions.dropped > 0 {
            notices.push(Notice::OutputsDropped {
                count: omissions.dropped,
            });
        }
        if self.status_dropped > 0 {
            notices.push(Notice::StatusDropped {
                count: self.status_dropped,
            });
        }
        Captured {
            text: bounded.text,
            truncation,
            images,
            json,
            status: self.status.into(),
            outputs: self.outputs,
            error: self.error.map(Arc::unwrap_or_clone),
            notices,
            stdin_refused: self.stdin_refused,
            widget_state: self.widget_state,
            updatable_text,
        }
    }

    fn push_text(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.clear_if_pending();
        let offset = self.log.total();
        self.log.push(bytes);
        self.log_line_open = !bytes.ends_with(b"\n");
        self.outputs.push_text(stream, bytes, offset);
        self.text.push_stream(stream, bytes);
    }

    fn push_display(&mut self, bundle: Bundle, id: Option<String>, result: Option<u32>) {
        self.store_status(&bundle);
        if display_text::is_status_only(&bundle) {
            return;
        }
        self.clear_if_pending();
        let has_image = bundle.data.iter().any(|(mime, _)| image::is_listed(mime));
        let output = has_image.then(|| self.outputs.len());
        let figures = self.store_figures(&bundle);
        let text = display_text::select_text(&bundle, &figures, &self.limits);
        if let Some(id) = &id {
            self.text
                .update_display(text.as_ref().unwrap_or(&"".into()), id);
        }
        let text_id = id.clone().or_else(|| view_id(&bundle).map(bar_text_id));
        match (&text, &id) {
            (Some(text), _) => {
                self.text.push_display(text, text_id.as_deref(), output);
                self.write_log(text);
            }
            // An update may add text later.
            (None, Some(id)) => self.text.push_display(&"".into(), Some(id), output),
            (None, None) => {}
        }
        self.last_figures.clone_from(&figures);
        self.outputs.push_display(bundle, id, result, figures);
    }

    fn update_display(&mut self, bundle: Bundle, id: &str) {
        self.store_status(&bundle);
        let figures = if self.outputs.has_display(id) {
            self.store_figures(&bundle)
        } else {
            // The display of another cell: its outputs will contain the image, not the outputs of this one.
            figures_of(&bundle).map(|image| image.figure()).collect()
        };
        let text = display_text::select_text(&bundle, &figures, &self.limits);
        self.text.update_display(&text.unwrap_or("".into()), id);
        self.outputs.update_display(bundle, id, &figures);
        self.last_figures = figures;
    }

    /// Stores the images of a display, so that its text names their artifacts. An image that cannot be stored is stored
    /// at the end of the cell, or reported.
    fn store_figures(&mut self, bundle: &Bundle) -> Vec<Figure> {
        let mut figures = Vec::new();
        for mut image in figures_of(bundle) {
            self.figure_count += 1;
            if let Some(artifacts) = &self.artifacts
                && self.figure_count <= self.limits.images
            {
                image.store_original(artifacts).ok();
            }
            figures.push(image.figure());
        }
        figures
    }

    fn push_error(&mut self, traceback: Traceback) {
        self.clear_if_pending();
        self.text.push_error(&traceback);
        self.write_log(&traceback_text(&traceback).into());
        let traceback = Arc::new(traceback.shortened(self.limits.traceback_bytes));
        self.outputs.push_error(Arc::clone(&traceback));
        // An exception that a widget captured did not end the cell.
        if !self.show_only {
            self.error = Some(traceback);
        }
    }

    fn clear_if_pending(&mut self) {
        if !self.show_only && std::mem::take(&mut self.clear_pending) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.clear_pending = false;
        self.figure_count = 0;
        self.text.clear();
        self.outputs.clear();
    }

    fn store_status(&mut self, bundle: &Bundle) {
        for event in display_text::status_events(bundle) {
            self.status_bytes += json_memory_size(&event);
            self.status.push_back(event);
            while self.status.len() > self.limits.status_events
                || self.status_bytes > self.limits.status_bytes as u64
            {
                let Some(old) = self.status.pop_front() else {
                    break;
                };
                self.status_bytes -= json_memory_size(&old);
                self.status_dropped += 1;
            }
        }
    }

    /// Writes text to the log on separate lines.
    fn write_log(&mut self, text: &DisplayText<'_>) {
        if self.log_line_open {
            self.log.push(b"\n");
        }
        let mut ends_line = false;
        text.for_each_chunk(|chunk| {
            self.log.push(chunk.as_bytes());
            ends_line = chunk.ends_with('\n');
        });
        if !ends_line {
            self.log.push(b"\n");
        }
        self.log_line_open = false;
    }
}

impl Sink for Capture {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Text { stream, bytes } => self.push_text(stream, bytes),
            Event::Display { bundle, id, result } => self.push_display(bundle, id, result),
            Event::Update { bundle, id } => self.update_display(bundle, &id),
            // This clears the pager or widget. Its output was already shown.
            Event::Clear { .. } if self.show_only => {}
            Event::Clear { wait: true } => self.clear_pending = true,
            Event::Clear { wait: false } => self.clear(),
            Event::ShowOnly(show_only) => {
                self.show_only = show_only;
                self.outputs.set_show_only(show_only);
            }
            Event::Progress(bar) => {
                let text = match bar.state {
                    ProgressState::Removed => String::new(),
                    _ => bar.text,
                };
                self.text
                    .update_display(&(&text[..]).into(), &bar_text_id(&bar.id));
            }
            Event::WidgetState(state) => self.widget_state = Some(state),
            Event::Raised(traceback) => self.push_error(traceback),
            Event::InputRefused { mut prompt } => {
                shorten::shorten_text(&mut prompt, self.limits.line_bytes);
                self.stdin_refused = Some(prompt);
            }
        }
    }
}

/// The id under which the text of a widget is updated.
fn bar_text_id(model: &str) -> String {
    format!("widget {model}")
}

/// The images among the representations of a display.
fn figures_of(bundle: &Bundle) -> impl Iterator<Item = Image> {
    let images = bundle
        .data
        .iter()
        .filter(|(mime, _)| image::is_listed(mime));
    images.map(|(mime, data)| Image::from_data(mime, data.clone()))
}

fn truncation_of(
    bounded: &BoundedText,
    artifact: Option<ArtifactId>,
    lost: u64,
) -> Option<Truncation> {
    bounded.is_truncated().then_some(Truncation {
        total: bounded.total,
        shown: bounded.shown,
        elided: bounded.elided,
        long_lines: bounded.long_lines,
        artifact,
        lost,
    })
}

fn not_kept_notice(report: &SpillReport) -> Option<Notice> {
    let failure = report.failure.clone()?;
    Some(Notice::NotStored {
        failure,
        artifact: report.id,
        kept: report.kept,
        lost: report.total - report.kept,
    })
}
