//! [`ExecutionObserver`] receives the events of a job; [`Execution`] lets any thread follow them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cellwright_kernel::session::{CellEnd, JobObserver, SessionId, SessionNotice};
use cellwright_kernel::{Description, LateText, ShutdownReport, StopHandle, StopReason};
use cellwright_output::{Artifacts, Capture, Event, Limits, Sink, Stream, displayed_text};
use cellwright_run::{Stores, incomplete_cell_error};
use cellwright_stdext::LockExt;
use tokio::sync::watch;

use super::feed::{FeedItem, OutputFeed, Overflow};
use super::notebook::CellOutputs;
use super::recording::NotebookRecorder;
use super::report::{ExecutionReport, ExecutionStatus, KernelReport};
use super::summary::ExecutionSummary;
use super::{CellEvent, ExecutionRequest};
use crate::notice::describe_session;

/// Sees an evaluation; clones see the same one.
#[derive(Clone)]
pub(crate) struct Execution {
    shared: Arc<Mutex<ExecutionState>>,
    status: watch::Receiver<ExecutionStatus>,
}

/// What is known of an evaluation.
struct ExecutionState {
    report: ExecutionReport,
    captures: Vec<Option<Capture>>,
    /// The cell that runs, and since when.
    running: Option<(usize, Instant)>,
    followers: Vec<OutputFeed>,
    limits: Limits,
    artifacts: Option<Artifacts>,
    session: Option<SessionId>,
    created: Instant,
}

/// A look at an evaluation.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionSnapshot {
    pub(crate) status: ExecutionStatus,
    /// Which cell runs, or ran last.
    pub(crate) cell: usize,
    pub(crate) cells: usize,
    /// How long the cell has been running.
    pub(crate) elapsed: Option<Duration>,
    /// The bounded text of the cell so far.
    pub(crate) text: Option<String>,
}

/// Is told what happens.
pub(crate) struct ExecutionObserver {
    sink: CellSink,
    status: watch::Sender<ExecutionStatus>,
    /// What cells put out is written into their notebook, if they are from one.
    recorder: Option<NotebookRecorder>,
    /// Stops everything if it may not run.
    stopper: StopHandle,
    /// Called when everything is known.
    on_finish: Option<OnFinish>,
    finished: bool,
}

/// What is done with an answer before anybody else sees it.
pub(crate) type OnFinish = Box<dyn FnOnce(Option<SessionId>, &ExecutionReport) + Send>;

impl Execution {
    /// One that has not begun.
    pub(crate) fn new(
        wish: &ExecutionRequest,
        session: Option<String>,
        places: Stores,
        stopper: StopHandle,
        at_end: Option<OnFinish>,
    ) -> io::Result<(Self, Box<ExecutionObserver>)> {
        let artifacts = places.artifacts.clone();
        let recording = match &wish.notebook {
            Some(order) => Some(NotebookRecorder::start(order.clone(), places)?),
            None => None,
        };
        let play = ExecutionState {
            report: ExecutionReport::new(session, wish),
            captures: wish.cells.iter().map(|_| None).collect(),
            running: None,
            followers: Vec::new(),
            limits: wish.limits(),
            artifacts,
            session: None,
            created: Instant::now(),
        };
        let (sender, phase) = watch::channel(ExecutionStatus::Pending);
        let shared = Arc::new(Mutex::new(play));
        let stage = ExecutionObserver {
            sink: CellSink {
                shared: Arc::clone(&shared),
                cell: 0,
            },
            status: sender,
            recorder: recording,
            stopper,
            on_finish: at_end,
            finished: false,
        };
        Ok((
            Self {
                shared,
                status: phase,
            },
            Box::new(stage),
        ))
    }

    /// Everything that is said from now on.
    pub(crate) fn follow(&self, beyond: Overflow) -> OutputFeed {
        self.snapshot_and_follow(beyond).0
    }

    /// Everything that is said from now on, and what there was up to now: nothing is in both, and
    /// nothing in neither.
    pub(crate) fn snapshot_and_follow(&self, beyond: Overflow) -> (OutputFeed, ExecutionSnapshot) {
        let feed = OutputFeed::new(beyond);
        let mut play = lock(&self.shared);
        if self.status.borrow().is_final() {
            feed.close();
        } else {
            play.followers.push(feed.clone());
        }
        let glance = self.snapshot_of(&play);
        (feed, glance)
    }

