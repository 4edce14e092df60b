//! The thread that writes a notebook while its cells run.
//!
//! It saves when something has changed, at most about once a second, and waits at least ten times as long as
//! the last save took. Saving a large notebook with many fast cells therefore takes at most a tenth of the
//! time.

mod cell_record;
mod lost_outputs;
mod recorded_cells;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cellwright_kernel::Description;
use cellwright_notebook::edit::draft_sequence;
use cellwright_notebook::file::{
    self, CellUpdate, ChangeRequest, DetachedFiles, GuardRequest, RecordBase, RecordReport,
    RecordRequest, Segment, Survey,
};
use cellwright_notebook::{CELL_DEPTH, NotebookError, Notice, Revision};
use cellwright_output::{
    ArtifactId, ArtifactKind, Capture, Event, JsonStyle, Limits, Outputs, Sink, Stream,
};

use self::cell_record::{CellRecord, CellTimes, join_arrays};
use self::recorded_cells::RecordedCells;
use crate::edits::to_operations;
use crate::notebook_metadata;
use crate::recorder_command::{
    CellConflict, CommitError, FinishedCell, RecordOutcome, RecorderCommand, Stores,
};
use crate::run_history::RunHistory;
use crate::run_spec::RunSpec;
use crate::spool::OutputSpool;

/// Minimum time between two saves. Cells that finish within it share a save.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum pause after a save, as a multiple of the duration of that save.
const SAVE_PAUSE_FACTOR: u32 = 10;

/// Applies the commands of a [`Recorder`](crate::Recorder) and writes the notebook.
pub(crate) struct Saver {
    spec: RunSpec,
    stores: Stores,
    /// The file to write, as it was when the cells were found in it; `None` before the commit.
    target: Option<TargetFile>,
    history: RunHistory,
    /// The files that the last saves have replaced.
    detached: DetachedFiles,
    cells: Vec<CellRecord>,
    metadata: Vec<(&'static str, String)>,
    /// State of the kernel's widgets, as JSON text.
    widget_state: Option<Arc<str>>,
    spool: OutputSpool,
    /// Outputs with display ids, by cell: a later cell may update them.
    updatable_outputs: HashMap<usize, Outputs>,
    /// Rendered late output, by cell: separate JSON arrays, because its outputs may be rendered again.
    late_outputs: HashMap<usize, Vec<Segment>>,
    /// Late output that is not rendered yet, by cell.
    late_captures: HashMap<usize, Capture>,
    dirty: bool,
    next_save: Instant,
    outcome: RecordOutcome,
}

/// The file that receives the outputs.
struct TargetFile {
    /// The file when the cells were found in it. Its survey would need more memory.
    base: RecordBase,
    /// Index in the file of each planned cell.
    cell_indexes: Vec<usize>,
    /// Revision after the last save. Another one means that another program has written the file.
    expected_revision: Revision,
    style: JsonStyle,
}

impl Saver {
    pub(crate) fn new(mut spec: RunSpec, stores: Stores) -> Self {
        // An output path that is the notebook itself means in place: cells that do not run keep their outputs.
        spec.output = spec
            .output
            .filter(|output| !is_same_file(spec.path.open_path(), output.open_path()));
        let cells = (0..spec.cells.len()).map(|_| CellRecord::default());
        Self {
            spec,
            stores,
            target: None,
            history: RunHistory::default(),
            detached: DetachedFiles::default(),
            cells: cells.collect(),
            metadata: Vec::new(),
            widget_state: None,
            spool: OutputSpool::default(),
            updatable_outputs: HashMap::new(),
            late_outputs: HashMap::new(),
            late_captures: HashMap::new(),
            dirty: false,
            next_save: Instant::now() + SAVE_INTERVAL,
            outcome: RecordOutcome::default(),
        }
    }

