//! Events → notebook outputs (nbformat 4): consecutive text of a stream is one output, displays are
//! updated by id, errors keep their traceback.
//!
//! Memory is bounded. Of what is printed the beginning and the end are held; the whole is a range
//! of the artifact that keeps the raw bytes. Displayed values beyond a limit move to artifacts, for
//! people, and to a file without a name, as they came, for the notebook.

mod asides;
mod display;
mod lines;
mod paper;
mod stream;
mod values;
mod write;

use std::fs::File;
use std::sync::Arc;

use crate::artifact::{ArtifactId, Artifacts, Spilled};
use crate::bundle::Bundle;
use crate::event::{Stream, Traceback};
use crate::limits::Limits;
use crate::scratch::Scratch;
use asides::Asides;
pub(crate) use display::{Payload, Shown};
use stream::{Printed, Runs};

/// The outputs of a cell.
#[derive(Debug)]
pub struct Outputs {
    list: Vec<Output>,
    asides: Asides,
    runs: Runs,
    most: usize,
    most_display_bytes: u64,
    display_bytes: u64,
    artifacts: Option<Artifacts>,
    /// Where displayed values are as they came, for which there is no room here.
    scratch: Scratch,
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
const MOST_UPDATES: usize = 1000;

/// Bytes of one that there is room for in any case: its metadata stays in memory.
const SMALL_UPDATE: u64 = 16 * 1024;

/// Exceptions that find their place however many outputs there are.
const MOST_ERRORS: usize = 16;

impl Outputs {
    pub(crate) fn new(limits: &Limits, artifacts: Option<Artifacts>) -> Self {
        Self {
            list: Vec::new(),
            asides: Asides::default(),
            runs: Runs::new(limits.stream_bytes),
            most: limits.outputs,
            most_display_bytes: limits.display_bytes as u64,
            display_bytes: 0,
            // One file for all cells whose artifacts are in one folder: files are few.
            scratch: artifacts
                .as_ref()
                .map_or_else(Scratch::default, Artifacts::scratch),
            artifacts,
            log: None,
            tally: Tally::default(),
            dropping: None,
            updates: Vec::new(),
        }
    }

    /// How many there are, those beside the cell among them.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a notebook would have none: those beside the cell do not count.
    pub fn is_empty(&self) -> bool {
        (0..self.list.len()).all(|at| self.asides.has(at))
    }

    /// Updates of displays that this cell has not shown: they belong to cells before it.
    pub fn updates(&self) -> &[(String, Bundle)] {
        &self.updates
    }

    /// Whether something was displayed under an id, so that a later cell may change it.
    pub fn has_display_ids(&self) -> bool {
        let mut list = self.list.iter();
        list.any(|output| matches!(output, Output::Display(shown) if shown.id.is_some()))
    }

    /// Takes what a later cell displays in the place of everything that was displayed under an id. Whether
    /// that changed something.
    pub fn apply(&mut self, id: &str, bundle: &Bundle) -> bool {
        if !self.shows(id) {
            return false;
        }
        let is_it = |shown: &&mut Shown| shown.id.as_deref() == Some(id);
        let before: Vec<Shown> = self
            .displays_mut()
            .filter(is_it)
            .map(|shown| shown.clone())
            .collect();
        self.replace(bundle.clone(), id);
        self.keep();
        let now = self.displays_mut().filter(is_it);
        before
            .iter()
            .zip(now)
            .any(|(before, now)| before.parts != now.parts || before.metadata != now.metadata)
    }

    /// Takes bytes that were written to a stream and stand at an offset of the log.
    pub(crate) fn print(&mut self, stream: Stream, bytes: &[u8], offset: u64) {
        let current = match self.list.last() {
            Some(Output::Stream(printed)) => {
                printed.stream == stream && !self.asides.changed_at(self.list.len())
            }
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
        if self.shows(id) {
            self.replace(bundle, id);
        } else {
            self.remember(bundle, id);
        }
    }

    fn shows(&self, id: &str) -> bool {
        let mut list = self.list.iter();
        list.any(
            |output| matches!(output, Output::Display(shown) if shown.id.as_deref() == Some(id)),
        )
    }

    fn replace(&mut self, bundle: Bundle, id: &str) {
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

    /// Whether what comes is shown beside the cell: a notebook does not have it.
    pub(crate) fn aside(&mut self, aside: bool) {
        self.dropping = None;
        self.asides.change(aside, self.list.len());
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.asides.clear();
        self.runs.clear();
        self.display_bytes = self.updates.iter().map(update_size).sum();
        self.tally = Tally::default();
        self.dropping = None;
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.runs.finish(&mut self.list);
        self.keep();
    }

    /// Puts what is still displayed and not in memory where people find it.
    fn keep(&mut self) {
        for output in &self.list {
            if let Output::Display(shown) = output {
                shown.keep(self.artifacts.as_ref(), &mut self.tally);
            }
        }
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
        let parts = bundle.data.len();
        let shown = Shown::new(bundle, id, result, room, &self.scratch);
        self.tally.lost += (parts - shown.parts.len()) as u64;
        shown
    }

    /// Keeps the last update of a display that another cell has shown.
    fn remember(&mut self, bundle: Bundle, id: &str) {
        self.updates.retain(|update| {
            let keep = update.0 != id;
            if !keep {
                self.display_bytes -= update_size(update);
            }
            keep
        });
        let room = self.most_display_bytes.saturating_sub(self.display_bytes);
        let mut update = (id.to_owned(), bundle);
        if update_size(&update) > room {
            let parts = update.1.data.len();
            update.1 = display::put_aside(&self.scratch, update.1);
            self.tally.lost += (parts - update.1.data.len()) as u64;
        }
        let size = update_size(&update);
        if self.updates.len() < MOST_UPDATES && size <= room.max(SMALL_UPDATE) {
            self.display_bytes += size;
            self.updates.push(update);
        } else {
            self.tally.dropped += 1;
        }
    }
}

/// What it takes in memory to remember an update.
fn update_size((id, bundle): &(String, Bundle)) -> u64 {
    id.len() as u64 + bundle.held()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::bundle::Data;
    use crate::style::Style;

    #[test]
    fn what_no_disk_takes_is_named_and_the_rest_is_there() {
        let limits = Limits {
            display_bytes: 100,
            ..Limits::default()
        };
        let mut outputs = Outputs::new(&limits, None);
        let full = File::options().read(true).write(true).open("/dev/full");
        outputs.scratch = Scratch::of(full.unwrap());
        let bundle =
            Bundle::text("image/png", "x".repeat(2000)).with("a/b", Data::Text("c".to_owned()));
        outputs.display(bundle.clone(), Some("x".to_owned()), None);
        outputs.update(bundle.clone(), "elsewhere");
        outputs.finish();
        let mut written = Vec::new();
        let style = Style::compact();
        outputs.write(&mut written, &style, 0).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            r#"[{"data":{"a/b":"c","text/plain":["[image/png, 2.0 KiB] could not be kept"]},"metadata":{},"output_type":"display_data"}]"#
        );
        // What was displayed, and what it was to become.
        assert_eq!(outputs.tally.lost, 2);
        let [(_, left)] = outputs.updates() else {
            panic!("{:?}", outputs.updates());
        };
        assert_eq!(left.data, bundle.data[1..]);
    }
}