    /// Waits for the end. Cancel-safe.
    pub(crate) async fn done(&self) {
        let mut phase = self.status.clone();
        // Without a stage nothing more will come, either.
        phase.wait_for(|status| status.is_final()).await.ok();
    }

    pub(crate) fn status(&self) -> ExecutionStatus {
        *self.status.borrow()
    }

    pub(crate) fn summarize(&self) -> ExecutionSummary {
        lock(&self.shared).report.summarize()
    }

    pub(crate) fn with_report<T>(&self, look: impl FnOnce(&mut ExecutionReport) -> T) -> T {
        look(&mut lock(&self.shared).report)
    }

    pub(crate) fn snapshot(&self) -> ExecutionSnapshot {
        self.snapshot_of(&lock(&self.shared))
    }

    fn snapshot_of(&self, play: &ExecutionState) -> ExecutionSnapshot {
        let last = play.captures.iter().rposition(Option::is_some);
        let cell = play.running.map(|(cell, _)| cell).or(last).unwrap_or(0);
        ExecutionSnapshot {
            status: self.status(),
            cell,
            cells: play.captures.len(),
            elapsed: play.running.map(|(_, since)| since.elapsed()),
            text: play
                .captures
                .get(cell)
                .and_then(|capture| capture.as_ref().map(Capture::current_text)),
        }
    }
}

impl ExecutionObserver {
    fn state(&self) -> MutexGuard<'_, ExecutionState> {
        lock(&self.sink.shared)
    }

    fn finish_all(&mut self, abandoned: bool) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let count = self.state().captures.len();
        for cell in 0..count {
            self.finish_cell(cell);
        }
        let written = self.recorder.take().map(NotebookRecorder::finish);
        let status = {
            let mut guard = self.state();
            let play = &mut *guard;
            if abandoned {
                play.report.record_abandoned();
            } else {
                play.report.close();
            }
            if let Some((written, order)) = written {
                play.report.record_saved(&written, &order);
            }
            play.running = None;
            play.report.elapsed = play.created.elapsed();
            play.report.status
        };
        if let Some(at_end) = self.on_finish.take() {
            let play = self.state();
            at_end(play.session, &play.report);
        }
        self.status.send_replace(status);
        for follower in self.state().followers.drain(..) {
            follower.close();
        }
    }
}

impl ExecutionObserver {
    /// Ends what is captured of a cell.
    fn finish_cell(&mut self, cell: usize) {
        let mut guard = self.state();
        let play = &mut *guard;
        let Some(capture) = play.captures.get_mut(cell).and_then(Option::take) else {
            return;
        };
        let outputs = play.report.record_output(cell, capture.finish());
        let Some(report) = play.report.cells.get_mut(cell) else {
            return;
        };
        let count = report.execution_count;
        if self.recorder.is_none() {
            report.outputs = Some(CellOutputs::Captured(Box::new(outputs)));
            return;
        }
        drop(guard);
        if let Some(recording) = &self.recorder {
            recording.finish_cell(cell, count, outputs);
        }
    }

    /// Tells those who look on what happens to a cell of a notebook.
    fn send_event(&self, mark: impl FnOnce(&ExecutionReport) -> Option<CellEvent>) {
        // Of a notebook that was refused nothing runs.
        if self
            .recorder
            .as_ref()
            .is_some_and(NotebookRecorder::accepts_outputs)
        {
            let mut play = self.state();
            if let Some(mark) = mark(&play.report) {
                play.send_to_followers(&FeedItem::CellEvent(Box::new(mark)));
            }
        }
    }
}

impl JobObserver for ExecutionObserver {
    fn on_accepted(&mut self, session: SessionId) {
        self.state().session = Some(session);
    }

