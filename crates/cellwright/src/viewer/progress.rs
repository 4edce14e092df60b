//! Shows a running notebook: the output of each cell under a heading, how each cell ended, and on a terminal a
//! progress line at the bottom.

use std::time::{Duration, Instant};

use cellwright_execution::duration::format_duration;
use cellwright_execution::feed::FeedItem;
use cellwright_execution::{CellEvent, CellRef, ExecutionStatus};
use cellwright_output::Limits;

use super::live::{LiveWriter, OutputExtent, StdoutError};
use super::{Viewer, show};
use crate::console::{Console, StdStream};

/// Shortest duration that the status line of a cell shows.
const SHOWN_DURATION_MIN: Duration = Duration::from_millis(100);

/// Delay before the progress line appears, so that it does not flicker for short cells.
const PROGRESS_DELAY: Duration = Duration::from_millis(150);

pub(super) struct ProgressViewer<'s> {
    console: &'s Console,
    extent: OutputExtent,
    limits: Limits,
    /// Durations of the cells in an earlier run.
    durations: Vec<Option<Duration>>,
    writer: Option<LiveWriter<'s>>,
    current: Option<(CellRef, Instant)>,
    /// Whether the heading of the cell was shown.
    heading_shown: bool,
    /// Whether the progress line is on the console.
    drawn: bool,
    frame: usize,
    /// Whether output is hidden.
    silent: bool,
    error: Option<StdoutError>,
}

impl<'s> ProgressViewer<'s> {
    pub(super) fn new(
        console: &'s Console,
        extent: OutputExtent,
        limits: Limits,
        durations: Vec<Option<Duration>>,
    ) -> Self {
        Self {
            console,
            extent,
            limits,
            durations,
            writer: None,
            current: None,
            heading_shown: false,
            drawn: false,
            frame: 0,
            silent: false,
            error: None,
        }
    }

    /// A viewer that hides output.
    pub(super) fn silent(console: &'s Console) -> Self {
        let mut progress = Self::new(
            console,
            OutputExtent::Nothing,
            Limits::default(),
            Vec::new(),
        );
        progress.silent = true;
        progress
    }

    fn start_cell(&mut self, cell: CellRef) {
        self.close();
        self.current = Some((cell, Instant::now()));
        self.heading_shown = false;
    }

    /// Writes output of a cell under its heading.
    fn write_output(&mut self, item: FeedItem) {
        self.erase();
        if !self.heading_shown {
            self.heading_shown = true;
            if let Some((cell, _)) = &self.current {
                let heading = heading(cell);
                let printed = self.console.print_heading(&heading);
                self.error = self
                    .error
                    .take()
                    .or_else(|| StdoutError::from_result(printed));
            }
        }
        let writer = self
            .writer
            .get_or_insert_with(|| LiveWriter::new(self.console, self.extent, &self.limits));
        show(writer, item, &self.limits);
    }

    fn finish_cell(&mut self, event: &CellEvent) {
        self.close();
        self.current = None;
        if let CellEvent::End {
            cell,
            status,
            duration_ms,
            error,
            expected,
            ..
        } = event
        {
            let time = Duration::from_secs_f64(duration_ms / 1e3);
            let mut line = match status {
                ExecutionStatus::Error if *expected => {
                    format!("{} raised as expected", heading(cell))
                }
                _ => format!("{} {}", heading(cell), status_text(*status)),
            };
            if time >= SHOWN_DURATION_MIN {
                line.push_str(&format!(", {}", format_duration(time)));
            }
            if let (ExecutionStatus::Error, Some((name, _))) = (status, error) {
                line.push_str(&format!(" ({name})"));
            }
            self.console.note(&line);
        }
    }

    /// Writes the rest of the output of a cell.
    fn close(&mut self) {
        self.erase();
        if let Some(mut writer) = self.writer.take() {
            writer.finish();
            writer.end_line();
            self.error = self.error.take().or(writer.error().cloned());
        }
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // Errors of stderr are ignored: there is no other place to report them.
            self.console.write(StdStream::Stderr, "\r\u{1b}[K").ok();
        }
    }

    fn progress_line(&mut self) -> Option<String> {
        const FRAMES: [char; 8] = ['⣾', '⣽', '⣻', '⢿', '⡿', '⣟', '⣯', '⣷'];
        let (cell, since) = self.current.as_ref()?;
        let elapsed = since.elapsed();
        if elapsed < PROGRESS_DELAY {
            return None;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let mut line = format!(
            "{} {} · {}",
            FRAMES[self.frame],
            heading(cell),
            format_duration(elapsed)
        );
        // An estimate is only possible if all remaining cells ran before.
        let remaining: Option<Vec<Duration>> = self
            .durations
            .get(cell.number - 1..)
            .map(|rest| rest.iter().copied().collect())
            .unwrap_or_default();
        if let Some(remaining) = remaining.filter(|cells| !cells.is_empty()) {
            let total: Duration = remaining.iter().sum();
            line.push_str(&format!(
                " · about {} left",
                format_duration(total.saturating_sub(elapsed))
            ));
        }
        Some(line)
    }
}

impl Viewer for ProgressViewer<'_> {
    fn write_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::CellStart => {}
            FeedItem::CellEvent(event) => match *event {
                CellEvent::Begin { cell } => self.start_cell(cell),
                end @ CellEvent::End { .. } => self.finish_cell(&end),
            },
            other if !self.silent => self.write_output(other),
            _ => {}
        }
    }

    fn is_animated(&self) -> bool {
        self.current.is_some() && self.console.can_animate()
    }

    fn tick(&mut self) {
        let at_line_start = self.writer.as_ref().is_none_or(LiveWriter::at_line_start);
        if !at_line_start {
            return;
        }
        if let Some(line) = self.progress_line() {
            let drawn = self
                .console
                .write(StdStream::Stderr, &format!("\r{line}\u{1b}[K"));
            self.drawn = drawn.is_ok();
        }
    }

    fn finish(&mut self) {
        self.close();
    }

    fn error(&self) -> Option<&StdoutError> {
        let error = self.writer.as_ref().and_then(LiveWriter::error);
        self.error.as_ref().or(error)
    }
}

fn heading(cell: &CellRef) -> String {
    let CellRef {
        index,
        number,
        total,
        ..
    } = cell;
    match &cell.id {
        Some(id) => format!("[{number}/{total}] cell {index} id:{id}"),
        None => format!("[{number}/{total}] cell {index}"),
    }
}

fn status_text(status: ExecutionStatus) -> &'static str {
    match status {
        ExecutionStatus::Ok => "ok",
        ExecutionStatus::Error => "failed",
        ExecutionStatus::Timeout => "timed out",
        ExecutionStatus::Cancelled => "cancelled",
        ExecutionStatus::Died => "died",
        ExecutionStatus::NotStarted => "not started",
        ExecutionStatus::Skipped => "skipped",
        ExecutionStatus::Pending | ExecutionStatus::Running => "running",
    }
}
