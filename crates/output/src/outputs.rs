//! Converts events to notebook outputs (nbformat 4): consecutive text of a stream is one output, displays are
//! updated by id, errors keep their traceback.
//!
//! Memory is bounded. Of stream text, the beginning and the end are held; the complete text is a range of the
//! artifact with the raw bytes. Displayed values beyond a limit are stored as artifacts, for users, and
//! unchanged in the scratch file, for the notebook.

mod display;
mod json_writer;
mod lines;
mod show_only;
mod stream;
mod values;
mod write;

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use crate::artifact::{ArtifactId, Artifacts, SpillReport};
use crate::bundle::Bundle;
use crate::event::{Stream, Traceback};
use crate::figure::Figure;
use crate::limits::Limits;
use crate::scratch::Scratch;
pub(crate) use display::{DisplayOutput, Payload};
use show_only::ShowOnlyRanges;
use stream::{StreamBuffers, StreamOutput};

/// The outputs of a cell.
#[derive(Debug)]
pub struct Outputs {
    list: Vec<Output>,
    show_only: ShowOnlyRanges,
    streams: StreamBuffers,
    outputs_limit: usize,
    display_bytes_limit: u64,
    display_bytes: u64,
    artifacts: Option<Artifacts>,
    /// Holds displayed values beyond the memory limit.
    scratch: Scratch,
    /// The raw bytes of the streams.
    log: Option<StreamLog>,
    omissions: Omissions,
    /// The stream whose text was dropped last, if no other output arrived since.
    dropped_stream: Option<Stream>,
    updates: Vec<(String, Bundle)>,
    /// The ids of displays of earlier cells.
    earlier_ids: Arc<HashSet<String>>,
}

/// Values and outputs that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Omissions {
    /// Number of outputs beyond the limit.
    pub(crate) dropped: u64,
    /// Artifacts with values beyond the memory limit.
    pub(crate) moved: Vec<ArtifactId>,
    /// Number of values that could not be stored.
    pub(crate) lost: u64,
}

#[derive(Debug)]
enum Output {
    Stream(StreamOutput),
    Display(DisplayOutput),
    Error(Arc<Traceback>),
}

#[derive(Debug)]
struct StreamLog {
    id: ArtifactId,
    file: Arc<File>,
    kept: u64,
}

/// Maximum number of updates to displays of other cells.
const UPDATES_MAX: usize = 1000;

/// Updates up to this size are always held: metadata stays in memory.
const SMALL_UPDATE_SIZE: u64 = 16 * 1024;

/// Exceptions stored even if there are too many outputs.
const EXTRA_ERRORS_MAX: usize = 16;

impl Outputs {
    pub(crate) fn new(limits: &Limits, artifacts: Option<Artifacts>) -> Self {
        Self {
            list: Vec::new(),
            show_only: ShowOnlyRanges::default(),
            streams: StreamBuffers::new(limits.stream_bytes),
            outputs_limit: limits.outputs,
            display_bytes_limit: limits.display_bytes as u64,
            display_bytes: 0,
            // Cells with the same artifact directory share one scratch file, to save file descriptors.
            scratch: artifacts
                .as_ref()
                .map_or_else(Scratch::default, Artifacts::scratch),
            artifacts,
            log: None,
            omissions: Omissions::default(),
            dropped_stream: None,
            updates: Vec::new(),
            earlier_ids: Arc::default(),
        }
    }

    pub(crate) fn set_earlier_ids(&mut self, ids: Arc<HashSet<String>>) {
        self.earlier_ids = ids;
    }

    /// Returns the ids of the displays.
    pub(crate) fn display_ids(&self) -> impl Iterator<Item = &str> {
        self.list.iter().filter_map(|output| match output {
            Output::Display(display) => display.id.as_deref(),
            _ => None,
        })
    }

    /// Returns the number of outputs, including those that are shown only.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the notebook would have no outputs. Outputs that are shown only do not count.
    pub fn is_empty(&self) -> bool {
        (0..self.list.len()).all(|at| self.show_only.contains(at))
    }

    /// Returns the updates to displays of earlier cells.
    pub fn updates(&self) -> &[(String, Bundle)] {
        &self.updates
    }

    /// Returns whether a display has an id, so that a later cell may update it.
    pub fn has_display_ids(&self) -> bool {
        self.display_ids().next().is_some()
    }

    /// Applies an update from a later cell to all displays with an id. Returns whether any display changed.
    pub fn apply_update(&mut self, id: &str, bundle: &Bundle) -> bool {
        if !self.has_display(id) {
            return false;
        }
        let has_id = |display: &&mut DisplayOutput| display.id.as_deref() == Some(id);
        let before: Vec<DisplayOutput> = self
            .displays_mut()
            .filter(has_id)
            .map(|display| display.clone())
            .collect();
        // The text of the earlier cell names the artifacts of its figures.
        self.replace_display(bundle.clone(), id, None);
        self.store_moved();
        let now = self.displays_mut().filter(has_id);
        before
            .iter()
            .zip(now)
            .any(|(before, now)| before.parts != now.parts || before.metadata != now.metadata)
    }

