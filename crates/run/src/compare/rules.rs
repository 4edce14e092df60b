//! [`Rule`]s: what is looked over when outputs are compared.

/// Something that differs from run to run although nothing has changed, and is looked over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// How text was cut into outputs.
    Streams,
    /// What was overwritten.
    Redraws,
    /// Colours.
    Colours,
    /// White space at the end of lines.
    Whitespace,
    /// Addresses in memory.
    Addresses,
    /// How long something took.
    Times,
    /// When it was.
    Dates,
    /// Names that are made up anew each time.
    Ids,
    /// Folders for temporary files, and where packages are installed.
    Paths,
    /// What cells are called in messages.
    Cells,
    /// Speeds and times of progress bars.
    Progress,
    /// Execution counts.
    Counts,
    /// What images show.
    Images,
    /// Richer forms of the same text.
    Html,
    /// All that was written to stderr.
    Stderr,
    /// Where an error came from.
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

    /// What it is called.
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

    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// What is looked over, in one sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Streams => {
                "how printed text is cut into outputs, and whether stdout or stderr came first"
            }
            Self::Redraws => "text that was overwritten on its line, by `\\r` or backspaces",
            Self::Colours => "colours and other styles of text in a terminal",
            Self::Whitespace => "white space at the end of lines, and empty lines at the end",
            Self::Addresses => {
                "addresses in memory: `at 0x7f…`, and numbers from `0x` of nine digits or more"
            }
            Self::Times => {
                "what `%time` and `%timeit` tell, numbers with `ns`, `µs` or `ms`, and seconds, minutes and \
                 hours in lines that speak of time"
            }
            Self::Dates => "dates and times of day",
            Self::Ids => "UUIDs, ids of widgets and of the styles of pandas and scikit-learn",
            Self::Paths => {
                "names below `/tmp` and its likes, and where Python's packages are installed"
            }
            Self::Cells => {
                "what a cell is called in messages: `Cell In[3]`, `<ipython-input-…>`, `ipykernel_…/….py`"
            }
            Self::Progress => "speeds and remaining times of progress bars",
            Self::Counts => "execution counts of results",
            Self::Images => "what an image shows, as long as both are images of the same type",
            Self::Html => {
                "HTML, Markdown and LaTeX where both sides have plain text, which is compared"
            }
            Self::Stderr => {
                "everything on stderr: warnings name paths and versions, and come once only"
            }
            Self::Tracebacks => "tracebacks; the name and the message of an error are compared",
        }
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Which rules hold; by default all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules(u32);

impl Rules {
    /// Everything is compared exactly.
    pub const NONE: Self = Self(0);

    /// The same rules without this one.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !rule.bit())
    }

    /// The same rules and this one.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        Self(self.0 | rule.bit())
    }

    /// Whether a rule holds.
    pub fn has(self, rule: Rule) -> bool {
        self.0 & rule.bit() != 0
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rule::ALL.into_iter().fold(Self::NONE, Self::with)
    }
}
