//! Events → notebook outputs (nbformat 4): consecutive text of a stream is one output, displays are
//! updated by id, errors keep their traceback.
//!
//! Memory is bounded. Of what is printed the beginning and the end are held; the whole is a range
//! of the artifact that keeps the raw bytes. Displayed values beyond a limit move to artifacts, and
//! a stub stays.

mod display;
mod lines;
mod stream;
mod values;

use std::fs::File;
use std::sync::Arc;

use crate::artifact::{ArtifactId, Artifacts, Spilled};
use crate::bundle::Bundle;
use crate::event::{Stream, Traceback};
use crate::limits::Limits;
pub(crate) use display::{Payload, Shown};
use stream::{Printed, Runs};

/// The outputs of a cell.
#[derive(Debug)]
pub struct Outputs {
    list: Vec<Output>,
    runs: Runs,
    most: usize,
    most_display_bytes: u64,
    display_bytes: u64,
    artifacts: Option<Artifacts>,
    /// Where the raw bytes of the streams are.
    log: Option<Log>,
    tally: Tally,
    /// The stream whose text was dropped last, if nothing else came since.
    dropping: Option<Stream>,
    updates: Vec<(String, Bundle)>,
}

/// What did not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) dropped: u64,
    pub(crate) moved: Vec<ArtifactId>,
    pub(crate) lost: u64,
}

#[derive(Debug)]
enum Output {
    Stream(Printed),
    Display(Shown),
    Error(Arc<Traceback>),
}

#[derive(Debug)]
struct Log {
    id: ArtifactId,
    file: Arc<File>,
    kept: u64,
}

/// Updates of displays that another cell has shown.
const MOST_UPDATES: usize = 64;

/// Exceptions that find their place however many outputs there are.
const MOST_ERRORS: usize = 16;

impl Outputs {
    pub(crate) fn new(limits: &Limits, artifacts: Option<Artifacts>) -> Self {
        Self {
            list: Vec::new(),
            runs: Runs::new(limits.stream_bytes),
            most: limits.outputs,
            most_display_bytes: limits.display_bytes as u64,
            display_bytes: 0,
            artifacts,
            log: None,
            tally: Tally::default(),
            dropping: None,
            updates: Vec::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Updates of displays that this cell has not shown: they belong to cells before it.
    pub fn updates(&self) -> &[(String, Bundle)] {
        &self.updates
    }

    /// Takes bytes that were written to a stream and stand at an offset of the log.
    pub(crate) fn print(&mut self, stream: Stream, bytes: &[u8], offset: u64) {
        let current = match self.list.last() {
            Some(Output::Stream(printed)) => printed.stream == stream,
            _ => false,
        };
        if !current {
            // However many chunks it comes in, what would have been one output counts once.
            if self.dropping == Some(stream) || !self.has_room() {
                self.dropping = Some(stream);
                return;
            }
            self.runs.close(&mut self.list);
            let printed = self.runs.open(stream, offset);
            self.list.push(Output::Stream(printed));
        }
        self.runs.append(&mut self.list, bytes);
    }

    /// Takes something displayed.
    pub(crate) fn display(&mut self, bundle: Bundle, id: Option<String>, result: Option<u32>) {
        if self.has_room() {
            self.runs.close(&mut self.list);
            let shown = self.shown(bundle, id, result);
            self.display_bytes += shown.held();
            self.list.push(Output::Display(shown));
        }
    }

    /// Changes everything displayed under an id.
    pub(crate) fn update(&mut self, bundle: Bundle, id: &str) {
        let is_it = |output: &Output| match output {
            Output::Display(shown) => shown.id.as_deref() == Some(id),
            _ => false,
        };
        if !self.list.iter().any(is_it) {
            self.remember(bundle, id);
            return;
        }
        // What is replaced makes room first.
        for output in &mut self.list {
            if let Output::Display(shown) = output
                && shown.id.as_deref() == Some(id)
            {
                self.display_bytes -= shown.held();
                shown.parts.clear();
            }
        }
        let new = self.shown(bundle, None, None);
        for output in &mut self.list {
            if let Output::Display(shown) = output
                && shown.id.as_deref() == Some(id)
            {
                shown.parts.clone_from(&new.parts);
                shown.metadata.clone_from(&new.metadata);
                self.display_bytes += shown.held();
            }
        }
    }

    /// Takes an exception.
    pub(crate) fn raised(&mut self, traceback: Arc<Traceback>) {
        self.dropping = None;
        if self.list.len() < self.most + MOST_ERRORS {
            self.runs.close(&mut self.list);
            self.list.push(Output::Error(traceback));
        } else {
            self.tally.dropped += 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.runs.clear();
        self.display_bytes = self.updates.iter().map(|(_, bundle)| bundle.size()).sum();
        self.tally = Tally::default();
        self.dropping = None;
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.runs.finish(&mut self.list);
    }

    /// Tells where the raw bytes of the streams are.
    pub(crate) fn set_log(&mut self, spilled: &Spilled) {
        self.log = match (spilled.id, &spilled.file) {
            (Some(id), Some(file)) => Some(Log {
                id,
                file: Arc::clone(file),
                kept: spilled.kept,
            }),
            _ => None,
        };
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Bytes of printed text that are not in memory.
    pub(crate) fn missing(&self) -> u64 {
        self.list
            .iter()
            .map(|output| match output {
                Output::Stream(printed) => printed.missing(),
                _ => 0,
            })
            .sum()
    }

    /// What is displayed, in order.
    pub(crate) fn displays_mut(&mut self) -> impl Iterator<Item = &mut Shown> {
        self.list.iter_mut().filter_map(|output| match output {
            Output::Display(shown) => Some(shown),
            _ => None,
        })
    }

    fn has_room(&mut self) -> bool {
        self.dropping = None;
        let room = self.list.len() < self.most;
        self.tally.dropped += u64::from(!room);
        room
    }

    fn shown(&mut self, bundle: Bundle, id: Option<String>, result: Option<u32>) -> Shown {
        let room = self.most_display_bytes.saturating_sub(self.display_bytes);
        Shown::new(
            bundle,
            id,
            result,
            room,
            self.artifacts.as_ref(),
            &mut self.tally,
        )
    }

    /// Keeps the last update of a display that another cell has shown.
    fn remember(&mut self, bundle: Bundle, id: &str) {
        self.updates.retain(|(known, old)| {
            let keep = known != id;
            if !keep {
                self.display_bytes -= old.size();
            }
            keep
        });
        let size = bundle.size();
        let room = self.most_display_bytes.saturating_sub(self.display_bytes);
        if self.updates.len() < MOST_UPDATES && size <= room {
            self.display_bytes += size;
            self.updates.push((id.to_owned(), bundle));
        } else {
            self.tally.dropped += 1;
        }
    }
}
