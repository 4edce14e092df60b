//! Shows a running notebook: the output of each cell under a heading, how each cell ended, and on a terminal a
//! progress line at the bottom.

use std::time::{Duration, Instant};

use cellwright_execution::duration::format_duration;
use cellwright_execution::feed::FeedItem;
use cellwright_execution::{CellEvent, CellRef, ExecutionStatus};
use cellwright_operations::table::clip_text;
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
                let heading = with_first_line(&heading(cell), cell, self.console.width());
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
            let has_heading = std::mem::take(&mut self.heading_shown);
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
            if let (ExecutionStatus::Error, Some(error)) = (status, error) {
                line.push_str(&format!(" ({})", error.ename));
            }
            if !has_heading {
                line = with_first_line(&line, cell, self.console.stderr_width());
            }
            match status {
                ExecutionStatus::Ok | ExecutionStatus::Skipped => self.console.note(&line),
                _ if *expected => self.console.note(&line),
                _ => self.console.note_failure(&line),
            }
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
            self.console
                .write_styled(StdStream::Stderr, "\r\u{1b}[K")
                .ok();
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
        let rest = self.durations.get(cell.number - 1..).unwrap_or_default();
        if let Some(estimate) = remaining_time(rest, elapsed) {
            line.push_str(&format!(" · {estimate}"));
        }
        Some(line)
    }
}

impl Viewer for ProgressViewer<'_> {
    fn write_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::CellStart => {}
            FeedItem::CellEvent(event) => match *event {
                CellEvent::KernelReady { .. } => {}
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
            // A line that wraps could not be erased.
            let width = self.console.stderr_width().unwrap_or(usize::MAX);
            let line: String = line.chars().take(width - 1).collect();
            let drawn = self
                .console
                .write_styled(StdStream::Stderr, &format!("\r{line}\u{1b}[K"));
            self.drawn = drawn.is_ok();
        }
    }

    fn erase_progress(&mut self) {
        self.erase();
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
    format!("[{number}/{total}] cell {index}")
}

/// A line about a cell, with as much of its first line as fits.
fn with_first_line(line: &str, cell: &CellRef, width: Option<usize>) -> String {
    /// Width of a line in a file or a pipe.
    const WIDTH: usize = 100;
    if cell.first_line.is_empty() {
        return line.to_owned();
    }
    clip_text(
        &format!("{line} · {}", cell.first_line),
        width.unwrap_or(WIDTH),
    )
}

/// An estimate of the remaining time, from the durations that the remaining cells took in an earlier run. The first of them
/// has run for `elapsed`. `None` if most of them are not known.
fn remaining_time(durations: &[Option<Duration>], elapsed: Duration) -> Option<String> {
    let unknown = durations.iter().filter(|known| known.is_none()).count();
    if durations.is_empty() || unknown * 2 > durations.len() {
        return None;
    }
    let (first, rest) = durations.split_first()?;
    let first = first.map_or(Duration::ZERO, |first| first.saturating_sub(elapsed));
    let seconds = (first + rest.iter().flatten().sum::<Duration>()).as_secs_f64();
    let remaining = Duration::from_secs_f64(seconds.round());
    let about = match unknown {
        0 if remaining.is_zero() => return None,
        0 => "about",
        _ => "at least",
    };
    let text = match remaining.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => format_duration(remaining),
    };
    Some(format!("{about} {text} left"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(durations: &[Option<u64>], elapsed: u64) -> Option<String> {
        let durations: Vec<_> = durations
            .iter()
            .map(|known| known.map(Duration::from_secs))
            .collect();
        remaining_time(&durations, Duration::from_secs(elapsed))
    }

    #[test]
    fn the_estimate_claims_no_more_than_is_known() {
        let all = [Some(10), Some(3)];
        assert_eq!(estimate(&all, 4).unwrap(), "about 9 s left");
        // A cell that takes longer than before does not shorten the others.
        assert_eq!(estimate(&all, 60).unwrap(), "about 3 s left");
        assert_eq!(estimate(&[Some(100)], 0).unwrap(), "about 1 min 40 s left");
        assert_eq!(estimate(&[Some(5), None], 1).unwrap(), "at least 4 s left");
        assert_eq!(estimate(&[Some(5), None, None], 1), None);
        assert_eq!(estimate(&[None], 1), None);
        assert_eq!(estimate(&[Some(5)], 9), None);
        assert_eq!(estimate(&[], 1), None);
    }
}