    /// Adds bytes of a stream. They are at `offset` in the log.
    pub(crate) fn push_text(&mut self, stream: Stream, bytes: &[u8], offset: u64) {
        let current = match self.list.last() {
            Some(Output::Stream(output)) => {
                output.stream == stream && !self.show_only.changed_at(self.list.len())
            }
            _ => false,
        };
        if !current {
            // Dropped text counts as one output, however many chunks it arrives in.
            if self.dropped_stream == Some(stream) || !self.admit_output() {
                self.dropped_stream = Some(stream);
                return;
            }
            self.streams.close(&mut self.list);
            let output = self.streams.start(stream, offset);
            self.list.push(Output::Stream(output));
        }
        self.streams.append(&mut self.list, bytes);
    }

    /// Adds a display. All displays with its id show it.
    pub(crate) fn push_display(
        &mut self,
        bundle: Bundle,
        id: Option<String>,
        result: Option<u32>,
        figures: Vec<Figure>,
    ) {
        if let Some(id) = &id {
            if self.has_display(id) {
                self.replace_display(bundle.clone(), id, Some(&figures));
            }
            if self.earlier_ids.contains(id) {
                self.store_update(bundle.clone(), id);
            }
        }
        if self.admit_output() {
            self.streams.close(&mut self.list);
            let mut display = self.new_display(bundle, id, result);
            display.figures = figures;
            self.display_bytes += display.memory_size();
            self.list.push(Output::Display(display));
        }
    }

    /// Updates all displays with an id.
    pub(crate) fn update_display(&mut self, bundle: Bundle, id: &str, figures: &[Figure]) {
        if !self.has_display(id) {
            self.store_update(bundle, id);
            return;
        }
        if self.earlier_ids.contains(id) {
            self.store_update(bundle.clone(), id);
        }
        self.replace_display(bundle, id, Some(figures));
    }

    /// Removes the artifacts of figures that are not outputs any more: an animation would fill the directory.
    fn remove_figures(&self, figures: &[Figure]) {
        for figure in figures {
            if let (Some(artifacts), Some(id)) = (&self.artifacts, figure.artifact) {
                artifacts.remove_image(id, &figure.mime);
            }
        }
    }

    /// Returns whether a display has this id.
    pub(crate) fn has_display(&self, id: &str) -> bool {
        self.display_ids().any(|other| other == id)
    }

    fn replace_display(&mut self, bundle: Bundle, id: &str, figures: Option<&[Figure]>) {
        // Frees the memory of the replaced values first.
        for output in &mut self.list {
            if let Output::Display(display) = output
                && display.id.as_deref() == Some(id)
            {
                self.display_bytes -= display.memory_size();
                display.parts.clear();
            }
        }
        let new = self.new_display(bundle, None, None);
        let mut replaced = Vec::new();
        for output in &mut self.list {
            if let Output::Display(display) = output
                && display.id.as_deref() == Some(id)
            {
                display.parts.clone_from(&new.parts);
                display.metadata.clone_from(&new.metadata);
                self.display_bytes += display.memory_size();
                if let Some(figures) = figures {
                    replaced.extend(std::mem::replace(&mut display.figures, figures.to_vec()));
                }
            }
        }
        self.remove_figures(&replaced);
    }

    /// Adds an exception.
    pub(crate) fn push_error(&mut self, traceback: Arc<Traceback>) {
        self.dropped_stream = None;
        if self.list.len() < self.outputs_limit + EXTRA_ERRORS_MAX {
            self.streams.close(&mut self.list);
            self.list.push(Output::Error(traceback));
        } else {
            self.omissions.dropped += 1;
        }
    }

    /// Sets whether the following outputs are shown only, and not stored in the notebook.
    pub(crate) fn set_show_only(&mut self, show_only: bool) {
        self.dropped_stream = None;
        self.show_only.set(show_only, self.list.len());
    }

    pub(crate) fn clear(&mut self) {
        let displays = self.displays_mut().map(|display| &mut display.figures);
        let figures: Vec<Figure> = displays.flat_map(std::mem::take).collect();
        self.remove_figures(&figures);
        self.list.clear();
        self.show_only.clear();
        self.streams.clear();
        self.display_bytes = self.updates.iter().map(update_size).sum();
        self.omissions = Omissions::default();
        self.dropped_stream = None;
    }