    /// Handles commands until the sender is dropped.
    pub(crate) fn serve(mut self, commands: &Receiver<RecorderCommand>) -> RecordOutcome {
        loop {
            let command = if self.dirty {
                let wait = self.next_save.saturating_duration_since(Instant::now());
                match commands.recv_timeout(wait) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => {
                        // A failed save is retried; `finish` reports the last failure.
                        self.save().ok();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match commands.recv() {
                    Ok(command) => command,
                    Err(_) => break,
                }
            };
            self.handle(command);
        }
        self.finish()
    }

    fn handle(&mut self, command: RecorderCommand) {
        match command {
            RecorderCommand::Commit(reply) => {
                let result = self.commit().map_err(|error| match error {
                    CommitError::Notebook(error) => self.spec.with_display_path(error).into(),
                    error => error,
                });
                // The caller waits for the reply.
                reply.send(result).ok();
            }
            RecorderCommand::SetKernel(description) => self.set_kernel(&description),
            RecorderCommand::BeginCell { cell, at } => {
                if let Some(record) = self.cells.get_mut(cell) {
                    *record = CellRecord {
                        is_started: true,
                        times: self.spec.timing.then(|| {
                            Box::new(CellTimes {
                                started_at: at,
                                finished_at: None,
                            })
                        }),
                        ..CellRecord::default()
                    };
                    self.late_outputs.remove(&cell);
                    self.dirty = true;
                }
            }
            RecorderCommand::FinishCell(finished) => self.finish_cell(*finished),
            RecorderCommand::AppendLate {
                cell,
                stream,
                bytes,
            } => {
                let artifacts = self.stores.artifacts.clone();
                let capture = self
                    .late_captures
                    .entry(cell)
                    .or_insert_with(|| Capture::new(Limits::default(), artifacts));
                capture.push(Event::Text {
                    stream,
                    bytes: &bytes,
                });
                self.dirty = true;
            }
        }
    }

    /// Applies the edits and finds the planned cells in the result.
    fn commit(&mut self) -> Result<(), CommitError> {
        let from = file::survey(self.spec.path.open_path())?;
        let target = self.target_path().to_owned();
        // Before any cell runs, not only when its outputs are saved.
        let notices = self.guard().check(&target)?;
        if self.spec.output.is_none() {
            file::check_replaceable(&target)?;
        }
        self.add_notices(notices);
        let unchanged = from.revision().matches_name(&self.spec.revision);
        let mut survey = match &self.spec.output {
            Some(output) if unchanged => {
                let baselines = self.stores.baselines.as_ref();
                let (copied, notices) =
                    file::copy(from, output.open_path(), self.guard(), baselines)?;
                self.record_save(&copied, true);
                self.add_notices(notices);
                copied
            }
            Some(_) => return Err(self.all_cells_changed()),
            None => {
                let baselines = self.stores.baselines.as_ref();
                let (history, notice) = RunHistory::begin(baselines, &target, from.revision());
                self.history = history;
                self.add_notices(Vec::from_iter(notice));
                from
            }
        };
        if !self.spec.edits.is_empty() {
            let operations = to_operations(&self.spec.edits)?;
            let request = ChangeRequest {
                revision: Some(&self.spec.revision),
                baselines: self.stores.baselines.as_ref(),
                guard: self.guard(),
                ..ChangeRequest::default()
            };
            let changed = file::change(&target, request, &|cells| {
                draft_sequence(cells, &operations)
            })?;
            survey = file::survey(&target)?;
            self.record_save(&survey, changed.before != Some(changed.after));
            let mut notices = changed.notices;
            notices.retain(Notice::is_about_open_notebook);
            self.add_notices(notices);
        }
        let found: Vec<Option<usize>> = self
            .spec
            .cells
            .iter()
            .map(|planned| planned.find_in(&survey))
            .collect();
        let missing = found.iter().zip(self.spec.cells.indexes());
        let missing: Vec<usize> = missing
            .filter(|(found, _)| found.is_none())
            .map(|(_, index)| index)
            .collect();
        if !missing.is_empty() {
            return Err(CommitError::CellsChanged {
                cells: missing,
                edited: !self.spec.edits.is_empty(),
            });
        }
        let style = survey.style();
        let style = JsonStyle {
            indent: style.unit.clone(),
            newline: style.newline.clone(),
            colon: style.colon.clone(),
            // Each output begins a line, so no space follows the comma.
            comma: if style.newline.is_empty() {
                style.comma.clone()
            } else {
                ",".to_owned()
            },
            ascii: style.ascii,
        };
        self.dirty = self.spec.output.is_some() && !self.spec.cells.is_empty();
        self.outcome.revision = Some(survey.revision());
        self.target = Some(TargetFile {
            cell_indexes: found.into_iter().flatten().collect(),
            expected_revision: survey.revision(),
            style,
            base: survey.record_base().sharing(self.spec.cells.texts()),
        });
        Ok(())
    }

    /// Stores the revision of the file, and counts a save if its content changed.
    fn record_save(&mut self, survey: &Survey, changed: bool) {
        self.outcome.saves += usize::from(changed);
        self.outcome.revision = Some(survey.revision());
    }

    fn guard(&self) -> GuardRequest<'_> {
        GuardRequest {
            guard: self.stores.guard.as_deref(),
            force: self.spec.force,
        }
    }

    /// Adds notices that the outcome does not have yet: every save reports the same.
    fn add_notices(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            if !self.outcome.notices.contains(&notice) {
                self.outcome.notices.push(notice);
            }
        }
    }

    fn all_cells_changed(&self) -> CommitError {
        CommitError::CellsChanged {
            cells: self.spec.cells.indexes().collect(),
            edited: false,
        }
    }

