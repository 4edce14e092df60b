//! Everything a run produces, taken as it comes: [`Capture`] is the sink that every run has.
//!
//! It never waits and never fails, and its memory is bounded whatever comes. The only work on disk
//! is the artifact, and when that fails the run goes on.

mod beside;
mod shorten;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use crate::artifact::{ArtifactId, Artifacts, Kind, Spill, Spilled};
use crate::bundle::{Bundle, json_size};
use crate::event::{Event, Sink, Stream, Traceback};
use crate::image::Image;
use crate::json::Json;
use crate::limits::Limits;
use crate::notice::Notice;
use crate::outputs::Outputs;
use crate::pick::{self, Words};
use crate::text::{Cut, Reading, Text, traceback_text};

/// Takes the events of one run.
#[derive(Debug)]
pub struct Capture {
    limits: Limits,
    artifacts: Option<Artifacts>,
    version: u64,
    text: Text,
    outputs: Outputs,
    /// The raw bytes of the streams, and the text of what was displayed between.
    log: Spill,
    /// Whether the log's last line is unfinished.
    log_open: bool,
    clear_pending: bool,
    /// Whether what comes is shown beside the cell.
    aside: bool,
    status: VecDeque<Value>,
    status_bytes: u64,
    status_dropped: u64,
    error: Option<Arc<Traceback>>,
    stdin_refused: Option<String>,
}

/// A look at a run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Grows with every event.
    pub version: u64,
    /// What a model would read if nothing more came.
    pub text: String,
    /// What of it is missing.
    pub cut: Option<Cut>,
    /// Bytes that came so far, as they came.
    pub raw_bytes: u64,
    /// How many outputs there are.
    pub outputs: usize,
    /// The latest status event.
    pub status: Option<Value>,
    /// Whether the code has raised.
    pub raised: bool,
    /// Whether the code asked for input in vain.
    pub stdin_refused: bool,
}

/// What a run has produced.
#[derive(Debug)]
pub struct Captured {
    /// What a model reads: picked, clean, bounded.
    pub text: String,
    /// What of it is missing.
    pub cut: Option<Cut>,
    /// The images among the outputs.
    pub images: Vec<Image>,
    /// The JSON values among the outputs.
    pub json: Vec<Json>,
    /// Status events, the latest last.
    pub status: Vec<Value>,
    /// The outputs for a notebook.
    pub outputs: Outputs,
    /// The last exception.
    pub error: Option<Traceback>,
    /// What else the reader should know.
    pub notices: Vec<Notice>,
    /// What the code asked when it wanted input and got none.
    pub stdin_refused: Option<String>,
}

impl Capture {
    /// A capture within limits; what is too long for them goes to artifacts.
    pub fn new(limits: Limits, artifacts: Option<Artifacts>) -> Self {
        Self {
            text: Text::new(&limits),
            outputs: Outputs::new(&limits, artifacts.clone()),
            log: Spill::new(artifacts.clone(), Kind::Log, limits.inline_bytes),
            limits,
            artifacts,
            version: 0,
            log_open: false,
            clear_pending: false,
            aside: false,
            status: VecDeque::new(),
            status_bytes: 0,
            status_dropped: 0,
            error: None,
            stdin_refused: None,
        }
    }

    /// Grows with every event.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What there is so far. Costs a copy of the text that is shown.
    pub fn snapshot(&self) -> Snapshot {
        let reading = self.text.clone().finish();
        let cut = cut(&reading, self.log.id(), 0);
        Snapshot {
            version: self.version,
            text: reading.text,
            cut,
            raw_bytes: self.log.total(),
            outputs: self.outputs.len(),
            status: self.status.back().cloned(),
            raised: self.error.is_some(),
            stdin_refused: self.stdin_refused.is_some(),
        }
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Captured {
        let reading = self.text.finish();
        self.outputs.finish();
        let missing = self.outputs.missing();
        if reading.is_cut() || missing > 0 {
            self.log.keep();
        }
        let spilled = self.log.finish();
        self.outputs.set_log(&spilled);
        let cut = cut(&reading, spilled.id, spilled.total - spilled.kept);
        let mut notices = Vec::new();
        notices.extend(cut.clone().map(Notice::Cut));
        notices.extend(not_kept(&spilled));
        if missing > 0 {
            notices.push(Notice::StreamsShortened {
                bytes: missing,
                artifact: spilled.id.filter(|_| spilled.failure.is_none()),
            });
        }
        let images = beside::images(
            &mut self.outputs,
            &self.limits,
            self.artifacts.as_ref(),
            &mut notices,
        );
        let json = beside::json(&mut self.outputs, &self.limits, &mut notices);
        let tally = self.outputs.tally();
        if !tally.moved.is_empty() || tally.lost > 0 {
            notices.push(Notice::DisplaysMoved {
                artifacts: tally.moved.clone(),
                lost: tally.lost,
            });
        }
        if tally.dropped > 0 {
            notices.push(Notice::OutputsDropped {
                count: tally.dropped,
            });
        }
        if self.status_dropped > 0 {
            notices.push(Notice::StatusDropped {
                count: self.status_dropped,
            });
        }
        Captured {
            text: reading.text,
            cut,
            images,
            json,
            status: self.status.into(),
            outputs: self.outputs,
            error: self.error.map(Arc::unwrap_or_clone),
            notices,
            stdin_refused: self.stdin_refused,
        }
    }

    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.clear_if_pending();
        let offset = self.log.total();
        self.log.push(bytes);
        self.log_open = !bytes.ends_with(b"\n");
        self.outputs.print(stream, bytes, offset);
        self.text.push(stream, bytes);
    }

