//! The thread that writes a notebook while its cells run.
//!
//! It writes when something has changed, but not more often than about once a second, and leaves ten
//! times as long as the last save took: a large notebook of many quick cells costs no more than a
//! tenth of the time.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use cellwright_kernel::Description;
use cellwright_notebook::edit::sequence;
use cellwright_notebook::file::{self, Entry, Piece, Record, Recorded, Request, Survey};
use cellwright_notebook::{CELL_DEPTH, NotebookError, Revision};
use cellwright_output::{ArtifactId, Capture, Event, Kind, Limits, Outputs, Sink, Stream, Style};

use crate::about;
use crate::order::{Order, operations};
use crate::recorder::{CommitError, Conflict, Ended, Places, Word, Written};
use crate::spool::Spool;

/// How long cells share a save at the least.
const PAUSE: Duration = Duration::from_secs(1);

/// How much longer than a save the pause after it is.
const REST: u32 = 10;

pub(crate) struct Saver {
    order: Order,
    places: Places,
    /// The file that is written, and what it was when the cells were found in it.
    ground: Option<Ground>,
    cells: Vec<State>,
    metadata: Vec<(&'static str, String)>,
    spool: Spool,
    /// Outputs that a later cell may change, because they have display ids.
    open: HashMap<usize, Outputs>,
    /// What cells said after their end and is not rendered yet.
    late: HashMap<usize, Capture>,
    dirty: bool,
    next: Instant,
    written: Written,
}

struct Ground {
    ran: Survey,
    /// Where the cells are in it.
    indexes: Vec<usize>,
    expected: Revision,
    style: Style,
}

/// What is known of a cell that was to run.
#[derive(Default)]
struct State {
    begun: Option<SystemTime>,
    ended: Option<SystemTime>,
    count: Option<u32>,
    /// What it put out until its end: an array.
    outputs: Option<Piece>,
    /// What it said after that, in arrays of its own: what it put out may be rendered anew.
    late: Vec<Piece>,
}

impl State {
    /// Arrays of outputs, one behind the other.
    fn arrays(&self) -> Vec<Piece> {
        self.outputs.iter().chain(&self.late).cloned().collect()
    }
}

impl Saver {
    pub(crate) fn new(mut order: Order, places: Places) -> Self {
        // Onto itself is in place: what does not run keeps what it has.
        order.output = order.output.filter(|output| !is_same(&order.path, output));
        let cells = order.cells.iter().map(|_| State::default()).collect();
        Self {
            order,
            places,
            ground: None,
            cells,
            metadata: Vec::new(),
            spool: Spool::default(),
            open: HashMap::new(),
            late: HashMap::new(),
            dirty: false,
            next: Instant::now() + PAUSE,
            written: Written::default(),
        }
    }

