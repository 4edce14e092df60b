//! What happened while code ran, in order. There is no "done" among the events: the end of a run is
//! the return value of whoever runs it, so nothing can come after it.

use std::fmt;

use crate::bundle::Bundle;

/// One of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The stream's name as notebooks write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that running code did.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// Text was written. The bytes are as they came: in any chunks, maybe not UTF-8.
    Text {
        /// Where it was written.
        stream: Stream,
        /// What was written.
        bytes: &'a [u8],
    },
    /// Something was displayed.
    Display {
        /// Its representations.
        bundle: Bundle,
        /// The id under which it may be updated later.
        id: Option<String>,
        /// The execution count, if this is the value of the last expression.
        result: Option<u32>,
    },
    /// Everything displayed under an id becomes something else.
    Update {
        /// The new representations.
        bundle: Bundle,
        /// Which displays change.
        id: String,
    },
    /// What was shown so far goes away: now, or when the next output comes.
    Clear {
        /// Whether to wait for the next output.
        wait: bool,
    },
    /// What comes from now on is not shown in the cell but beside it, as in a pager or in a widget that
    /// captures output; or in the cell again. A notebook's outputs do not have it, everybody else is told.
    Aside(bool),
    /// The code raised an exception.
    Raised(Traceback),
    /// The code asked for input and nobody could answer.
    InputRefused {
        /// What it asked.
        prompt: String,
    },
}

/// An exception as the kernel told it; the lines may carry colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traceback {
    /// The exception's class.
    pub name: String,
    /// Its message.
    pub value: String,
    /// The traceback, a string per frame or line.
    pub lines: Vec<String>,
}

/// Takes events. It is synchronous, cannot fail, and never waits for people.
pub trait Sink: Send {
    /// Takes the next event.
    fn push(&mut self, event: Event<'_>);
}
