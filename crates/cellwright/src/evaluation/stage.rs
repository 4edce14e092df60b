//! Where an evaluation takes place: [`Stage`] is told what happens, [`Evaluation`] is what everybody
//! else sees of it, at any moment.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cellwright_kernel::session::{Audience, CellEnd, Notice, SessionId};
use cellwright_kernel::{Description, Farewell, LateText, StopReason, Stopper};
use cellwright_output::{
    Artifacts, Capture, Event, Limits, Sink, Snapshot, Stream, displayed_text,
};
use cellwright_run::{Places, unfinished};
use tokio::sync::watch;

use super::notebook::Put;
use super::recording::Recording;
use super::report::{EvalAnswer, KernelReport, Status};
use super::verdict::Verdict;
use super::{Mark, Wish};
use crate::feed::{Beyond, Chunk, Feed};
use crate::notice::tell_session;

/// Sees an evaluation; clones see the same one.
#[derive(Clone)]
pub(crate) struct Evaluation {
    shared: Arc<Mutex<Play>>,
    phase: watch::Receiver<Status>,
}

/// What is known of an evaluation.
struct Play {
    answer: EvalAnswer,
    captures: Vec<Option<Capture>>,
    /// The cell that runs, and since when.
    running: Option<(usize, Instant)>,
    followers: Vec<Feed>,
    limits: Limits,
    artifacts: Option<Artifacts>,
    session: Option<SessionId>,
    made: Instant,
}

/// A look at an evaluation.
#[derive(Clone, Debug)]
pub(crate) struct Glance {
    pub(crate) status: Status,
    /// Which cell runs, or ran last.
    pub(crate) cell: usize,
    pub(crate) cells: usize,
    /// How long the cell has been running.
    pub(crate) elapsed: Option<Duration>,
    /// What the cell has said so far.
    pub(crate) snapshot: Option<Snapshot>,
}

/// Is told what happens.
pub(crate) struct Stage {
    sink: StageSink,
    phase: watch::Sender<Status>,
    /// What cells put out is written into their notebook, if they are from one.
    recording: Option<Recording>,
    /// Stops everything if it may not run.
    stopper: Stopper,
    /// Called when everything is known.
    at_end: Option<AtEnd>,
    ended: bool,
}

/// What is done with an answer before anybody else sees it.
pub(crate) type AtEnd = Box<dyn FnOnce(Option<SessionId>, &EvalAnswer) + Send>;

impl Evaluation {
    /// One that has not begun.
    pub(crate) fn new(
        wish: &Wish,
        session: Option<String>,
        places: Places,
        stopper: Stopper,
        at_end: Option<AtEnd>,
    ) -> io::Result<(Self, Box<Stage>)> {
        let artifacts = places.artifacts.clone();
        let recording = match &wish.order {
            Some(order) => Some(Recording::start(order.clone(), places)?),
            None => None,
        };
        let play = Play {
            answer: EvalAnswer::new(session, wish),
            captures: wish.cells.iter().map(|_| None).collect(),
            running: None,
            followers: Vec::new(),
            limits: wish.limits(),
            artifacts,
            session: None,
            made: Instant::now(),
        };
        let (sender, phase) = watch::channel(Status::Pending);
        let shared = Arc::new(Mutex::new(play));
        let stage = Stage {
            sink: StageSink {
                shared: Arc::clone(&shared),
                cell: 0,
            },
            phase: sender,
            recording,
            stopper,
            at_end,
            ended: false,
        };
        Ok((Self { shared, phase }, Box::new(stage)))
    }

    /// Everything that is said from now on.
    pub(crate) fn follow(&self, beyond: Beyond) -> Feed {
        self.catch_up(beyond).0
    }

    /// Everything that is said from now on, and what there was up to now: nothing is in both, and
    /// nothing in neither.
    pub(crate) fn catch_up(&self, beyond: Beyond) -> (Feed, Glance) {
        let feed = Feed::new(beyond);
        let mut play = lock(&self.shared);
        if self.phase.borrow().is_final() {
            feed.close();
        } else {
            play.followers.push(feed.clone());
        }
        let glance = self.glance_at(&play);
        (feed, glance)
    }

