//! A thread that shows what code says. Code that runs, and its time limit, do not wait for a reader
//! that does not read.

use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use cellwright_kernel::{StopReason, Stopper};
use cellwright_output::{Bytes, Limits, Stream};

use super::events::Events;
use super::progress::Progress;
use crate::feed::{Chunk, Fed, Feed};
use crate::live::{Extent, Face, Trouble};
use crate::screen::Screen;

/// How often something is drawn anew that changes with time.
const TICK: Duration = Duration::from_millis(100);

/// What is shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) extent: Extent,
    pub(crate) form: Form,
}

/// In which form it is shown.
#[derive(Clone, Debug)]
pub(crate) enum Form {
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

impl From<Extent> for View {
    fn from(extent: Extent) -> Self {
        Self {
            extent,
            form: Form::Code,
        }
    }
}

/// Shows everything that a feed brings, until its end; gives why it did not arrive, if so. Pulls the
/// stopper when nobody is left who wants to know.
pub(crate) fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    feed: Feed,
    screen: &'env Screen,
    view: View,
    limits: Limits,
    stopper: Stopper,
) -> ScopedJoinHandle<'scope, Option<Trouble>> {
    scope.spawn(move || {
        let mut looks: Box<dyn Looks> = match view.form {
            Form::Code => Box::new(Plain::new(screen, view.extent, limits)),
            Form::Notebook { took } => Box::new(Progress::new(screen, view.extent, limits, took)),
            Form::Silent => Box::new(Progress::silent(screen)),
            Form::Events => Box::new(Events::new(screen)),
        };
        loop {
            let patience = looks.ticks().then_some(TICK);
            match feed.wait_for(patience) {
                Fed::Chunk(chunk) => looks.take(chunk),
                Fed::Nothing => looks.tick(),
                Fed::End => break,
            }
            if looks.trouble() == Some(&Trouble::Closed) {
                stopper.stop(StopReason::Cancelled);
            }
        }
        looks.finish();
        looks.trouble().cloned()
    })
}

/// Somebody who looks on.
pub(super) trait Looks {
    /// Sees what comes next.
    fn take(&mut self, chunk: Chunk);

    /// Whether time alone changes what is seen.
    fn ticks(&self) -> bool {
        false
    }

    /// Time has passed.
    fn tick(&mut self) {}

    /// Nothing more comes.
    fn finish(&mut self);

    /// Why what is shown does not arrive.
    fn trouble(&self) -> Option<&Trouble>;
}

/// Shows what code says, and nothing else.
struct Plain<'s> {
    screen: &'s Screen,
    extent: Extent,
    limits: Limits,
    face: Face<'s>,
    trouble: Option<Trouble>,
}

impl<'s> Plain<'s> {
    fn new(screen: &'s Screen, extent: Extent, limits: Limits) -> Self {
        Self {
            face: Face::new(screen, extent, &limits),
            screen,
            extent,
            limits,
            trouble: None,
        }
    }
}

impl Looks for Plain<'_> {
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Cell => {
                self.finish();
                self.face = Face::new(self.screen, self.extent, &self.limits);
            }
            Chunk::Mark(_) => {}
            other => show(&mut self.face, other),
        }
    }

    fn finish(&mut self) {
        self.face.finish();
        self.trouble = self.trouble.take().or(self.face.trouble().cloned());
    }

    fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref().or(self.face.trouble())
    }
}

/// Shows what a cell says.
pub(super) fn show(face: &mut Face<'_>, chunk: Chunk) {
    match chunk {
        Chunk::Text(stream, bytes) => face.text(stream, &bytes),
        Chunk::Piece(stream, text) => face.piece(stream, &text),
        Chunk::Lost(bytes) => face.piece(Stream::Stderr, &lost(bytes)),
        Chunk::Cell | Chunk::Mark(_) => {}
    }
}

/// What is said in the place of what was not kept.
pub(super) fn lost(bytes: u64) -> String {
    let bytes = Bytes(bytes);
    format!("[… {bytes} were not shown: they came faster than they were read …]")
}
