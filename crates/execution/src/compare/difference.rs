//! [`Difference`]: one difference between two outputs.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of characters of a line in an excerpt.
const EXCERPT_LIMIT: usize = 120;

/// Number of characters in an excerpt before the first difference.
const CONTEXT_SIZE: usize = 40;

/// One difference between a stored and a new output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The part that differs: `stdout`, a MIME type, `error`, `output_type`, …
    pub what: String,
    /// First line that differs, from 1; `None` if the part has no lines.
    pub line: Option<usize>,
    /// The stored side; `None` if the part is new.
    pub stored: Option<Side>,
    /// The new side; `None` if the part is gone.
    pub fresh: Option<Side>,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    /// Index of the output; of joined outputs, the first one.
    pub output: usize,
    /// An excerpt on one line; `None` if the text has ended already.
    pub text: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        let at = self
            .line
            .map_or(String::new(), |line| format!(", line {line}"));
        match (&self.stored, &self.fresh) {
            (Some(stored), Some(fresh)) => write!(
                f,
                "output {}, {what}{at}: was {}, is {}",
                fresh.output,
                Quoted(stored),
                Quoted(fresh)
            ),
            (Some(side), None) => write!(
                f,
                "output {}, {what}, is gone: {}",
                side.output,
                Quoted(side)
            ),
            (None, Some(side)) => write!(
                f,
                "output {}, {what}, is new: {}",
                side.output,
                Quoted(side)
            ),
            (None, None) => write!(f, "{what}"),
        }
    }
}

struct Quoted<'a>(&'a Side);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.text {
            Some(text) => write!(f, "`{text}`"),
            None => f.write_str("nothing"),
        }
    }
}

/// Excerpts of both lines around the first difference.
pub(super) fn excerpt_pair(stored: &str, fresh: &str) -> (String, String) {
    let common = stored
        .chars()
        .zip(fresh.chars())
        .take_while(|(one, other)| one == other)
        .count();
    // Short lines are shown completely.
    let longest = stored
        .chars()
        .take(EXCERPT_LIMIT + 1)
        .count()
        .max(fresh.chars().take(EXCERPT_LIMIT + 1).count());
    let skipped = if longest <= EXCERPT_LIMIT {
        0
    } else {
        common.saturating_sub(CONTEXT_SIZE)
    };
    (excerpt(stored, skipped), excerpt(fresh, skipped))
}

/// An excerpt of a text, on one line, without the first `skipped` characters.
pub(super) fn excerpt(text: &str, skipped: usize) -> String {
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    let mut characters = text.chars().skip(skipped);
    for character in characters.by_ref().take(EXCERPT_LIMIT) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
