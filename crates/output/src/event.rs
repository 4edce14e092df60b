//! Events of a running cell, in order. There is no end event: the end is the return value of the kernel's
//! run, so no event can follow it.

use std::fmt;
use std::sync::Arc;

use crate::bundle::Bundle;
use crate::widgets::Progress;

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

    /// Returns the index for arrays with one item per stream.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One event of a running cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// The cell wrote text. The bytes are unchanged: in any chunks, possibly not UTF-8.
    Text {
        /// The stream.
        stream: Stream,
        /// The raw bytes.
        bytes: &'a [u8],
    },
    /// The cell displayed a value.
    Display {
        /// The value's representations.
        bundle: Bundle,
        /// The display id, for later updates.
        id: Option<String>,
        /// The execution count, if this is the result of the cell.
        result: Option<u32>,
    },
    /// The cell updated all displays with an id.
    Update {
        /// The new representations.
        bundle: Bundle,
        /// The display id.
        id: String,
    },
    /// The cell cleared its output, now or at the next output.
    Clear {
        /// Whether to wait for the next output.
        wait: bool,
    },
    /// From here on, output is shown but not stored in the notebook (`true`), or stored again (`false`). A
    /// pager's text and the output that a widget captures are shown only.
    ShowOnly(bool),
    /// A progress bar of a widget is displayed or has changed. Comes before the display.
    Progress(Progress),
    /// The state of the widgets, as `metadata.widgets` of a notebook stores it: JSON text.
    WidgetState(Arc<str>),
    /// The cell raised an exception.
    Raised(Traceback),
    /// The cell requested input, and no answer was available.
    InputRefused {
        /// The prompt.
        prompt: String,
    },
}

/// An exception as the kernel sent it. The lines may contain colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traceback {
    /// The exception's class.
    pub name: String,
    /// The exception's message.
    pub value: String,
    /// The traceback, one string per frame or line.
    pub lines: Vec<String>,
}

/// Receives events. Synchronous, infallible, and never waits for a reader.
pub trait Sink: Send {
    /// Receives the next event.
    fn push(&mut self, event: Event<'_>);
}
