//! What a person sees of a notebook that runs: what its cells say, each under a heading, how each of them
//! ended, and on a terminal a line at the bottom that tells how far it has come.

use std::time::{Duration, Instant};

use cellwright_output::Limits;

use super::mark::{Mark, Which};
use super::report::Status;
use super::viewer::{Looks, show};
use crate::feed::Chunk;
use crate::live::{Extent, Face, Trouble};
use crate::screen::{Outlet, Screen};

/// Cells that are quicker than this need no time told.
const QUICK: Duration = Duration::from_millis(100);

/// How long a cell may run before the line at the bottom appears: it would only flicker.
const PATIENCE: Duration = Duration::from_millis(150);

pub(super) struct Progress<'s> {
    screen: &'s Screen,
    extent: Extent,
    limits: Limits,
    /// How long each cell took when it ran before.
    took: Vec<Option<Duration>>,
    face: Option<Face<'s>>,
    current: Option<(Which, Instant)>,
    /// Whether the heading of the cell was shown.
    headed: bool,
    /// Whether the line at the bottom is there.
    drawn: bool,
    frame: usize,
    /// Whether what cells say is not shown.
    silent: bool,
    trouble: Option<Trouble>,
}

impl<'s> Progress<'s> {
    pub(super) fn new(
        screen: &'s Screen,
        extent: Extent,
        limits: Limits,
        took: Vec<Option<Duration>>,
    ) -> Self {
        Self {
            screen,
            extent,
            limits,
            took,
            face: None,
            current: None,
            headed: false,
            drawn: false,
            frame: 0,
            silent: false,
            trouble: None,
        }
    }

    /// One that does not show what cells say.
    pub(super) fn silent(screen: &'s Screen) -> Self {
        let mut progress = Self::new(screen, Extent::Nothing, Limits::default(), Vec::new());
        progress.silent = true;
        progress
    }

    fn begin(&mut self, cell: Which) {
        self.close();
        self.current = Some((cell, Instant::now()));
        self.headed = false;
    }

    /// What a cell says stands under its heading.
    fn say(&mut self, chunk: Chunk) {
        self.erase();
        if !self.headed {
            self.headed = true;
            if let Some((cell, _)) = &self.current {
                let heading = heading(cell);
                let shown = self.screen.heading(&heading);
                self.trouble = self.trouble.take().or_else(|| Trouble::of(shown));
            }
        }
        let face = self
            .face
            .get_or_insert_with(|| Face::new(self.screen, self.extent, &self.limits));
        show(face, chunk);
    }

    fn end(&mut self, mark: &Mark) {
        self.close();
        self.current = None;
        if let Mark::End {
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
                Status::Error if *expected => format!("{} raised as expected", heading(cell)),
                _ => format!("{} {}", heading(cell), word(*status)),
            };
            if time >= QUICK {
                line.push_str(&format!(", {}", span(time)));
            }
            if let Some((name, _)) = error {
                line.push_str(&format!(" ({name})"));
            }
            self.screen.remark(&line);
        }
    }

    /// The cell says nothing more.
    fn close(&mut self) {
        self.erase();
        if let Some(mut face) = self.face.take() {
            face.finish();
            face.end_line();
            self.trouble = self.trouble.take().or(face.trouble().cloned());
        }
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // Nobody is left to be told when it cannot be written.
            self.screen.stream(Outlet::Stderr, "\r\u{1b}[K").ok();
        }
    }

    fn line(&mut self) -> Option<String> {
        const FRAMES: [char; 8] = ['⣾', '⣽', '⣻', '⢿', '⡿', '⣟', '⣯', '⣷'];
        let (cell, since) = self.current.as_ref()?;
        let elapsed = since.elapsed();
        if elapsed < PATIENCE {
            return None;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let mut line = format!(
            "{} {} · {}",
            FRAMES[self.frame],
            heading(cell),
            span(elapsed)
        );
        // Only what is known: all that is left ran before.
        let left: Option<Vec<Duration>> = self
            .took
            .get(cell.number - 1..)
            .map(|rest| rest.iter().copied().collect())
            .unwrap_or_default();
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            let whole: Duration = left.iter().sum();
            line.push_str(&format!(
                " · about {} left",
                span(whole.saturating_sub(elapsed))
            ));
        }
        Some(line)
    }
}

impl Looks for Progress<'_> {
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Cell => {}
            Chunk::Mark(mark) => match *mark {
                Mark::Begin { cell } => self.begin(cell),
                end @ Mark::End { .. } => self.end(&end),
            },
            other if !self.silent => self.say(other),
            _ => {}
        }
    }

    fn ticks(&self) -> bool {
        self.current.is_some() && self.screen.draws()
    }

    fn tick(&mut self) {
        let at_line_start = self.face.as_ref().is_none_or(Face::at_line_start);
        if !at_line_start {
            return;
        }
        if let Some(line) = self.line() {
            let drawn = self
                .screen
                .stream(Outlet::Stderr, &format!("\r{line}\u{1b}[K"));
            self.drawn = drawn.is_ok();
        }
    }

    fn finish(&mut self) {
        self.close();
    }

    fn trouble(&self) -> Option<&Trouble> {
        let face = self.face.as_ref().and_then(Face::trouble);
        self.trouble.as_ref().or(face)
    }
}

fn heading(cell: &Which) -> String {
    let Which {
        index, number, of, ..
    } = cell;
    match &cell.id {
        Some(id) => format!("[{number}/{of}] cell {index} id:{id}"),
        None => format!("[{number}/{of}] cell {index}"),
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Error => "failed",
        Status::Timeout => "timed out",
        Status::Cancelled => "cancelled",
        Status::Died => "died",
        Status::Refused => "refused",
        Status::Skipped => "skipped",
        Status::Pending | Status::Running => "running",
    }
}

/// A time as people say it.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", time.as_secs_f64()),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}