    fn on_kernel(&mut self, description: &Description, generation: u32) {
        let mut play = self.state();
        let ready = play.created.elapsed();
        play.report.kernel_ready.get_or_insert(ready);
        play.report.kernel = Some(KernelReport::new(description, generation));
        drop(play);
        let Some(recording) = &mut self.recorder else {
            return;
        };
        // Now that there is a kernel, and before anything runs on it.
        if let Err(error) = recording.kernel_ready(description) {
            let order = recording.order().clone();
            self.state().report.record_commit_failure(error, &order);
            self.stopper.stop(StopReason::Cancelled);
        }
    }

    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.sink.cell = cell;
        if let Some(recording) = &self.recorder {
            recording.start_cell(cell);
        }
        self.send_event(|answer| {
            Some(CellEvent::Begin {
                cell: answer.cell_ref(cell)?,
            })
        });
        {
            let mut play = self.state();
            let capture = Capture::new(play.limits.clone(), play.artifacts.clone());
            if let Some(place) = play.captures.get_mut(cell) {
                *place = Some(capture);
            }
            play.running = Some((cell, Instant::now()));
            play.report.status = ExecutionStatus::Running;
            let generation = play.report.kernel.as_ref().map(|kernel| kernel.generation);
            if let Some(cell) = play.report.cells.get_mut(cell) {
                cell.status = ExecutionStatus::Running;
                cell.generation = generation.unwrap_or_default();
            }
            play.send_to_followers(&FeedItem::CellStart);
        }
        // No task waits for this status, so none is woken.
        self.status.send_if_modified(|phase| {
            *phase = ExecutionStatus::Running;
            false
        });
        &mut self.sink
    }

    fn on_cell_end(&mut self, cell: usize, end: CellEnd) {
        let mut play = self.state();
        play.running = None;
        let begun = matches!(play.captures.get(cell), Some(Some(_)));
        if self.recorder.is_some()
            && let Some(traceback) = incomplete_cell_error(&end)
            && let Some(Some(capture)) = play.captures.get_mut(cell)
        {
            // The notebook must show that the cell did not finish, even if its output was shown only.
            capture.push(Event::ShowOnly(false));
            capture.push(Event::Raised(traceback));
        }
        play.report.record_end(cell, end);
        drop(play);
        if self.recorder.is_some() {
            self.finish_cell(cell);
        }
        if begun {
            self.send_event(|answer| answer.end_event(cell));
        }
    }

    fn on_late_text(&mut self, cell: usize, text: &LateText) {
        let event = Event::Text {
            stream: text.stream,
            bytes: &text.bytes,
        };
        let mut play = self.state();
        let ended = matches!(play.captures.get(cell), Some(None));
        play.push(cell, event);
        drop(play);
        if let Some(recording) = self.recorder.as_ref().filter(|_| ended) {
            recording.record_late(cell, text.stream, &text.bytes);
        }
    }

    fn on_notice(&mut self, notice: SessionNotice) {
        self.state().report.notices.push(describe_session(&notice));
    }

    fn on_shutdown(&mut self, farewell: &ShutdownReport) {
        self.state().report.record_shutdown(farewell);
    }

    fn on_done(mut self: Box<Self>) {
        self.finish_all(false);
    }
}

impl Drop for ExecutionObserver {
    /// Dropped without `on_done`: marks the execution as abandoned, so that no caller waits forever.
    fn drop(&mut self) {
        self.finish_all(true);
    }
}

struct CellSink {
    shared: Arc<Mutex<ExecutionState>>,
    cell: usize,
}

impl Sink for CellSink {
    fn push(&mut self, event: Event<'_>) {
        lock(&self.shared).push(self.cell, event);
    }
}

impl ExecutionState {
    fn push(&mut self, cell: usize, event: Event<'_>) {
        if !self.followers.is_empty()
            && let Some(chunk) = self.feed_item(&event)
        {
            self.send_to_followers(&chunk);
        }
        if let Some(Some(capture)) = self.captures.get_mut(cell) {
            capture.push(event);
        }
    }

    /// What a follower is shown of an event.
    fn feed_item(&self, event: &Event<'_>) -> Option<FeedItem> {
        match event {
            Event::Text { stream, bytes } => Some(FeedItem::Text(*stream, bytes.to_vec())),
            Event::Display { bundle, .. } | Event::Update { bundle, .. } => {
                displayed_text(bundle, &self.limits)
                    .map(|text| FeedItem::Display(Stream::Stdout, text.into_owned()))
            }
            Event::Raised(traceback) => {
                let text = if traceback.lines.is_empty() {
                    format!("{}: {}", traceback.name, traceback.value)
                } else {
                    traceback.lines.join("\n")
                };
                Some(FeedItem::Display(Stream::Stderr, text))
            }
            // Said once, with the outcome.
            Event::Clear { .. } | Event::ShowOnly(_) | Event::InputRefused { .. } => None,
        }
    }

    fn send_to_followers(&mut self, chunk: &FeedItem) {
        // A feed without a reader would otherwise collect items until the code ends.
        self.followers.retain(OutputFeed::has_reader);
        for follower in &self.followers {
            follower.push(chunk.clone());
        }
    }
}

fn lock(play: &Mutex<ExecutionState>) -> MutexGuard<'_, ExecutionState> {
    play.lock_ignoring_poison()
}
