//! What a cell is.

use std::fmt;

use crate::span::Span;

/// The metadata of a cell that says when it ran.
pub(crate) const EXECUTION: &str = "execution";

/// The three kinds of cells that nbformat 4 knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CellKind {
    /// Code, with outputs and an execution count.
    #[default]
    Code,
    /// Markdown.
    Markdown,
    /// Text that is passed through.
    Raw,
}

impl CellKind {
    /// The name the file and the markers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }

    /// The kind with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Code, Self::Markdown, Self::Raw]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

impl fmt::Display for CellKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a cell and the parts that every operation asks for stand in the file.
///
/// Everything else in a cell is looked up when it is needed, so that a notebook of a million cells
/// costs 28 bytes for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellSpan {
    pub(crate) span: Span,
    /// The value of `source`; empty if there is none.
    pub(crate) source: Span,
    /// The value of `id`, a string; empty if there is none.
    pub(crate) id: Span,
    pub(crate) kind: CellKind,
}
