//! Shows a running notebook: the output of each cell under a heading, how each cell ended, and on a terminal a
//! progress line at the bottom.

use std::time::{Duration, Instant};

use cellwright_output::Limits;

use super::live::{LiveWriter, OutputExtent, StdoutError};
use super::{Viewer, show};
use crate::console::{Console, StdStream};
use crate::execution::duration::format_duration;
use crate::execution::feed::FeedItem;
use crate::execution::{CellEvent, CellRef, ExecutionStatus};

/// Cells that are quicker than this need no time told.
const DURATION_SHOWN_FROM: Duration = Duration::from_millis(100);

/// How long a cell may run before the line at the bottom appears: it would only flicker.
const PROGRESS_DELAY: Duration = Duration::from_millis(150);

pub(super) struct ProgressViewer<'s> {
    screen: &'s Console,
    extent: OutputExtent,
    limits: Limits,
    /// How long each cell took when it ran before.
    durations: Vec<Option<Duration>>,
    writer: Option<LiveWriter<'s>>,
    current: Option<(CellRef, Instant)>,
    /// Whether the heading of the cell was shown.
    heading_shown: bool,
    /// Whether the line at the bottom is there.
    drawn: bool,
    frame: usize,
    /// Whether what cells say is not shown.
    silent: bool,
    trouble: Option<StdoutError>,
}

impl<'s> ProgressViewer<'s> {
    pub(super) fn new(
        screen: &'s Console,
        extent: OutputExtent,
        limits: Limits,
        durations: Vec<Option<Duration>>,
    ) -> Self {
        Self {
            screen,
            extent,
            limits,
            durations,
            writer: None,
            current: None,
            heading_shown: false,
            drawn: false,
            frame: 0,
            silent: false,
            trouble: None,
        }
    }

    /// One that does not show what cells say.
    pub(super) fn silent(screen: &'s Console) -> Self {
        let mut progress = Self::new(screen, OutputExtent::Nothing, Limits::default(), Vec::new());
        progress.silent = true;
        progress
    }

    fn start_cell(&mut self, cell: CellRef) {
        self.close();
        self.current = Some((cell, Instant::now()));
        self.heading_shown = false;
    }

    /// What a cell says stands under its heading.
    fn write_output(&mut self, chunk: FeedItem) {
        self.erase();
        if !self.heading_shown {
            self.heading_shown = true;
            if let Some((cell, _)) = &self.current {
                let heading = heading(cell);
                let shown = self.screen.print_heading(&heading);
                self.trouble = self
                    .trouble
                    .take()
                    .or_else(|| StdoutError::from_result(shown));
            }
        }
        let face = self
            .writer
            .get_or_insert_with(|| LiveWriter::new(self.screen, self.extent, &self.limits));
        show(face, chunk);
    }

    fn finish_cell(&mut self, mark: &CellEvent) {
        self.close();
        self.current = None;
        if let CellEvent::End {
            cell,
            status,
            duration_ms,
            error,
            expected,
            ..
        } = mark
        {
            let time = Duration::from_secs_f64(duration_ms / 1e3);
            let mut line = match status {
                ExecutionStatus::Error if *expected => {
                    format!("{} raised as expected", heading(cell))
                }
                _ => format!("{} {}", heading(cell), status_text(*status)),
            };
            if time >= DURATION_SHOWN_FROM {
                line.push_str(&format!(", {}", format_duration(time)));
            }
            if let Some((name, _)) = error {
                line.push_str(&format!(" ({name})"));
            }
            self.screen.note(&line);
        }
    }

    /// The cell says nothing more.
    fn close(&mut self) {
        self.erase();
        if let Some(mut face) = self.writer.take() {
            face.finish();
            face.end_line();
            self.trouble = self.trouble.take().or(face.error().cloned());
        }
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // Nobody is left to be told when it cannot be written.
            self.screen.write(StdStream::Stderr, "\r\u{1b}[K").ok();
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
        // Only what is known: all that is left ran before.
        let left: Option<Vec<Duration>> = self
            .durations
            .get(cell.number - 1..)
            .map(|rest| rest.iter().copied().collect())
            .unwrap_or_default();
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            let whole: Duration = left.iter().sum();
            line.push_str(&format!(
                " · about {} left",
                format_duration(whole.saturating_sub(elapsed))
            ));
        }
        Some(line)
    }
}

impl Viewer for ProgressViewer<'_> {
    fn write_item(&mut self, chunk: FeedItem) {
        match chunk {
            FeedItem::CellStart => {}
            FeedItem::CellEvent(mark) => match *mark {
                CellEvent::Begin { cell } => self.start_cell(cell),
                end @ CellEvent::End { .. } => self.finish_cell(&end),
            },
            other if !self.silent => self.write_output(other),
            _ => {}
        }
    }

    fn is_animated(&self) -> bool {
        self.current.is_some() && self.screen.can_animate()
    }

    fn tick(&mut self) {
        let at_line_start = self.writer.as_ref().is_none_or(LiveWriter::at_line_start);
        if !at_line_start {
            return;
        }
        if let Some(line) = self.progress_line() {
            let drawn = self
                .screen
                .write(StdStream::Stderr, &format!("\r{line}\u{1b}[K"));
            self.drawn = drawn.is_ok();
        }
    }

    fn finish(&mut self) {
        self.close();
    }

    fn error(&self) -> Option<&StdoutError> {
        let face = self.writer.as_ref().and_then(LiveWriter::error);
        self.trouble.as_ref().or(face)
    }
}

fn heading(cell: &CellRef) -> String {
    let CellRef {
        index,
        number,
        total: of,
        ..
    } = cell;
    match &cell.id {
        Some(id) => format!("[{number}/{of}] cell {index} id:{id}"),
        None => format!("[{number}/{of}] cell {index}"),
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