    fn display(&mut self, bundle: Bundle, id: Option<String>, result: Option<u32>) {
        self.take_status(&bundle);
        if pick::is_status_only(&bundle) {
            return;
        }
        self.clear_if_pending();
        let words = pick::words(&bundle, &self.limits);
        match (&words, &id) {
            (Some(words), id) => {
                self.text.display(words, id.as_deref());
                self.write_log(words);
            }
            // An update may bring text.
            (None, Some(id)) => self.text.display(&"".into(), Some(id)),
            (None, None) => {}
        }
        self.outputs.display(bundle, id, result);
    }

    fn update(&mut self, bundle: Bundle, id: &str) {
        self.take_status(&bundle);
        let words = pick::words(&bundle, &self.limits);
        self.text.update(&words.unwrap_or("".into()), id);
        self.outputs.update(bundle, id);
    }

    fn raised(&mut self, traceback: Traceback) {
        self.clear_if_pending();
        self.text.raised(&traceback);
        self.write_log(&traceback_text(&traceback).into());
        let traceback = Arc::new(shorten::traceback(traceback, self.limits.traceback_bytes));
        self.outputs.raised(Arc::clone(&traceback));
        // What a widget captures did not end the cell.
        if !self.aside {
            self.error = Some(traceback);
        }
    }

    fn clear_if_pending(&mut self) {
        if !self.aside && std::mem::take(&mut self.clear_pending) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.clear_pending = false;
        self.text.clear();
        self.outputs.clear();
    }

    fn take_status(&mut self, bundle: &Bundle) {
        for event in pick::status(bundle) {
            self.status_bytes += json_size(&event);
            self.status.push_back(event);
            while self.status.len() > self.limits.status_events
                || self.status_bytes > self.limits.status_bytes as u64
            {
                let Some(old) = self.status.pop_front() else {
                    break;
                };
                self.status_bytes -= json_size(&old);
                self.status_dropped += 1;
            }
        }
    }

    /// Puts text on lines of its own into the log.
    fn write_log(&mut self, words: &Words<'_>) {
        if self.log_open {
            self.log.push(b"\n");
        }
        let mut ended = false;
        words.say(|text| {
            self.log.push(text.as_bytes());
            ended = text.ends_with('\n');
        });
        if !ended {
            self.log.push(b"\n");
        }
        self.log_open = false;
    }
}

impl Sink for Capture {
    fn push(&mut self, event: Event<'_>) {
        self.version += 1;
        match event {
            Event::Text { stream, bytes } => self.print(stream, bytes),
            Event::Display { bundle, id, result } => self.display(bundle, id, result),
            Event::Update { bundle, id } => self.update(bundle, &id),
            // It is what is shown there that goes away; here it has been told.
            Event::Clear { .. } if self.aside => {}
            Event::Clear { wait: true } => self.clear_pending = true,
            Event::Clear { wait: false } => self.clear(),
            Event::Aside(aside) => {
                self.aside = aside;
                self.outputs.aside(aside);
            }
            Event::Raised(traceback) => self.raised(traceback),
            Event::InputRefused { mut prompt } => {
                shorten::shorten(&mut prompt, self.limits.column_bytes);
                self.stdin_refused = Some(prompt);
            }
        }
    }
}

fn cut(reading: &Reading, artifact: Option<ArtifactId>, lost: u64) -> Option<Cut> {
    reading.is_cut().then_some(Cut {
        total: reading.total,
        shown: reading.shown,
        elided: reading.elided,
        columns: reading.columns,
        artifact,
        lost,
    })
}

fn not_kept(spilled: &Spilled) -> Option<Notice> {
    let failure = spilled.failure.clone()?;
    Some(Notice::NotKept {
        failure,
        artifact: spilled.id,
        kept: spilled.kept,
        lost: spilled.total - spilled.kept,
    })
}
