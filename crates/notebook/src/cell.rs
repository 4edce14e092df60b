//! The kinds of cells, and the spans of one cell.

use std::fmt;

use crate::span::Span;

/// The member of a cell's metadata that holds the times of its last execution.
pub(crate) const EXECUTION_KEY: &str = "execution";

/// The three cell kinds of nbformat 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CellKind {
    /// Code, with outputs and an execution count.
    #[default]
    Code,
    /// Markdown.
    Markdown,
    /// Text that nbconvert passes through unchanged.
    Raw,
}

impl CellKind {
    /// The name in the file and in markers.
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

/// The spans of a cell and of the members that every operation needs.
///
/// All other members are looked up on demand, so that a notebook of a million cells costs 28
/// bytes per cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellSpans {
    pub(crate) span: Span,
    /// The value of `source`; empty if there is none.
    pub(crate) source: Span,
    /// The value of `id`, a string; empty if there is none.
    pub(crate) id: Span,
    pub(crate) kind: CellKind,
}
