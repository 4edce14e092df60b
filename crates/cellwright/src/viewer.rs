//! A thread that shows the output of running code. The code and its time limit never wait for a reader.

pub(crate) mod event_documents;
pub(crate) mod events;
pub(crate) mod live;
mod progress;

use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::feed::{DisplayItem, FeedItem, FeedPoll, OutputFeed};
use cellwright_execution::{ExecutionReport, ExecutionStatus, ReportDetail};
use cellwright_kernel::{StopHandle, StopReason};
use cellwright_output::{ByteSize, Limits, Stream, Traceback, displayed_text};

use crate::console::Console;
use events::EventViewer;
use live::{LiveWriter, OutputExtent, StdoutError};
use progress::ProgressViewer;

/// Interval between two redraws of the progress line.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Delay before a remark that the code continues although nothing reads its output.
const CLOSED_PIPE_DELAY: Duration = Duration::from_secs(1);

/// How much output a viewer shows, and in which form.
#[derive(Clone, Debug)]
pub(crate) struct ViewOptions {
    pub(crate) extent: OutputExtent,
    pub(crate) mode: ViewMode,
    /// How much of the report JSON contains.
    pub(crate) detail: ReportDetail,
}

/// The form in which a viewer shows an execution.
#[derive(Clone, Debug)]
pub(crate) enum ViewMode {
    /// The output of the code.
    Code,
    /// The output of each cell of a notebook under a heading. `durations` are those of earlier runs of the cells.
    Notebook { durations: Vec<Option<Duration>> },
    /// The status of each cell of a notebook, without output.
    Silent,
    /// One JSON document per event.
    Events,
}

impl From<OutputExtent> for ViewOptions {
    fn from(extent: OutputExtent) -> Self {
        Self {
            extent,
            mode: ViewMode::Code,
            detail: ReportDetail::Full,
        }
    }
}

/// What happens to an execution when the reader of stdout closes the pipe.
#[derive(Clone)]
pub(crate) enum OnClosedPipe {
    /// It continues: its outputs are saved, and its exit code counts.
    Continue,
    /// The command only follows the execution and ends.
    EndCommand(StopHandle),
}

/// Starts a thread that shows all items of a feed. The thread returns the error of stdout, if any.
pub(crate) fn spawn_viewer<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    feed: OutputFeed,
    console: &'env Console,
    view: ViewOptions,
    limits: Limits,
    on_closed_pipe: OnClosedPipe,
) -> ScopedJoinHandle<'scope, Option<StdoutError>> {
    scope.spawn(move || {
        let mut viewer: Box<dyn Viewer> = match view.mode {
            ViewMode::Code => Box::new(PlainViewer::new(console, view.extent, limits)),
            ViewMode::Notebook { durations } => {
                Box::new(ProgressViewer::new(console, view.extent, limits, durations))
            }
            ViewMode::Silent => Box::new(ProgressViewer::silent(console)),
            ViewMode::Events => Box::new(EventViewer::new(console, limits, view.detail)),
        };
        let mut closed_pipe = ClosedPipe::new(on_closed_pipe);
        loop {
            let timeout = viewer.is_animated().then_some(TICK_INTERVAL);
            let timeout = timeout.or(closed_pipe.remark_delay());
            match feed.poll_timeout(timeout) {
                FeedPoll::Item(item) => viewer.write_item(item),
                FeedPoll::TimedOut => viewer.tick(),
                FeedPoll::Closed => break,
            }
            if viewer.error() == Some(&StdoutError::Closed) {
                closed_pipe.handle(viewer.as_mut(), console);
            }
        }
        viewer.finish();
        viewer.error().cloned()
    })
}

/// Handles a pipe that its reader has closed.
struct ClosedPipe {
    reaction: OnClosedPipe,
    /// When the viewer noticed it.
    since: Option<Instant>,
    remarked: bool,
}

impl ClosedPipe {
    fn new(reaction: OnClosedPipe) -> Self {
        Self {
            reaction,
            since: None,
            remarked: false,
        }
    }