    /// Waits for the end. Cancel-safe.
    pub(crate) async fn done(&self) {
        let mut phase = self.phase.clone();
        // Without a stage nothing more will come, either.
        phase.wait_for(|status| status.is_final()).await.ok();
    }

    pub(crate) fn status(&self) -> Status {
        *self.phase.borrow()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        lock(&self.shared).answer.verdict()
    }

    pub(crate) fn with_answer<T>(&self, look: impl FnOnce(&mut EvalAnswer) -> T) -> T {
        look(&mut lock(&self.shared).answer)
    }

    pub(crate) fn glance(&self) -> Glance {
        self.glance_at(&lock(&self.shared))
    }

    fn glance_at(&self, play: &Play) -> Glance {
        let last = play.captures.iter().rposition(Option::is_some);
        let cell = play.running.map(|(cell, _)| cell).or(last).unwrap_or(0);
        Glance {
            status: self.status(),
            cell,
            cells: play.captures.len(),
            elapsed: play.running.map(|(_, since)| since.elapsed()),
            snapshot: play
                .captures
                .get(cell)
                .and_then(|capture| capture.as_ref().map(Capture::snapshot)),
        }
    }
}

impl Stage {
    fn play(&self) -> MutexGuard<'_, Play> {
        lock(&self.sink.shared)
    }

    fn end_all(&mut self, abandoned: bool) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let count = self.play().captures.len();
        for cell in 0..count {
            self.finish_cell(cell);
        }
        let written = self.recording.take().map(Recording::finish);
        let status = {
            let mut guard = self.play();
            let play = &mut *guard;
            if abandoned {
                play.answer.abandoned();
            } else {
                play.answer.close();
            }
            if let Some((written, order)) = written {
                play.answer.written(&written, &order);
            }
            play.running = None;
            play.answer.took = play.made.elapsed();
            play.answer.status
        };
        if let Some(at_end) = self.at_end.take() {
            let play = self.play();
            at_end(play.session, &play.answer);
        }
        self.phase.send_replace(status);
        for follower in self.play().followers.drain(..) {
            follower.close();
        }
    }
}

impl Stage {
    /// Ends what is captured of a cell.
    fn finish_cell(&mut self, cell: usize) {
        let mut guard = self.play();
        let play = &mut *guard;
        let Some(capture) = play.captures.get_mut(cell).and_then(Option::take) else {
            return;
        };
        let outputs = play.answer.finish(cell, capture.finish());
        let Some(report) = play.answer.cells.get_mut(cell) else {
            return;
        };
        let count = report.execution_count;
        if self.recording.is_none() {
            report.outputs = Some(Put::Captured(Box::new(outputs)));
            return;
        }
        drop(guard);
        if let Some(recording) = &self.recording {
            recording.end(cell, count, outputs);
        }
    }

    /// Tells those who look on what happens to a cell of a notebook.
    fn mark(&self, mark: impl FnOnce(&EvalAnswer) -> Option<Mark>) {
        // Of a notebook that was refused nothing runs.
        if self.recording.as_ref().is_some_and(Recording::runs) {
            let mut play = self.play();
            if let Some(mark) = mark(&play.answer) {
                play.tell(&Chunk::Mark(Box::new(mark)));
            }
        }
    }
}

impl Audience for Stage {
    fn accepted(&mut self, session: SessionId) {
        self.play().session = Some(session);
    }

    fn kernel(&mut self, description: &Description, generation: u32) {
        let mut play = self.play();
        let ready = play.made.elapsed();
        play.answer.ready.get_or_insert(ready);
        play.answer.kernel = Some(KernelReport::of(description, generation));
        drop(play);
        let Some(recording) = &mut self.recording else {
            return;
        };
        // Now that there is a kernel, and before anything runs on it.
        if let Err(error) = recording.ready(description) {
            let order = recording.order().clone();
            self.play().answer.not_committed(error, &order);
            self.stopper.stop(StopReason::Cancelled);
        }
    }

