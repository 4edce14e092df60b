//! [`Recorder`]: takes what cells put out, and has it written into their notebook while they run.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_notebook::file::Survey;
use cellwright_notebook::{Baselines, NotebookError, Revision};
use cellwright_output::{ArtifactId, Artifacts, Outputs, Stream};

use crate::edits::BadEdit;
use crate::order::Order;
use crate::saver::Saver;

/// How many cells may have ended and not be taken yet. More would only take memory.
const WAITING: usize = 64;

/// Takes what the cells of a notebook put out. A thread of its own writes it into the file: about once a
/// second, however quick the cells are, and once more at the end.
#[derive(Debug)]
pub struct Recorder {
    words: SyncSender<Word>,
    thread: JoinHandle<Written>,
}

/// Where things are kept that belong to no notebook.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Where outputs go that cannot go into the notebook.
    pub artifacts: Option<Artifacts>,
    /// Where earlier revisions are remembered.
    pub baselines: Option<Baselines>,
}

/// What is said to the thread.
pub(crate) enum Word {
    /// Make the edits, and find the cells.
    Commit(SyncSender<Result<(), CommitError>>),
    /// The kernel that runs them.
    Kernel(Box<Description>),
    /// A cell has begun.
    Begun { cell: usize, at: SystemTime },
    /// A cell has ended.
    Ended(Box<Ended>),
    /// A cell that had ended said something.
    Late {
        cell: usize,
        stream: Stream,
        bytes: Vec<u8>,
    },
}

/// How a cell ended, as far as its notebook is concerned.
#[derive(Debug)]
pub struct Ended {
    /// Its place among the cells that run.
    pub cell: usize,
    /// Its execution count.
    pub count: Option<u32>,
    /// What it put out. If it did not come to its end, the last of that says so.
    pub outputs: Outputs,
    /// When.
    pub at: SystemTime,
}

/// Why nothing can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The edits could not be made, or the file could not be read or written.
    #[error(transparent)]
    Notebook(#[from] NotebookError),
    /// An edit makes no sense.
    #[error(transparent)]
    Edit(#[from] BadEdit),
    /// Cells that were to run are not in the file any more as they were.
    #[error("{} of the cells that were to run were changed in the file", cells.len())]
    Changed {
        /// Those, by the place they had.
        cells: Vec<usize>,
        /// Whether the edits were made before that was seen: they are in the file then.
        edited: bool,
    },
    /// The thread that writes is gone.
    #[error("the thread that writes the notebook is gone")]
    Broken,
}

/// What came of it all.
#[derive(Debug, Default)]
pub struct Written {
    /// How often the file was written.
    pub saves: usize,
    /// Whether somebody else changed the file meanwhile.
    pub merged: bool,
    /// The revision now.
    pub revision: Option<Revision>,
    /// The notebook as it is now.
    pub survey: Option<Survey>,
    /// Where the cells that ran are now.
    pub places: Vec<Option<usize>>,
    /// The cells that could not be given what they put out.
    pub conflicts: Vec<Conflict>,
    /// Why the notebook could not be written in the end.
    pub failure: Option<NotebookError>,
    /// Where the outputs are that are not in the notebook.
    pub artifact: Option<ArtifactId>,
    /// Cells whose outputs were too large for the notebook, by their place among those that ran.
    pub moved: Vec<(usize, ArtifactId)>,
    /// Whether the thread that writes came to grief, so that nobody knows what is in the file.
    pub broken: bool,
}

/// A cell that could not be given what it put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its place among the cells that ran.
    pub cell: usize,
    /// Why.
    pub why: cellwright_notebook::file::Conflict,
}

impl Recorder {
    /// Begins to record.
    pub fn start(order: Order, places: Places) -> std::io::Result<Self> {
        let (words, receiver): (_, Receiver<Word>) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || Saver::new(order, places).serve(&receiver))?;
        Ok(Self { words, thread })
    }

    /// Makes the edits and finds the cells, once there is a kernel that can run them. Nothing was written
    /// if this fails, and nothing may run then.
    pub fn commit(&self) -> Result<(), CommitError> {
        let (sender, answer) = sync_channel(1);
        self.say(Word::Commit(sender));
        answer.recv().unwrap_or(Err(CommitError::Broken))
    }

    /// This kernel runs the cells from now on.
    pub fn kernel(&self, kernel: &Description) {
        self.say(Word::Kernel(Box::new(kernel.clone())));
    }

    /// A cell begins, by its place among those that run.
    pub fn begin(&self, cell: usize) {
        let at = SystemTime::now();
        self.say(Word::Begun { cell, at });
    }

    /// A cell has ended.
    pub fn end(&self, ended: Ended) {
        self.say(Word::Ended(Box::new(ended)));
    }

    /// A cell that had ended said something.
    pub fn late(&self, cell: usize, stream: Stream, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.say(Word::Late {
            cell,
            stream,
            bytes,
        });
    }

    /// Writes the last word, and says what came of it all.
    pub fn finish(self) -> Written {
        drop(self.words);
        self.thread.join().unwrap_or_else(|_| Written {
            broken: true,
            ..Written::default()
        })
    }

    fn say(&self, word: Word) {
        // Without a listener there is nothing to be done; the end tells.
        self.words.send(word).ok();
    }
}