    /// Time until the remark about the closed pipe, if one is due.
    fn remark_delay(&self) -> Option<Duration> {
        let since = self.since.filter(|_| !self.remarked)?;
        Some(CLOSED_PIPE_DELAY.saturating_sub(since.elapsed()))
    }

    fn handle(&mut self, viewer: &mut dyn Viewer, console: &Console) {
        let since = *self.since.get_or_insert_with(Instant::now);
        match &self.reaction {
            OnClosedPipe::EndCommand(stopper) => stopper.stop(StopReason::Cancelled),
            OnClosedPipe::Continue if !self.remarked && since.elapsed() >= CLOSED_PIPE_DELAY => {
                self.remarked = true;
                viewer.erase_progress();
                console.note("stdout is closed; the code continues to its end, Ctrl-C cancels it");
            }
            OnClosedPipe::Continue => {}
        }
    }
}

/// Shows the items of a feed.
pub(super) trait Viewer {
    /// Shows the next item.
    fn write_item(&mut self, item: FeedItem);

    /// Whether the view changes with time.
    fn is_animated(&self) -> bool {
        false
    }

    /// Redraws the view.
    fn tick(&mut self) {}

    /// Removes the progress line, if there is one.
    fn erase_progress(&mut self) {}

    /// Shows the rest at the end of the feed.
    fn finish(&mut self);

    /// Why writing to stdout failed.
    fn error(&self) -> Option<&StdoutError>;
}

/// Shows only the output of the code.
struct PlainViewer<'s> {
    console: &'s Console,
    extent: OutputExtent,
    limits: Limits,
    writer: LiveWriter<'s>,
    error: Option<StdoutError>,
}

impl<'s> PlainViewer<'s> {
    fn new(console: &'s Console, extent: OutputExtent, limits: Limits) -> Self {
        Self {
            writer: LiveWriter::new(console, extent, &limits),
            console,
            extent,
            limits,
            error: None,
        }
    }
}

impl Viewer for PlainViewer<'_> {
    fn write_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::CellStart => {
                self.finish();
                self.writer = LiveWriter::new(self.console, self.extent, &self.limits);
            }
            FeedItem::CellEvent(_) => {}
            other => show(&mut self.writer, other, &self.limits),
        }
    }

    fn finish(&mut self) {
        self.writer.finish();
        self.error = self.error.take().or(self.writer.error().cloned());
    }

    fn error(&self) -> Option<&StdoutError> {
        self.error.as_ref().or(self.writer.error())
    }
}

/// Writes an item as text.
pub(super) fn show(writer: &mut LiveWriter<'_>, item: FeedItem, limits: &Limits) {
    match item {
        FeedItem::Text(stream, bytes) => writer.write_text(stream, &bytes),
        FeedItem::Display(display) => {
            if let Some(text) = display_text(&display, limits) {
                writer.write_display(Stream::Stdout, &text);
            }
        }
        FeedItem::Error(traceback) => {
            writer.write_display(
                Stream::Stderr,
                &colour_traceback(traceback_text(&traceback)),
            );
        }
        FeedItem::Dropped(bytes) => writer.write_display(Stream::Stderr, &dropped_note(bytes)),
        FeedItem::CellStart | FeedItem::CellEvent(_) | FeedItem::Clear { .. } => {}
    }
}

/// The text of a display.
pub(super) fn display_text(display: &DisplayItem, limits: &Limits) -> Option<String> {
    let text = displayed_text(&display.bundle, &display.figures, limits);
    let text = text.map(std::borrow::Cow::into_owned);
    text.or_else(|| {
        let omitted = display.omitted.first()?;
        Some(format!("[{}, {}]", omitted.mime, ByteSize(omitted.bytes)))
    })
}

/// The text of an exception.
pub(super) fn traceback_text(traceback: &Traceback) -> String {
    if traceback.lines.is_empty() {
        format!("{}: {}", traceback.name, traceback.value)
    } else {
        traceback.lines.join("\n")
    }
}