    fn begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.sink.cell = cell;
        if let Some(recording) = &self.recording {
            recording.begin(cell);
        }
        self.mark(|answer| {
            Some(Mark::Begin {
                cell: answer.which(cell)?,
            })
        });
        {
            let mut play = self.play();
            let capture = Capture::new(play.limits.clone(), play.artifacts.clone());
            if let Some(place) = play.captures.get_mut(cell) {
                *place = Some(capture);
            }
            play.running = Some((cell, Instant::now()));
            play.answer.status = Status::Running;
            let generation = play.answer.kernel.as_ref().map(|kernel| kernel.generation);
            if let Some(cell) = play.answer.cells.get_mut(cell) {
                cell.status = Status::Running;
                cell.generation = generation.unwrap_or_default();
            }
            play.tell(&Chunk::Cell);
        }
        // Nobody waits for that, so nobody is woken.
        self.phase.send_if_modified(|phase| {
            *phase = Status::Running;
            false
        });
        &mut self.sink
    }

    fn end(&mut self, cell: usize, end: CellEnd) {
        let mut play = self.play();
        play.running = None;
        let begun = matches!(play.captures.get(cell), Some(Some(_)));
        if self.recording.is_some()
            && let Some(traceback) = unfinished(&end)
            && let Some(Some(capture)) = play.captures.get_mut(cell)
        {
            // Whoever opens the notebook must not take it for one that came to its end, wherever it was.
            capture.push(Event::Aside(false));
            capture.push(Event::Raised(traceback));
        }
        play.answer.take(cell, end);
        drop(play);
        if self.recording.is_some() {
            self.finish_cell(cell);
        }
        if begun {
            self.mark(|answer| answer.end_mark(cell));
        }
    }

    fn late(&mut self, cell: usize, text: &LateText) {
        let event = Event::Text {
            stream: text.stream,
            bytes: &text.bytes,
        };
        let mut play = self.play();
        let ended = matches!(play.captures.get(cell), Some(None));
        play.push(cell, event);
        drop(play);
        if let Some(recording) = self.recording.as_ref().filter(|_| ended) {
            recording.late(cell, text.stream, &text.bytes);
        }
    }

    fn tell(&mut self, notice: Notice) {
        self.play().answer.notices.push(tell_session(&notice));
    }

    fn farewell(&mut self, farewell: &Farewell) {
        self.play().answer.farewell(farewell);
    }

    fn done(mut self: Box<Self>) {
        self.end_all(false);
    }
}

impl Drop for Stage {
    /// Whoever should have said `done` came to grief: nobody may wait for ever.
    fn drop(&mut self) {
        self.end_all(true);
    }
}

struct StageSink {
    shared: Arc<Mutex<Play>>,
    cell: usize,
}

impl Sink for StageSink {
    fn push(&mut self, event: Event<'_>) {
        lock(&self.shared).push(self.cell, event);
    }
}

impl Play {
    fn push(&mut self, cell: usize, event: Event<'_>) {
        if !self.followers.is_empty()
            && let Some(chunk) = self.chunk(&event)
        {
            self.tell(&chunk);
        }
        if let Some(Some(capture)) = self.captures.get_mut(cell) {
            capture.push(event);
        }
    }

    /// What a follower is shown of an event.
    fn chunk(&self, event: &Event<'_>) -> Option<Chunk> {
        match event {
            Event::Text { stream, bytes } => Some(Chunk::Text(*stream, bytes.to_vec())),
            Event::Display { bundle, .. } | Event::Update { bundle, .. } => {
                displayed_text(bundle, &self.limits)
                    .map(|text| Chunk::Piece(Stream::Stdout, text.into_owned()))
            }
            Event::Raised(traceback) => {
                let text = if traceback.lines.is_empty() {
                    format!("{}: {}", traceback.name, traceback.value)
                } else {
                    traceback.lines.join("\n")
                };
                Some(Chunk::Piece(Stream::Stderr, text))
            }
            // Said once, with the outcome.
            Event::Clear { .. } | Event::Aside(_) | Event::InputRefused { .. } => None,
        }
    }

    fn tell(&mut self, chunk: &Chunk) {
        // Whoever has gone must not be kept things for as long as the code runs.
        self.followers.retain(Feed::has_reader);
        for follower in &self.followers {
            follower.push(chunk.clone());
        }
    }
}

fn lock(play: &Mutex<Play>) -> MutexGuard<'_, Play> {
    play.lock().unwrap_or_else(PoisonError::into_inner)
}
