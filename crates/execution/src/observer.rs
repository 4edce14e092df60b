//! [`ExecutionObserver`] receives the events of a job; [`Execution`] lets any thread follow them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cellwright_diagnostics::notice::{UserNotice, describe_session};
use cellwright_kernel::session::{CellEnd, JobObserver, SessionId, SessionNotice};
use cellwright_kernel::{Description, LateText, ShutdownReport, StopHandle, StopReason};
use cellwright_output::{Artifacts, Capture, Event, Limits, Sink, Stream};
use cellwright_stdext::LockExt;
use tokio::sync::watch;

use super::earlier_displays::EarlierDisplays;
use super::feed::{FeedItem, OutputFeed, Overflow};
use super::notebook_recorder::NotebookRecorder;
use super::progress_line::ProgressLine;
use super::report::{CellOutputs, ExecutionReport, ExecutionStatus, KernelReport};
use super::report_builder::ReportBuilder;
use super::{CellEvent, ExecutionRequest};
use crate::report_document::milliseconds;
use crate::{DurationStore, Stores, incomplete_cell_error};

/// A handle to an execution; clones share it.
#[derive(Clone)]
pub struct Execution {
    state: Arc<Mutex<ExecutionState>>,
    status: watch::Receiver<ExecutionStatus>,
}

struct ExecutionState {
    builder: ReportBuilder,
    /// The capture of each cell that started and whose output may still grow.
    captures: Vec<Option<Box<Capture>>>,
    /// Position of the cell that runs, or ran last.
    last_started: Option<usize>,
    earlier_displays: EarlierDisplays,
    progress_line: ProgressLine,
    /// The running cell and its start.
    running: Option<(usize, Instant)>,
    followers: Vec<OutputFeed>,
    limits: Limits,
    artifacts: Option<Artifacts>,
    session: Option<SessionId>,
    created: Instant,
}

/// The progress of an execution.
#[derive(Clone, Debug)]
pub struct ExecutionSnapshot {
    /// How far the execution is.
    pub status: ExecutionStatus,
    /// Position of the cell that runs, or ran last.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    /// Time since the running cell started.
    pub elapsed: Option<Duration>,
    /// The bounded text of the cell so far.
    pub text: Option<String>,
}

/// Captures the output of a job, builds its report and records its notebook.
pub struct ExecutionObserver {
    sink: CellSink,
    status: watch::Sender<ExecutionStatus>,
    /// Saves the outputs, if the cells are from a notebook.
    recorder: Option<NotebookRecorder>,
    /// Stops the job if its notebook cannot be edited.
    stop_handle: StopHandle,
    on_finish: Option<FinishCallback>,
    durations: Option<DurationStore>,
    finished: bool,
}

/// Receives the report before any client does.
pub type FinishCallback = Box<dyn FnOnce(Option<SessionId>, &ExecutionReport) + Send>;

impl Execution {
    /// Creates an execution and the observer for its job.
    pub fn new(
        request: &ExecutionRequest,
        session: Option<String>,
        stores: Stores,
        stop_handle: StopHandle,
        on_finish: Option<FinishCallback>,
    ) -> io::Result<(Self, Box<ExecutionObserver>)> {
        let artifacts = stores.artifacts.clone();
        let durations = stores.durations.clone();
        let recorder = match &request.notebook {
            Some(spec) => Some(NotebookRecorder::start(spec.clone(), stores)?),
            None => None,
        };
        let state = Arc::new(Mutex::new(ExecutionState {
            builder: ReportBuilder::new(session, request),
            captures: (0..request.cell_count()).map(|_| None).collect(),
            last_started: None,
            earlier_displays: EarlierDisplays::default(),
            progress_line: ProgressLine::default(),
            running: None,
            followers: Vec::new(),
            limits: request.limits(),
            artifacts,
            session: None,
            created: Instant::now(),
        }));
        let (sender, status) = watch::channel(ExecutionStatus::Pending);
        let observer = ExecutionObserver {
            sink: CellSink {
                state: Arc::clone(&state),
                cell: 0,
            },
            status: sender,
            recorder,
            stop_handle,
            on_finish,
            durations,
            finished: false,
        };
        Ok((Self { state, status }, Box::new(observer)))
    }