/// Colours a traceback that has no colours: locations, and the exception. Only a terminal shows them.
fn colour_traceback(text: String) -> String {
    if text.contains('\u{1b}') {
        return text;
    }
    let mut lines = Vec::new();
    for line in text.lines() {
        let start = line.trim_start();
        let is_location = start.starts_with("File ") || start.starts_with("Cell In[");
        let is_mark = !start.is_empty() && start.chars().all(|c| matches!(c, '^' | '~' | ' '));
        // The line of the exception: `NameError: …`, also of the exceptions before it.
        let name = line.split([':', ' ']).next().unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let is_exception = !name.is_empty()
            && name.chars().all(is_name)
            && (line.len() == name.len() || line[name.len()..].starts_with(':'));
        lines.push(match (is_location, is_mark || is_exception) {
            (true, _) => format!("\u{1b}[36m{line}\u{1b}[0m"),
            (_, true) => format!("\u{1b}[31m{line}\u{1b}[0m"),
            _ => line.to_owned(),
        });
    }
    lines.join("\n")
}

/// The note in place of dropped output.
pub(super) fn dropped_note(bytes: u64) -> String {
    let bytes = ByteSize(bytes);
    format!("[… {bytes} not shown: the output arrived faster than it was read …]")
}

/// The exit code of an operation whose result was printed. A closed pipe does not change it.
pub(crate) fn exit_after(printed: Result<(), Failure>, exit_code: u8) -> Result<u8, Failure> {
    match printed {
        Err(failure) if !failure.is_silent() => Err(failure),
        _ => Ok(exit_code),
    }
}

/// Prints the summary, notices and the failure of an execution. `stdout_error` is why output could not be written.
/// Returns the exit code.
pub(crate) fn show_summary(
    report: &ExecutionReport,
    console: &Console,
    extent: OutputExtent,
    stdout_error: Option<&StdoutError>,
) -> Result<u8, Failure> {
    if let Some(StdoutError::Unwritable(reason)) = stdout_error
        && report.status == ExecutionStatus::Ok
    {
        let message = "The code finished, but its output could not be written";
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(reason.clone());
        return Err(failure.hint("the code already ran; do not re-run it just for the output"));
    }
    if let Some(summary) = report.summary(report.kernel.as_ref()) {
        console.note(&summary);
    }
    let notices: Vec<UserNotice> = report
        .notices
        .iter()
        // The failure names the same event; stored outputs are not shown here.
        .filter(|notice| !notice.kind.repeats_failure() && !notice.kind.is_about_stored_outputs())
        // The full output was shown.
        .filter(|notice| extent != OutputExtent::Full || notice.kind != NoticeKind::OutputTruncated)
        .cloned()
        .collect();
    console.print_notices(&notices);
    if let Some(failure) = &report.failure {
        console.report_failure(failure);
    }
    Ok(report.exit_code())
}

#[cfg(test)]
mod tests {
    use super::colour_traceback;

    #[test]
    fn exceptions_and_locations_have_colours() {
        let text = "\
Traceback (most recent call last):
  Cell In[1], line 1, in <module>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

module.Custom";
        let expected = "\
Traceback (most recent call last):
<36>  Cell In[1], line 1, in <module><0>
    1 / 0
<31>    ~~^~~<0>
<31>ZeroDivisionError: division by zero<0>

During handling of the above exception, another exception occurred:

<31>module.Custom<0>";
        let coloured = colour_traceback(text.to_owned());
        let shown = coloured.replace("\u{1b}[", "<");
        let shown = shown.replace("<36m", "<36>").replace("<31m", "<31>");
        assert_eq!(shown.replace("<0m", "<0>"), expected);
        let already = "\u{1b}[31mNameError\u{1b}[0m: x".to_owned();
        assert_eq!(colour_traceback(already.clone()), already);
    }
}