    /// Ends all outputs.
    pub(crate) fn finish(&mut self) {
        self.streams.finish(&mut self.list);
        self.store_moved();
    }

    /// Stores values beyond the memory limit as artifacts.
    fn store_moved(&mut self) {
        for output in &self.list {
            if let Output::Display(display) = output {
                display.store_moved(self.artifacts.as_ref(), &mut self.omissions);
            }
        }
    }

    /// Sets the artifact with the raw bytes of the streams.
    pub(crate) fn set_log(&mut self, report: &SpillReport) {
        self.log = match (report.id, &report.file) {
            (Some(id), Some(file)) => Some(StreamLog {
                id,
                file: Arc::clone(file),
                kept: report.kept,
            }),
            _ => None,
        };
    }

    pub(crate) fn omissions(&self) -> &Omissions {
        &self.omissions
    }

    /// Returns the bytes of stream text that are not in memory.
    pub(crate) fn elided_bytes(&self) -> u64 {
        self.list
            .iter()
            .map(|output| match output {
                Output::Stream(output) => output.elided_bytes(),
                _ => 0,
            })
            .sum()
    }

    /// Returns the displays, in order.
    pub(crate) fn displays_mut(&mut self) -> impl Iterator<Item = &mut DisplayOutput> {
        self.list.iter_mut().filter_map(|output| match output {
            Output::Display(display) => Some(display),
            _ => None,
        })
    }

    /// Returns the displays with their numbers among all outputs.
    pub(crate) fn numbered_displays(&self) -> impl Iterator<Item = (usize, &DisplayOutput)> {
        let numbered = self.list.iter().enumerate();
        numbered.filter_map(|(at, output)| match output {
            Output::Display(display) => Some((at, display)),
            _ => None,
        })
    }

    fn admit_output(&mut self) -> bool {
        self.dropped_stream = None;
        let admitted = self.list.len() < self.outputs_limit;
        self.omissions.dropped += u64::from(!admitted);
        admitted
    }

    fn new_display(
        &mut self,
        bundle: Bundle,
        id: Option<String>,
        result: Option<u32>,
    ) -> DisplayOutput {
        let room = self.display_bytes_limit.saturating_sub(self.display_bytes);
        let parts = bundle.data.len();
        let display = DisplayOutput::new(bundle, id, result, room, &self.scratch);
        self.omissions.lost += (parts - display.parts.len()) as u64;
        display
    }

    /// Stores the latest update of another cell's display.
    fn store_update(&mut self, bundle: Bundle, id: &str) {
        self.updates.retain(|update| {
            let keep = update.0 != id;
            if !keep {
                self.display_bytes -= update_size(update);
            }
            keep
        });
        let room = self.display_bytes_limit.saturating_sub(self.display_bytes);
        let mut update = (id.to_owned(), bundle);
        if update_size(&update) > room {
            let parts = update.1.data.len();
            update.1 = display::move_to_scratch(&self.scratch, update.1);
            self.omissions.lost += (parts - update.1.data.len()) as u64;
        }
        let size = update_size(&update);
        if self.updates.len() < UPDATES_MAX && size <= room.max(SMALL_UPDATE_SIZE) {
            self.display_bytes += size;
            self.updates.push(update);
        } else {
            self.omissions.dropped += 1;
        }
    }
}

/// Returns the size of an update in memory, in bytes.
fn update_size((id, bundle): &(String, Bundle)) -> u64 {
    id.len() as u64 + bundle.memory_size()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::bundle::Data;
    use crate::json_style::JsonStyle;

    #[test]
    fn values_that_cannot_be_stored_leave_a_placeholder() {
        let limits = Limits {
            display_bytes: 100,
            ..Limits::default()
        };
        let mut outputs = Outputs::new(&limits, None);
        let full = File::options().read(true).write(true).open("/dev/full");
        outputs.scratch = Scratch::with_file(full.unwrap());
        let bundle =
            Bundle::text("image/png", "x".repeat(2000)).with("a/b", Data::Text("c".to_owned()));
        outputs.push_display(bundle.clone(), Some("x".to_owned()), None, Vec::new());
        outputs.update_display(bundle.clone(), "elsewhere", &[]);
        outputs.finish();
        let mut written = Vec::new();
        let style = JsonStyle::compact();
        outputs.write(&mut written, &style, 0).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            r#"[{"data":{"a/b":"c","text/plain":["[image/png, 2.0 KiB] could not be stored"]},"metadata":{},"output_type":"display_data"}]"#
        );
        // The display and the update.
        assert_eq!(outputs.omissions.lost, 2);
        let [(_, left)] = outputs.updates() else {
            panic!("{:?}", outputs.updates());
        };
        assert_eq!(left.data, bundle.data[1..]);
    }
}