    fn target_path(&self) -> &Path {
        self.spec.written_file().open_path()
    }

    /// Computes the notebook metadata to write for this kernel.
    fn set_kernel(&mut self, description: &Description) {
        if let Some(target) = &self.target {
            let current = target.base.metadata();
            self.metadata =
                notebook_metadata::kernel_metadata(current, description, self.spec.kernel_named);
            self.dirty |= !self.metadata.is_empty();
        }
    }

    fn finish_cell(&mut self, finished: FinishedCell) {
        let FinishedCell {
            cell,
            execution_count,
            outputs,
            finished_at,
            widget_state,
        } = finished;
        self.widget_state = widget_state.or(self.widget_state.take());
        self.dirty = true;
        let mut changed: Vec<usize> = Vec::new();
        for (id, bundle) in outputs.updates() {
            for (other, displayed) in &mut self.updatable_outputs {
                if displayed.apply_update(id, bundle) {
                    changed.push(*other);
                }
            }
        }
        for other in changed {
            if let Some(displayed) = self.updatable_outputs.remove(&other) {
                self.render_outputs(other, &displayed);
                self.updatable_outputs.insert(other, displayed);
            }
        }
        self.render_outputs(cell, &outputs);
        if let Some(record) = self.cells.get_mut(cell) {
            if let Some(times) = &mut record.times {
                times.finished_at = Some(finished_at);
            }
            record.execution_count = execution_count;
        }
        if outputs.has_display_ids() {
            self.updatable_outputs.insert(cell, outputs);
        }
    }

    /// Renders the outputs of a cell as JSON in the layout of the file.
    fn render_outputs(&mut self, cell: usize, outputs: &Outputs) {
        let Some(target) = &self.target else {
            return;
        };
        let style = &target.style;
        let rendered = if outputs.is_empty() {
            Ok(None)
        } else {
            self.spool
                .store(|out| outputs.write(out, style, CELL_DEPTH))
                .map(Some)
        };
        let array = match rendered {
            Ok(Some(array))
                if self
                    .spec
                    .outputs_limit
                    .is_some_and(|limit| array.length() > limit) =>
            {
                Some(self.move_to_artifact(cell, array))
            }
            Ok(array) => array,
            Err(error) => {
                let message = format!("[the outputs of this cell could not be stored: {error}]\n");
                self.render_message(&message)
            }
        };
        if let Some(record) = self.cells.get_mut(cell) {
            record.outputs = array.map(Box::new);
        }
    }

    /// Stores outputs that are too large for the notebook in an artifact. Returns the message that replaces
    /// them, or the outputs themselves if they cannot be stored.
    fn move_to_artifact(&mut self, cell: usize, array: Segment) -> Segment {
        let Some(id) = self.store_artifact(|write| array.for_each_chunk(write)) else {
            return array;
        };
        // Outputs may be rendered again: only the last artifact counts.
        self.outcome
            .moved_outputs
            .retain(|(other, _)| *other != cell);
        self.outcome.moved_outputs.push((cell, id));
        let size = cellwright_output::ByteSize(array.length());
        self.render_message(&format!("[outputs of {size} are in {id}]\n"))
            .unwrap_or(array)
    }

    /// An array with one stderr output, for the reader of the notebook.
    fn render_message(&mut self, message: &str) -> Option<Segment> {
        let mut capture = Capture::new(Limits::default(), None);
        capture.push(Event::Text {
            stream: Stream::Stderr,
            bytes: message.as_bytes(),
        });
        let outputs = capture.finish().outputs;
        let style = &self.target.as_ref()?.style;
        self.spool
            .store(|out| outputs.write(out, style, CELL_DEPTH))
            .ok()
    }

