//! [`Rule`]s: differences that are ignored when outputs are compared.

use super::tolerance::Tolerance;

/// A kind of difference that occurs in every run and is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Division of text into outputs.
    Streams,
    /// Overwritten text.
    Redraws,
    /// Colours.
    Colours,
    /// White space at the end of lines.
    Whitespace,
    /// Addresses in memory.
    Addresses,
    /// Durations.
    Times,
    /// Dates and times of day.
    Dates,
    /// Generated ids.
    Ids,
    /// Temporary directories, and directories of installed packages.
    Paths,
    /// Names of cells in messages.
    Cells,
    /// Speeds and times of progress bars.
    Progress,
    /// Execution counts.
    Counts,
    /// Content of images.
    Images,
    /// Rich representations of the same text.
    Html,
    /// Text on stderr.
    Stderr,
    /// Tracebacks of errors.
    Tracebacks,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 16] = [
        Self::Streams,
        Self::Redraws,
        Self::Colours,
        Self::Whitespace,
        Self::Addresses,
        Self::Times,
        Self::Dates,
        Self::Ids,
        Self::Paths,
        Self::Cells,
        Self::Progress,
        Self::Counts,
        Self::Images,
        Self::Html,
        Self::Stderr,
        Self::Tracebacks,
    ];

    /// Name of the rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Redraws => "redraws",
            Self::Colours => "colours",
            Self::Whitespace => "whitespace",
            Self::Addresses => "addresses",
            Self::Times => "times",
            Self::Dates => "dates",
            Self::Ids => "ids",
            Self::Paths => "paths",
            Self::Cells => "cells",
            Self::Progress => "progress",
            Self::Counts => "counts",
            Self::Images => "images",
            Self::Html => "html",
            Self::Stderr => "stderr",
            Self::Tracebacks => "tracebacks",
        }
    }

    /// The rule with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// The differences that the rule ignores.
    pub fn description(self) -> &'static str {
        match self {
            Self::Streams => {
                "the division of printed text into outputs, and the order of stdout and stderr"
            }
            Self::Redraws => "text that was overwritten on its line, by `\\r` or backspaces",
            Self::Colours => "colours and other styles of text in a terminal",
            Self::Whitespace => "white space at the end of lines, and empty lines at the end",
            Self::Addresses => {
                "addresses in memory: `at 0x7f…`, and numbers from `0x` of nine digits or more"
            }
            Self::Times => {
                "the results of `%time` and `%timeit`, numbers with `ns`, `µs` or `ms`, and seconds, minutes and \
                 hours in lines about time"
            }
            Self::Dates => "dates and times of day",
            Self::Ids => "UUIDs, and ids of widgets and of pandas and scikit-learn styles",
            Self::Paths => {
                "names in `/tmp` and other temporary directories, and the directories of installed Python packages"
            }
            Self::Cells => {
                "names of cells in messages: `Cell In[3]`, `<ipython-input-…>`, `ipykernel_…/….py`"
            }
            Self::Progress => "speeds and remaining times of progress bars",
            Self::Counts => "execution counts of results",
            Self::Images => "the content of an image, if both sides have an image of the same type",
            Self::Html => {
                "HTML, Markdown and LaTeX if both sides have plain text, which is compared"
            }
            Self::Stderr => {
                "text on stderr: warnings contain paths and versions, and appear only once"
            }
            Self::Tracebacks => "tracebacks; the name and the message of an error are compared",
        }
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of active rules, by default all, and the tolerance for numbers, by default none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    active: u32,
    tolerance: Tolerance,
}

impl Rules {
    /// No rules: everything is compared exactly.
    pub const NONE: Self = Self {
        active: 0,
        tolerance: Tolerance::NONE,
    };

    /// The same rules without this one.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self {
            active: self.active & !rule.bit(),
            ..self
        }
    }

    /// The same rules and this one.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        Self {
            active: self.active | rule.bit(),
            ..self
        }
    }

    /// Whether a rule is active.
    pub fn has(self, rule: Rule) -> bool {
        self.active & rule.bit() != 0
    }

    /// The same rules with this tolerance for numbers.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Self {
        Self { tolerance, ..self }
    }

    /// The tolerance for numbers.
    pub fn tolerance(self) -> Tolerance {
        self.tolerance
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rule::ALL.into_iter().fold(Self::NONE, Self::with)
    }
}
