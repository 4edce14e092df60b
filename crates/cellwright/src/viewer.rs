//! A thread that shows the output of running code. The code and its time limit never wait for a reader.

pub(crate) mod events;
pub(crate) mod live;
mod progress;

use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use cellwright_kernel::{StopHandle, StopReason};
use cellwright_output::{ByteSize, Limits, Stream};

use crate::console::Console;
use crate::execution::feed::{FeedItem, FeedPoll, OutputFeed};
use crate::execution::{ExecutionStatus, ExecutionSummary};
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice};
use events::EventViewer;
use live::{LiveWriter, OutputExtent, StdoutError};
use progress::ProgressViewer;

/// How often something is drawn anew that changes with time.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// What is shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct ViewOptions {
    pub(crate) extent: OutputExtent,
    pub(crate) mode: ViewMode,
}

/// In which form it is shown.
#[derive(Clone, Debug)]
pub(crate) enum ViewMode {
    /// What the code says.
    Code,
    /// The same, and which cell of a notebook says it. For cells that ran before it is known how long they
    /// take.
    Notebook { took: Vec<Option<Duration>> },
    /// How each cell of a notebook ended, and not what it says.
    Silent,
    /// A JSON document for each thing that happens.
    Events,
}

impl From<OutputExtent> for ViewOptions {
    fn from(extent: OutputExtent) -> Self {
        Self {
            extent,
            mode: ViewMode::Code,
        }
    }
}

/// Shows everything that a feed brings, until its end; gives why it did not arrive, if so. Pulls the
/// stopper when nobody is left who wants to know.
pub(crate) fn spawn_viewer<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    feed: OutputFeed,
    screen: &'env Console,
    view: ViewOptions,
    limits: Limits,
    stopper: StopHandle,
) -> ScopedJoinHandle<'scope, Option<StdoutError>> {
    scope.spawn(move || {
        let mut looks: Box<dyn Viewer> = match view.mode {
            ViewMode::Code => Box::new(PlainViewer::new(screen, view.extent, limits)),
            ViewMode::Notebook { took } => {
                Box::new(ProgressViewer::new(screen, view.extent, limits, took))
            }
            ViewMode::Silent => Box::new(ProgressViewer::silent(screen)),
            ViewMode::Events => Box::new(EventViewer::new(screen)),
        };
        loop {
            let patience = looks.is_animated().then_some(TICK_INTERVAL);
            match feed.poll_timeout(patience) {
                FeedPoll::Item(chunk) => looks.write_item(chunk),
                FeedPoll::TimedOut => looks.tick(),
                FeedPoll::Closed => break,
            }
            if looks.error() == Some(&StdoutError::Closed) {
                stopper.stop(StopReason::Cancelled);
            }
        }
        looks.finish();
        looks.error().cloned()
    })
}

/// Somebody who looks on.
pub(super) trait Viewer {
    /// Sees what comes next.
    fn write_item(&mut self, chunk: FeedItem);

    /// Whether time alone changes what is seen.
    fn is_animated(&self) -> bool {
        false
    }

    /// Time has passed.
    fn tick(&mut self) {}

    /// Nothing more comes.
    fn finish(&mut self);

    /// Why what is shown does not arrive.
    fn error(&self) -> Option<&StdoutError>;
}

/// Shows what code says, and nothing else.
struct PlainViewer<'s> {
    screen: &'s Console,
    extent: OutputExtent,
    limits: Limits,
    face: LiveWriter<'s>,
    trouble: Option<StdoutError>,
}

impl<'s> PlainViewer<'s> {
    fn new(screen: &'s Console, extent: OutputExtent, limits: Limits) -> Self {
        Self {
            face: LiveWriter::new(screen, extent, &limits),
            screen,
            extent,
            limits,
            trouble: None,
        }
    }
}

impl Viewer for PlainViewer<'_> {
    fn write_item(&mut self, chunk: FeedItem) {
        match chunk {
            FeedItem::CellStart => {
                self.finish();
                self.face = LiveWriter::new(self.screen, self.extent, &self.limits);
            }
            FeedItem::CellEvent(_) => {}
            other => show(&mut self.face, other),
        }
    }

    fn finish(&mut self) {
        self.face.finish();
        self.trouble = self.trouble.take().or(self.face.error().cloned());
    }

    fn error(&self) -> Option<&StdoutError> {
        self.trouble.as_ref().or(self.face.error())
    }
}

/// Shows what a cell says.
pub(super) fn show(face: &mut LiveWriter<'_>, chunk: FeedItem) {
    match chunk {
        FeedItem::Text(stream, bytes) => face.write_text(stream, &bytes),
        FeedItem::Display(stream, text) => face.write_display(stream, &text),
        FeedItem::Dropped(bytes) => face.write_display(Stream::Stderr, &dropped_note(bytes)),
        FeedItem::CellStart | FeedItem::CellEvent(_) => {}
    }
}

/// What is said in the place of what was not kept.
pub(super) fn dropped_note(bytes: u64) -> String {
    let bytes = ByteSize(bytes);
    format!("[… {bytes} were not shown: they came faster than they were read …]")
}

/// Says what is to be said at the end; gives the exit code. `unseen` is why what the code said did
/// not arrive.
pub(crate) fn show_summary(
    verdict: &ExecutionSummary,
    screen: &Console,
    extent: OutputExtent,
    unseen: Option<&StdoutError>,
) -> Result<u8, Failure> {
    match unseen {
        // Whoever has read enough stops the code, which is no failure of it.
        Some(StdoutError::Closed) if verdict.status == ExecutionStatus::Cancelled => return Ok(0),
        Some(StdoutError::Unwritable(why)) if verdict.status == ExecutionStatus::Ok => {
            let message = "The code ran to its end, but its output could not be written";
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(why.clone());
            return Err(failure.hint("do not repeat it without need: it has done its work"));
        }
        _ => {}
    }
    if let Some(summary) = &verdict.summary {
        screen.note(summary);
    }
    // What stopped a cell is said once, as an error; what is missing in the outputs for a notebook
    // matters to those who get them.
    let said = [
        NoticeKind::Interrupted,
        NoticeKind::KernelKilled,
        NoticeKind::KernelDied,
        NoticeKind::StreamsShortened,
        NoticeKind::OutputsOmitted,
    ];
    let notices: Vec<UserNotice> = verdict
        .notices
        .iter()
        .filter(|notice| !said.contains(&notice.kind))
        // Everything was shown.
        .filter(|notice| extent != OutputExtent::Full || notice.kind != NoticeKind::OutputCut)
        .cloned()
        .collect();
    screen.print_notices(&notices);
    if let Some(trouble) = &verdict.failure {
        screen.report_failure(trouble);
    }
    Ok(verdict.exit_code())
}