    /// Returns a feed of all following items.
    pub fn follow(&self, overflow: Overflow) -> OutputFeed {
        self.snapshot_and_follow(overflow).0
    }

    /// Returns the progress so far and a feed of all following items; no output is in both or in neither.
    pub fn snapshot_and_follow(&self, overflow: Overflow) -> (OutputFeed, ExecutionSnapshot) {
        let feed = OutputFeed::new(overflow);
        let mut state = lock(&self.state);
        if self.status.borrow().is_final() {
            feed.close();
        } else {
            state.followers.push(feed.clone());
        }
        let snapshot = self.snapshot_of(&state);
        (feed, snapshot)
    }

    /// Returns a feed that begins with the kernel, the running cell and its output so far, as a follower from the start
    /// would know them, and continues with all following items.
    pub fn follow_from_progress(&self, overflow: Overflow) -> OutputFeed {
        let feed = OutputFeed::new(overflow);
        let mut state = lock(&self.state);
        if self.status.borrow().is_final() {
            feed.close();
            return feed;
        }
        let event = |event| FeedItem::CellEvent(Box::new(event));
        let report = &state.builder.report;
        if let (Some(kernel), Some(ready)) = (&report.kernel, report.kernel_ready) {
            feed.push(event(CellEvent::KernelReady {
                kernel: kernel.clone(),
                kernel_ready_ms: milliseconds(ready),
            }));
        }
        let running = state.running.map(|(cell, _)| cell);
        if let Some(cell) = running.and_then(|cell| state.builder.cell_ref(cell)) {
            feed.push(event(CellEvent::Begin { cell }));
            let text = self.snapshot_of(&state).text.unwrap_or_default();
            if !text.is_empty() {
                feed.push(FeedItem::Text(Stream::Stdout, text.into_bytes()));
            }
        }
        state.followers.push(feed.clone());
        feed
    }

    /// Waits for the end. Cancel-safe.
    pub async fn done(&self) {
        let mut status = self.status.clone();
        // The observer sends a final status before it is dropped.
        status.wait_for(|status| status.is_final()).await.ok();
    }

    /// The current status.
    pub fn status(&self) -> ExecutionStatus {
        *self.status.borrow()
    }

    /// Sets the run id and adds notices.
    pub fn annotate(&self, run: Option<String>, notices: impl IntoIterator<Item = UserNotice>) {
        let report = &mut lock(&self.state).builder.report;
        report.run = run;
        report.notices.extend(notices);
    }

    /// Calls `read` with the report, which is complete once the status is final.
    pub fn with_report<T>(&self, read: impl FnOnce(&ExecutionReport) -> T) -> T {
        read(&lock(&self.state).builder.report)
    }

    /// Takes the report of an execution that has ended: those of very many cells are not copied.
    pub(crate) fn take_report(&self) -> ExecutionReport {
        let report = &mut lock(&self.state).builder.report;
        let cells = std::mem::take(&mut report.cells);
        ExecutionReport {
            cells,
            ..report.clone()
        }
    }

    /// The progress so far.
    pub fn snapshot(&self) -> ExecutionSnapshot {
        self.snapshot_of(&lock(&self.state))
    }

    fn snapshot_of(&self, state: &ExecutionState) -> ExecutionSnapshot {
        let cell = state.last_started.unwrap_or(0);
        let capture = state.captures.get(cell).and_then(Option::as_deref);
        ExecutionSnapshot {
            status: self.status(),
            cell,
            cells: state.captures.len(),
            elapsed: state.running.map(|(_, since)| since.elapsed()),
            text: capture.map(Capture::current_text),
        }
    }
}