    /// Creates an artifact with the bytes that `fill` writes.
    fn store_artifact(
        &self,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> Option<ArtifactId> {
        let mut recording = self
            .stores
            .artifacts
            .as_ref()?
            .create(ArtifactKind::Json)
            .ok()?;
        fill(&mut |bytes| recording.write(bytes)).ok()?;
        recording.flush().ok()?;
        Some(recording.id())
    }

    /// Renders late output and appends it to the outputs of its cell.
    fn render_late(&mut self) {
        let Some(target) = &self.target else {
            return;
        };
        for (cell, capture) in self.late_captures.drain() {
            let outputs = capture.finish().outputs;
            if outputs.is_empty() {
                continue;
            }
            let style = &target.style;
            let array = self
                .spool
                .store(|out| outputs.write(out, style, CELL_DEPTH));
            if let Ok(array) = array {
                self.late_outputs.entry(cell).or_default().push(array);
            }
        }
    }

    fn save(&mut self) -> Result<(), NotebookError> {
        self.render_late();
        // A save needs memory for one survey of a notebook with very many cells, not for two.
        self.outcome.survey = None;
        let started = Instant::now();
        let result = self.write_notebook();
        self.next_save = Instant::now() + SAVE_INTERVAL.max(started.elapsed() * SAVE_PAUSE_FACTOR);
        let mut recorded = match result {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.dirty = false;
        self.add_notices(std::mem::take(&mut recorded.notices));
        self.outcome.merged |= recorded.merged;
        let last = self.target.as_ref().map(|target| target.expected_revision);
        let last = last.filter(|_| self.outcome.saves > 0);
        let path = self.spec.written_file().open_path();
        self.history.record(path, &recorded, last);
        self.record_save(&recorded.survey, recorded.changed);
        if let Some(target) = &mut self.target {
            target.expected_revision = recorded.survey.revision();
        }
        let conflicts = recorded.conflicts.iter();
        self.outcome.conflicts = conflicts
            .map(|&(cell, reason)| CellConflict { cell, reason })
            .collect();
        self.outcome.cell_indexes = recorded.cell_indexes;
        self.outcome.survey = Some(recorded.survey);
        Ok(())
    }

    /// Writes the notebook. Returns `None` if there is nothing to write.
    fn write_notebook(&self) -> Result<Option<RecordReport>, NotebookError> {
        let Some(target) = &self.target else {
            return Ok(None);
        };
        // In another output file, cells that have not run must not keep the outputs of the source notebook.
        let is_written = |record: &CellRecord| record.is_started || self.spec.output.is_some();
        let cells = self.cells.iter().enumerate();
        let cells: Vec<usize> = cells
            .filter(|(_, record)| is_written(record))
            .map(|(cell, _)| cell)
            .collect();
        let updates = RecordedCells {
            saver: self,
            target,
            cells: &cells,
        };
        let mut recorded = file::record(RecordRequest {
            path: self.target_path(),
            base: &target.base,
            updates: &updates,
            metadata: &self.metadata,
            expected: target.expected_revision,
            guard: self.guard(),
            detached: &self.detached,
            baselines: self.stores.baselines.as_ref(),
            on_step: None,
        })?;
        // Translate positions among the entries to positions among the planned cells.
        for (cell, _) in &mut recorded.conflicts {
            *cell = cells[*cell];
        }
        let indexes = &mut recorded.cell_indexes;
        indexes.resize(self.cells.len(), None);
        for (at, &cell) in cells.iter().enumerate().rev() {
            indexes.swap(at, cell);
        }
        Ok(Some(recorded))
    }

    /// The arrays of outputs of a cell, in order.
    fn output_arrays(&self, cell: usize) -> Vec<Segment> {
        let late = self.late_outputs.get(&cell);
        let outputs = self.cells[cell].outputs.as_deref().into_iter();
        outputs.chain(late.into_iter().flatten()).cloned().collect()
    }

    fn entry(&self, cell: usize, index: usize, style: &JsonStyle) -> CellUpdate {
        let record = &self.cells[cell];
        let times = record.times.as_ref();
        let times = times.and_then(|times| Some((times.started_at, times.finished_at?)));
        CellUpdate {
            cell: index,
            execution_count: record.execution_count.map(u64::from),
            outputs: join_arrays(&self.output_arrays(cell), style),
            metadata: times.map(|(started, finished)| {
                (
                    "execution",
                    notebook_metadata::execution_metadata(started, finished),
                )
            }),
        }
    }

    fn finish(mut self) -> RecordOutcome {
        // Only once: a second value would look like the change of another program.
        if let Some(state) = self.widget_state.take() {
            self.metadata.push(("widgets", state.to_string()));
            self.dirty = true;
        }
        // The last save may have replaced a file that another program has written into since.
        self.dirty |= self.outcome.saves > 0 && self.detached.has_changes();
        if self.dirty
            && let Err(error) = self.save()
        {
            self.outcome.failure = Some(self.spec.with_display_path(error));
            // The report has the outputs of the save before, if its file is still there.
            let saved = file::survey(self.target_path()).ok();
            let revision = self.outcome.revision;
            self.outcome.survey = saved.filter(|saved| Some(saved.revision()) == revision);
        }
        let lost: Vec<usize> = match &self.outcome.failure {
            Some(_) => (0..self.cells.len())
                .filter(|&cell| self.cells[cell].is_started)
                .collect(),
            None => self.outcome.conflicts.iter().map(|one| one.cell).collect(),
        };
        // A cell that has not run has no outputs to lose.
        let lost: Vec<usize> = lost
            .into_iter()
            .filter(|&cell| self.cells[cell].is_started)
            .collect();
        if !lost.is_empty() {
            self.outcome.artifact = self.store_lost_outputs(&lost);
        }
        self.outcome
    }
}

/// Whether two paths name the same file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
