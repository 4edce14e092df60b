//! [`Difference`]: one thing that is not as it was.

use std::fmt;

use serde::Serialize;

/// The most characters of a line that are told.
const SHOWN: usize = 120;

/// How many of them stand before the place where the lines begin to differ.
const BEFORE: usize = 40;

/// One thing that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `stdout`, a MIME type, `error`, `output_type`, …
    pub what: String,
    /// The line of it where they begin to differ, from 1; `None` where it has no lines.
    pub line: Option<usize>,
    /// How it was; `None` if it was not there.
    pub stored: Option<Side>,
    /// How it is now; `None` if it is not there any more.
    pub fresh: Option<Side>,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The index of the output; of several that were joined the first.
    pub output: usize,
    /// A short passage of what stands there, in one line; `None` where the text has ended already.
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

/// Both lines, cut to where they begin to differ.
pub(super) fn excerpts(stored: &str, fresh: &str) -> (String, String) {
    let common = stored
        .chars()
        .zip(fresh.chars())
        .take_while(|(one, other)| one == other)
        .count();
    // Short lines are told whole.
    let longest = stored
        .chars()
        .take(SHOWN + 1)
        .count()
        .max(fresh.chars().take(SHOWN + 1).count());
    let skipped = if longest <= SHOWN {
        0
    } else {
        common.saturating_sub(BEFORE)
    };
    (excerpt(stored, skipped), excerpt(fresh, skipped))
}

/// A passage of a text, in one line.
pub(super) fn excerpt(text: &str, skipped: usize) -> String {
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    let mut characters = text.chars().skip(skipped);
    for character in characters.by_ref().take(SHOWN) {
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
