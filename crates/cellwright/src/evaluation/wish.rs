//! What is asked: cells, and what they get.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::session::{self, Audience, Cell, Job, Then};
use cellwright_kernel::{Answers, Asker, Request, Stdin, Stop, Stopper};
use cellwright_output::Limits;
use cellwright_run::Order;
use serde::{Deserialize, Serialize};

/// The most characters of a cell that stand for it where there is little room.
const LABEL_CHARACTERS: usize = 60;

/// Cells to run one after the other on one kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) cells: Vec<CellWish>,
    /// What `input()` gets, one after the other over all cells.
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// How much of what they say is shown.
    #[serde(default)]
    pub(crate) shown: Shown,
    /// How long all of them may take together.
    #[serde(default)]
    pub(crate) total: Option<Duration>,
    /// The notebook that they are from, if what they put out is to be written there.
    #[serde(default)]
    pub(crate) order: Option<Order>,
}

/// How much of an output is shown, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    inline: usize,
    head: usize,
    line: usize,
}

impl From<&Limits> for Shown {
    fn from(limits: &Limits) -> Self {
        Self {
            inline: limits.inline_bytes,
            head: limits.head_bytes,
            line: limits.column_bytes,
        }
    }
}

impl Default for Shown {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl Shown {
    pub(crate) fn limits(self) -> Limits {
        Limits {
            inline_bytes: self.inline,
            head_bytes: self.head,
            column_bytes: self.line,
            ..Limits::default()
        }
    }
}

/// One cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CellWish {
    pub(crate) code: String,
    pub(crate) title: Option<String>,
    /// `None`: as long as it takes.
    pub(crate) timeout: Option<Duration>,
    /// Whether it begins with a fresh kernel.
    pub(crate) reset: bool,
    /// The script that the code is.
    pub(crate) file: Option<PathBuf>,
    /// What it means if it fails.
    pub(crate) failing: Failing,
}

/// What it means if a cell fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failing {
    /// Everything ends.
    #[default]
    Ends,
    /// The next one follows, and in the end it is told.
    Counts,
    /// Nothing: it was expected.
    Expected,
}

/// What the texts of all cells of a notebook may take in memory, in bytes; of each of them this many at
/// the least.
const TEXTS: usize = 8 * 1024 * 1024;
const TEXT: usize = 2 * 1024;

/// What a cell of a notebook holds in memory until it ends, in bytes. The rest waits on disk.
const HELD: usize = 1024 * 1024;

/// Outputs of such a cell: whoever writes on both streams by turns makes one of every line. More of them are
/// counted and told.
const OUTPUTS: usize = 100_000;

impl Wish {
    /// How much of what a cell says is held.
    pub(crate) fn limits(&self) -> Limits {
        let limits = self.shown.limits();
        if self.order.is_none() {
            return limits;
        }
        let most = (TEXTS / self.cells.len().max(1)).max(TEXT);
        Limits {
            inline_bytes: limits.inline_bytes.min(most),
            head_bytes: limits.head_bytes.min(most / 2),
            stream_bytes: HELD,
            display_bytes: HELD,
            outputs: OUTPUTS,
            ..limits
        }
    }

    /// What it is in a few words.
    pub(crate) fn label(&self) -> String {
        if let Some(order) = &self.order {
            let name = order.path.file_name().unwrap_or_default();
            return name.to_string_lossy().into_owned();
        }
        let Some(cell) = self.cells.first() else {
            return String::new();
        };
        let line = cell.title.as_deref().unwrap_or_else(|| {
            let mut lines = cell.code.lines().map(str::trim);
            lines.find(|line| !line.is_empty()).unwrap_or_default()
        });
        let mut label: String = line.chars().take(LABEL_CHARACTERS).collect();
        if label.len() < line.len() {
            label.push('…');
        }
        if self.cells.len() > 1 {
            label.push_str(&format!(" (and {} more)", self.cells.len() - 1));
        }
        label
    }

    /// The job that a session can run. Whatever it asks beyond the answers goes to the asker.
    pub(crate) fn job(
        &self,
        owner: &str,
        (stopper, stop): (Stopper, Stop),
        audience: Box<dyn Audience>,
        asker: Option<Asker>,
    ) -> Job {
        let answers: Answers = self.answers.iter().cloned().collect();
        let stdin = Stdin::Answers(match asker {
            Some(asker) => answers.then_ask(asker),
            None => answers,
        });
        let cell = |wish: &CellWish| Cell {
            request: Request {
                stdin: stdin.clone(),
                file: wish.file.clone(),
                ..Request::new(wish.code.clone())
            },
            timeout: wish.timeout,
            reset: wish.reset,
            failing: match wish.failing {
                Failing::Ends => session::Failing::Ends,
                Failing::Counts | Failing::Expected => session::Failing::GoesOn,
            },
        };
        let stop = match self.total {
            Some(total) => stop.with_timeout(total),
            None => stop,
        };
        Job {
            cells: self.cells.iter().map(cell).collect(),
            owner: owner.to_owned(),
            label: self.label(),
            stopper,
            stop,
            then: Then::Keep,
            audience,
        }
    }
}