impl ExecutionObserver {
    fn state(&self) -> MutexGuard<'_, ExecutionState> {
        lock(&self.sink.state)
    }

    fn finish(&mut self, abandoned: bool) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let count = self.state().captures.len();
        for cell in 0..count {
            self.finish_cell(cell);
        }
        let saved = self.recorder.take().map(NotebookRecorder::finish);
        let status = {
            let mut state = self.state();
            if abandoned {
                state.builder.close_abandoned();
            } else {
                state.builder.close();
            }
            if let Some((outcome, spec)) = saved {
                state.builder.record_saved(&outcome, &spec);
                if let Some(store) = &self.durations {
                    store.record(spec.path.display_path(), state.builder.durations(&spec));
                }
            }
            state.running = None;
            state.record_updated_texts();
            state.builder.report.elapsed = state.created.elapsed();
            state.builder.report.status
        };
        if let Some(on_finish) = self.on_finish.take() {
            let state = self.state();
            on_finish(state.session, &state.builder.report);
        }
        self.status.send_replace(status);
        for follower in self.state().followers.drain(..) {
            follower.close();
        }
    }

    /// Ends the capture of a cell.
    fn finish_cell(&mut self, cell: usize) {
        let mut state = self.state();
        let Some(capture) = state.captures.get_mut(cell).and_then(Option::take) else {
            return;
        };
        let mut captured = capture.finish();
        state.earlier_displays.add_text(cell, &mut captured);
        let widget_state = captured.widget_state.take();
        let outputs = state.builder.record_output(cell, captured);
        let Some(report) = state.builder.report.cells.get_mut(cell) else {
            return;
        };
        let count = report.execution_count;
        if self.recorder.is_none() {
            report.set_outputs(Some(CellOutputs::Captured(Arc::new(outputs))));
            return;
        }
        drop(state);
        if let Some(recorder) = &self.recorder {
            recorder.finish_cell(cell, count, outputs, widget_state);
        }
    }

    /// Sends the start or the end of a cell to followers.
    fn send_cell_event(&self, event: impl FnOnce(&ReportBuilder) -> Option<CellEvent>) {
        // After a commit failure no cell runs.
        if self
            .recorder
            .as_ref()
            .is_none_or(NotebookRecorder::accepts_outputs)
        {
            let mut state = self.state();
            if let Some(event) = event(&state.builder) {
                state.send_to_followers(&FeedItem::CellEvent(Box::new(event)));
            }
        }
    }
}

impl JobObserver for ExecutionObserver {
    fn on_accepted(&mut self, session: SessionId) {
        self.state().session = Some(session);
    }

    fn on_kernel(&mut self, description: &Description, generation: u32, is_new: bool) {
        {
            let mut state = self.state();
            let ready = state.created.elapsed();
            let report = &mut state.builder.report;
            report.kernel_ready.get_or_insert(ready);
            let kernel = KernelReport::new(description, generation, is_new);
            report.kernel = Some(kernel.clone());
            state.send_to_followers(&FeedItem::CellEvent(Box::new(CellEvent::KernelReady {
                kernel,
                kernel_ready_ms: milliseconds(ready),
            })));
            state
                .builder
                .check_variables(is_new || description.is_python());
        }
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        // The edits are applied when a kernel is ready, and before any cell runs.
        if let Err(error) = recorder.kernel_ready(description) {
            let spec = recorder.spec().clone();
            self.state().builder.record_commit_failure(error, &spec);
            self.stop_handle.stop(StopReason::Cancelled);
        }
    }