    /// Takes words until nobody is left who says any.
    pub(crate) fn serve(mut self, words: &Receiver<Word>) -> Written {
        loop {
            let word = if self.dirty {
                let patience = self.next.saturating_duration_since(Instant::now());
                match words.recv_timeout(patience) {
                    Ok(word) => word,
                    Err(RecvTimeoutError::Timeout) => {
                        // What cannot be written now may be possible later; the end tells.
                        self.save().ok();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match words.recv() {
                    Ok(word) => word,
                    Err(_) => break,
                }
            };
            self.take(word);
        }
        self.finish()
    }

    fn take(&mut self, word: Word) {
        match word {
            Word::Commit(answer) => {
                let result = self.commit();
                // Whoever asked has not gone.
                answer.send(result).ok();
            }
            Word::Kernel(description) => self.kernel(&description),
            Word::Begun { cell, at } => {
                if let Some(state) = self.cells.get_mut(cell) {
                    *state = State {
                        begun: Some(at),
                        ..State::default()
                    };
                    self.dirty = true;
                }
            }
            Word::Ended(ended) => self.ended(*ended),
            Word::Late {
                cell,
                stream,
                bytes,
            } => {
                let artifacts = self.places.artifacts.clone();
                let capture = self
                    .late
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

    /// Makes the edits, and finds the cells in what comes of it.
    fn commit(&mut self) -> Result<(), CommitError> {
        let from = file::survey(&self.order.path)?;
        let target = self.target().to_owned();
        let unchanged = from.revision().is_named_by(&self.order.revision);
        let mut ran = match &self.order.output {
            Some(output) if unchanged => {
                let copied = file::copy(&from, output)?;
                self.wrote(&copied, true);
                copied
            }
            Some(_) => return Err(self.changed_before()),
            None => from,
        };
        if !self.order.edits.is_empty() {
            let operations = operations(&self.order.edits)?;
            let request = Request {
                revision: Some(&self.order.revision),
                baselines: self.places.baselines.as_ref(),
                ..Request::default()
            };
            let changed = file::change(&target, request, &|cells| sequence(cells, &operations))?;
            ran = file::survey(&target)?;
            self.wrote(&ran, changed.before != Some(changed.after));
        }
        let found: Vec<Option<usize>> = self
            .order
            .cells
            .iter()
            .map(|planned| planned.find(&ran))
            .collect();
        let missing = || found.iter().zip(&self.order.cells);
        let missing: Vec<usize> = missing()
            .filter(|(found, _)| found.is_none())
            .map(|(_, planned)| planned.index)
            .collect();
        if !missing.is_empty() {
            return Err(CommitError::Changed {
                cells: missing,
                edited: !self.order.edits.is_empty(),
            });
        }
        let style = ran.style();
        let style = Style {
            unit: style.unit.clone(),
            newline: style.newline.clone(),
            colon: style.colon.clone(),
            // What follows it on its line is nothing.
            comma: if style.newline.is_empty() {
                style.comma.clone()
            } else {
                ",".to_owned()
            },
            ascii: style.ascii,
        };
        self.dirty = self.order.output.is_some() && !self.order.cells.is_empty();
        self.written.revision = Some(ran.revision());
        self.ground = Some(Ground {
            indexes: found.into_iter().flatten().collect(),
            expected: ran.revision(),
            style,
            ran,
        });
        Ok(())
    }

    /// The file is this one now, and perhaps was another before.
    fn wrote(&mut self, survey: &Survey, changed: bool) {
        self.written.saves += usize::from(changed);
        self.written.revision = Some(survey.revision());
    }

    fn changed_before(&self) -> CommitError {
        CommitError::Changed {
            cells: self.order.cells.iter().map(|cell| cell.index).collect(),
            edited: false,
        }
    }

    fn target(&self) -> &Path {
        self.order.output.as_deref().unwrap_or(&self.order.path)
    }

    /// What the notebook is to say about its kernel.
    fn kernel(&mut self, description: &Description) {
        if let Some(ground) = &self.ground {
            let said = ground.ran.metadata();
            self.metadata = about::kernel(said, description, self.order.kernel_named);
            self.dirty |= !self.metadata.is_empty();
        }
    }

    fn ended(&mut self, ended: Ended) {
        let Ended {
            cell,
            count,
            outputs,
            at,
        } = ended;
        self.dirty = true;
        let mut changed: Vec<usize> = Vec::new();
        for (id, bundle) in outputs.updates() {
            for (other, kept) in &mut self.open {
                if kept.apply(id, bundle) {
                    changed.push(*other);
                }
            }
        }
        for other in changed {
            if let Some(kept) = self.open.remove(&other) {
                self.render(other, &kept);
                self.open.insert(other, kept);
            }
        }
        self.render(cell, &outputs);
        if let Some(state) = self.cells.get_mut(cell) {
            state.ended = Some(at);
            state.count = count;
        }
        if outputs.has_display_ids() {
            self.open.insert(cell, outputs);
        }
    }

    /// Makes JSON of what a cell put out, in the layout of the file.
    fn render(&mut self, cell: usize, outputs: &Outputs) {
        let Some(ground) = &self.ground else {
            return;
        };
        let style = &ground.style;
        let kept = if outputs.is_empty() {
            Ok(None)
        } else {
            self.spool
                .keep(|out| outputs.write(out, style, CELL_DEPTH))
                .map(Some)
        };
        let array = match kept {
            Ok(Some(array)) if self.order.largest.is_some_and(|most| array.length() > most) => {
                Some(self.moved(cell, array))
            }
            Ok(array) => array,
            Err(error) => {
                let words = format!("[what this cell put out could not be kept: {error}]\n");
                self.saying(&words)
            }
        };
        if let Some(state) = self.cells.get_mut(cell) {
            state.outputs = array;
        }
    }

    /// Puts outputs that are too large for the notebook somewhere else.
    fn moved(&mut self, cell: usize, array: Piece) -> Piece {
        let Some(id) = self.store(|keep| array.copy(keep)) else {
            return array;
        };
        // Of what is rendered anew the last counts.
        self.written.moved.retain(|(other, _)| *other != cell);
        self.written.moved.push((cell, id));
        let size = cellwright_output::Bytes(array.length());
        self.saying(&format!("[outputs of {size} are in {id}]\n"))
            .unwrap_or(array)
    }

    /// An array of outputs that says something to whoever reads the notebook.
    fn saying(&mut self, words: &str) -> Option<Piece> {
        let mut capture = Capture::new(Limits::default(), None);
        capture.push(Event::Text {
            stream: Stream::Stderr,
            bytes: words.as_bytes(),
        });
        let outputs = capture.finish().outputs;
        let style = &self.ground.as_ref()?.style;
        self.spool
            .keep(|out| outputs.write(out, style, CELL_DEPTH))
            .ok()
    }

    /// Puts something into an artifact.
    fn store(
        &self,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> Option<ArtifactId> {
        let mut recording = self.places.artifacts.as_ref()?.create(Kind::Json).ok()?;
        fill(&mut |bytes| recording.write(bytes)).ok()?;
        recording.flush().ok()?;
        Some(recording.id())
    }

    /// Renders what came late behind what the cell put out before.
    fn render_late(&mut self) {
        let Some(ground) = &self.ground else {
            return;
        };
        for (cell, capture) in self.late.drain() {
            let outputs = capture.finish().outputs;
            if outputs.is_empty() {
                continue;
            }
            let style = &ground.style;
            let array = self.spool.keep(|out| outputs.write(out, style, CELL_DEPTH));
            if let (Some(state), Ok(array)) = (self.cells.get_mut(cell), array) {
                state.late.push(array);
            }
        }
    }

    fn save(&mut self) -> Result<(), NotebookError> {
        self.render_late();
        let begun = Instant::now();
        let result = self.write();
        self.next = Instant::now() + PAUSE.max(begun.elapsed() * REST);
        let recorded = match result {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.dirty = false;
        self.written.merged |= recorded.merged;
        self.wrote(&recorded.survey, recorded.changed);
        if let Some(ground) = &mut self.ground {
            ground.expected = recorded.survey.revision();
        }
        let conflicts = recorded.conflicts.iter();
        self.written.conflicts = conflicts
            .map(|(cell, why)| Conflict {
                cell: *cell,
                why: *why,
            })
            .collect();
        self.written.places = recorded.places;
        self.written.survey = Some(recorded.survey);
        Ok(())
    }

    /// `None` if there is nothing to be written.
    fn write(&self) -> Result<Option<Recorded>, NotebookError> {
        let Some(ground) = &self.ground else {
            return Ok(None);
        };
        let entries: Vec<(usize, Entry)> = self
            .cells
            .iter()
            .enumerate()
            // In a file of its own nothing is old: what is there is from the notebook it is made from.
            .filter(|(_, state)| state.begun.is_some() || self.order.output.is_some())
            .map(|(cell, state)| (cell, self.entry(state, ground.indexes[cell], &ground.style)))
            .collect();
        let (cells, entries): (Vec<usize>, Vec<Entry>) = entries.into_iter().unzip();
        let mut recorded = file::record(Record {
            path: self.target(),
            ran: &ground.ran,
            entries: &entries,
            metadata: &self.metadata,
            expected: ground.expected,
            watch: None,
        })?;
        // From places among the entries to places among the cells.
        for (cell, _) in &mut recorded.conflicts {
            *cell = cells[*cell];
        }
        let mut places = vec![None; self.cells.len()];
        for (cell, place) in cells.iter().zip(&recorded.places) {
            places[*cell] = *place;
        }
        recorded.places = places;
        Ok(Some(recorded))
    }

    fn entry(&self, state: &State, index: usize, style: &Style) -> Entry {
        let times = state.begun.zip(state.ended);
        Entry {
            cell: index,
            count: state.count.map(u64::from),
            outputs: joined(&state.arrays(), style),
            metadata: times
                .filter(|_| self.order.timing)
                .map(|(begun, ended)| ("execution", about::times(begun, ended))),
        }
    }

    fn finish(mut self) -> Written {
        if self.dirty
            && let Err(error) = self.save()
        {
            self.written.failure = Some(error);
        }
        let lost: Vec<usize> = match &self.written.failure {
            Some(_) => (0..self.cells.len())
                .filter(|&cell| self.cells[cell].begun.is_some())
                .collect(),
            None => self.written.conflicts.iter().map(|one| one.cell).collect(),
        };
        // What says that a cell has not run yet is no loss.
        let lost: Vec<usize> = lost
            .into_iter()
            .filter(|&cell| self.cells[cell].begun.is_some())
            .collect();
        if !lost.is_empty() {
            self.written.artifact = self.keep_elsewhere(&lost);
        }
        self.written
    }

    /// Keeps the outputs of cells that could not go into the notebook.
    fn keep_elsewhere(&self, cells: &[usize]) -> Option<ArtifactId> {
        let style = &self.ground.as_ref()?.style;
        self.store(|keep| {
            keep(b"{\"path\":")?;
            keep(&serde_json::to_vec(&self.target().display().to_string())?)?;
            keep(b",\"cells\":[")?;
            for (at, &cell) in cells.iter().enumerate() {
                let (planned, state) = (&self.order.cells[cell], &self.cells[cell]);
                let about = serde_json::json!({
                    "index": planned.index,
                    "id": planned.id,
                    "source": planned.source,
                    "execution_count": state.count,
                });
                let about = about.to_string();
                if at > 0 {
                    keep(b",")?;
                }
                keep(&about.as_bytes()[..about.len() - 1])?;
                keep(b",\"outputs\":")?;
                let outputs = joined(&state.arrays(), style);
                if outputs.is_empty() {
                    keep(b"[]")?;
                }
                for piece in outputs {
                    piece.copy(keep)?;
                }
                keep(b"}")?;
            }
            keep(b"]}\n")
        })
    }
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Several arrays as one.
fn joined(arrays: &[Piece], style: &Style) -> Vec<Piece> {
    let [first, rest @ ..] = arrays else {
        return Vec::new();
    };
    if rest.is_empty() {
        return vec![first.clone()];
    }
    // `[` in front, and the bracket behind with the line break that it stands on.
    let line = if style.newline.is_empty() {
        0
    } else {
        style.newline.len() + style.unit.len() * CELL_DEPTH
    };
    let close = (line + 1) as u64;
    let mut pieces = vec![first.slice(0, first.length() - close)];
    for (at, array) in rest.iter().enumerate() {
        pieces.push(Piece::Bytes(style.comma.as_bytes().into()));
        let end = if at + 1 == rest.len() { 0 } else { close };
        pieces.push(array.slice(1, array.length() - end));
    }
    pieces
}
