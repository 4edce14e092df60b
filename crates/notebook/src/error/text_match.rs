//! [`TextMatch`] and [`SimilarText`]: where a text occurs, and where a similar one does.

use std::fmt;

/// A line of a cell that contains a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// Index of the cell.
    pub cell: usize,
    /// Line of the cell's source, from 1; `None` for its marker.
    pub line: Option<usize>,
    /// The line, truncated around the text.
    pub text: String,
}

impl fmt::Display for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, line, text } = self;
        match line {
            Some(line) => write!(f, "cell {cell}, line {line}: {text}"),
            None => write!(f, "cell {cell}, marker: {text}"),
        }
    }
}

/// A text that is similar to one that does not occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimilarText {
    /// Its first line.
    pub place: TextMatch,
    /// How it differs.
    pub difference: TextDifference,
}

/// How a text differs from a similar one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextDifference {
    /// Only in case.
    Case,
    /// Only in white space.
    WhiteSpace,
    /// In case and white space.
    CaseAndWhiteSpace,
    /// In other characters.
    Other,
}

impl TextDifference {
    pub(crate) fn between(found: &str, wanted: &str) -> Self {
        let without_spaces =
            |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
        if without_spaces(found) == without_spaces(wanted) {
            Self::WhiteSpace
        } else if found.to_lowercase() == wanted.to_lowercase() {
            Self::Case
        } else {
            Self::CaseAndWhiteSpace
        }
    }
}

impl fmt::Display for SimilarText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match self.difference {
            TextDifference::Case => write!(f, "{place} (case differs)"),
            TextDifference::WhiteSpace => write!(f, "{place} (white space differs)"),
            TextDifference::CaseAndWhiteSpace => {
                write!(f, "{place} (case and white space differ)")
            }
            TextDifference::Other => write!(f, "{place}"),
        }
    }
}