    fn on_cell_begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.sink.cell = cell;
        if let Some(recorder) = &self.recorder {
            recorder.start_cell(cell);
        }
        self.send_cell_event(|builder| {
            Some(CellEvent::Begin {
                cell: builder.cell_ref(cell)?,
            })
        });
        {
            let mut state = self.state();
            // After a commit failure the job stops before the cell runs.
            if state.builder.begin_cell(cell) {
                let origin = state.builder.origin(cell);
                let artifacts = state.artifacts.as_ref();
                let artifacts = artifacts.map(|artifacts| artifacts.for_origin(origin));
                let mut capture = Capture::new(state.limits.clone(), artifacts);
                capture.set_earlier_ids(state.earlier_displays.ids());
                if let Some(slot) = state.captures.get_mut(cell) {
                    *slot = Some(Box::new(capture));
                }
                state.last_started = Some(cell);
                state.running = Some((cell, Instant::now()));
                state.send_to_followers(&FeedItem::CellStart);
            }
        }
        // No task waits for this status, so none is woken.
        self.status.send_if_modified(|status| {
            *status = ExecutionStatus::Running;
            false
        });
        &mut self.sink
    }

    fn on_cell_end(&mut self, cell: usize, end: CellEnd) {
        let mut state = self.state();
        state.running = None;
        if let Some(item) = state.progress_line.finish() {
            state.send_to_followers(&item);
        }
        let started = matches!(state.captures.get(cell), Some(Some(_)));
        if self.recorder.is_some()
            && let Some(traceback) = incomplete_cell_error(&end)
            && let Some(Some(capture)) = state.captures.get_mut(cell)
        {
            // The notebook must show that the cell did not finish, even if its output was shown only.
            capture.push(Event::ShowOnly(false));
            capture.push(Event::Raised(traceback));
        }
        state.builder.record_end(cell, end);
        state.add_display_ids(cell);
        drop(state);
        if self.recorder.is_some() {
            self.finish_cell(cell);
        }
        if started {
            self.send_cell_event(|builder| builder.end_event(cell));
        }
    }

    fn on_late_text(&mut self, cell: usize, text: &LateText) {
        let event = Event::Text {
            stream: text.stream,
            bytes: &text.bytes,
        };
        let mut state = self.state();
        let ended = matches!(state.captures.get(cell), Some(None));
        state.push(cell, event);
        drop(state);
        if let Some(recorder) = self.recorder.as_ref().filter(|_| ended) {
            recorder.record_late(cell, text.stream, &text.bytes);
        }
    }

    fn on_notice(&mut self, notice: SessionNotice) {
        let notice = describe_session(&notice);
        self.state().builder.report.notices.push(notice);
    }

    fn on_shutdown(&mut self, shutdown: &ShutdownReport) {
        self.state().builder.record_shutdown(shutdown);
    }

    fn on_done(mut self: Box<Self>) {
        self.finish(false);
    }
}

impl Drop for ExecutionObserver {
    /// Dropped without `on_done`: marks the execution as abandoned, so that no caller waits forever.
    fn drop(&mut self) {
        self.finish(true);
    }
}

struct CellSink {
    state: Arc<Mutex<ExecutionState>>,
    cell: usize,
}

impl Sink for CellSink {
    fn push(&mut self, event: Event<'_>) {
        lock(&self.state).push(self.cell, event);
    }
}

impl ExecutionState {
    fn push(&mut self, cell: usize, event: Event<'_>) {
        let mut item = self.send_before(&event);
        if let Event::Display {
            bundle,
            id: Some(id),
            ..
        }
        | Event::Update { bundle, id } = &event
        {
            let others = self.captures.iter_mut().enumerate();
            let others = others.filter(|(other, _)| *other != cell);
            let captures = others.filter_map(|(_, capture)| capture.as_deref_mut());
            self.earlier_displays.update(bundle, id, captures);
        }
        // The capture stores images, so that the item names their artifacts.
        if let Some(Some(capture)) = self.captures.get_mut(cell) {
            capture.push(event);
            let figures = capture.take_last_figures();
            if let Some(item) = &mut item {
                item.set_figures(figures);
            }
        }
        if let Some(item) = item {
            self.send_to_followers(&item);
        }
    }

    /// Sends what precedes an event to followers, and returns the item of the event.
    fn send_before(&mut self, event: &Event<'_>) -> Option<FeedItem> {
        if self.progress_line.shows(event) {
            return None;
        }
        let before = self.progress_line.before(event);
        if self.followers.is_empty() {
            return None;
        }
        if let Some(before) = before {
            self.send_to_followers(&before);
        }
        FeedItem::from_event(event)
    }

    fn add_display_ids(&mut self, cell: usize) {
        if let Some(Some(capture)) = self.captures.get(cell) {
            self.earlier_displays.add_ids(capture);
        }
    }

    /// Sets the texts of cells whose displays a later cell has updated.
    fn record_updated_texts(&mut self) {
        for (cell, text) in self.earlier_displays.take_changed_texts() {
            if let Some(report) = self.builder.report.cells.get_mut(cell) {
                report.set_text(text);
            }
        }
    }

    fn send_to_followers(&mut self, item: &FeedItem) {
        // A feed without a reader would otherwise collect items until the code ends.
        self.followers.retain(OutputFeed::has_reader);
        for follower in &self.followers {
            follower.push(item.clone());
        }
    }
}

fn lock(state: &Mutex<ExecutionState>) -> MutexGuard<'_, ExecutionState> {
    state.lock_ignoring_poison()
}
