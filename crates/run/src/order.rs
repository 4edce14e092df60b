//! [`Order`]: which cells of a notebook run, and where what they put out goes.

use std::path::{Path, PathBuf};

use cellwright_notebook::edit::{Operation, sequence};
use cellwright_notebook::{Cells, Notebook, NotebookError, Slot, compose, file};
use serde::{Deserialize, Serialize};

use crate::edits::{BadEdit, Edit};
use crate::listing::Listing;
use crate::perform::RunError;
use crate::recorder::{Places, Recorder, Written};

/// What is to be recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// The notebook.
    pub path: PathBuf,
    /// Where it goes with its outputs, if not to where it was.
    pub output: Option<PathBuf>,
    /// The revision that the cells were read from.
    pub revision: String,
    /// Edits that are made when the kernel is ready, before the first cell runs.
    pub edits: Vec<Edit>,
    /// The cells that run, in order, as they are after the edits.
    pub cells: Vec<Planned>,
    /// Whether cells are told in the file when they ran.
    pub timing: bool,
    /// Whether somebody said which kernel it is to be, so that the notebook is to ask for it from now on.
    pub kernel_named: bool,
    /// Outputs of a cell that are larger than this, in bytes, go to an artifact.
    pub largest: Option<u64>,
}

/// A cell that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Its place.
    pub index: usize,
    /// Its id.
    pub id: Option<String>,
    /// Its source, which is what runs.
    pub source: String,
}

/// A notebook before it runs, with its edits made.
#[derive(Debug)]
pub struct Seen {
    /// The revision of the file, without the edits.
    pub revision: String,
    /// The cells.
    pub listing: Listing,
    /// The cells that the edits changed or added.
    pub edited: Vec<usize>,
}

/// Why a notebook cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookError {
    /// The file, or what is in it.
    #[error(transparent)]
    Notebook(#[from] NotebookError),
    /// An edit that makes no sense.
    #[error(transparent)]
    Edit(#[from] BadEdit),
}

/// Looks at a notebook, with edits that are not made yet.
pub fn look(path: &Path, edits: &[Edit]) -> Result<Seen, LookError> {
    if edits.is_empty() {
        let survey = file::survey(path)?;
        return Ok(Seen {
            revision: survey.revision().to_string(),
            listing: Listing::of_survey(&survey),
            edited: Vec::new(),
        });
    }
    let notebook = file::load(path)?;
    let draft = sequence(&notebook, &operations(edits)?).map_err(|error| NotebookError::Edit {
        path: path.to_owned(),
        error,
    })?;
    let edited = compose(&notebook, &draft.plan).to_bytes();
    let after = Notebook::parse(edited).map_err(|error| NotebookError::Format {
        path: path.to_owned(),
        error,
    })?;
    let is_new = |slot: &Slot| slot.origin.is_none() || slot.source.is_some();
    let slots = draft.plan.slots.iter().enumerate();
    Ok(Seen {
        revision: notebook.revision().to_string(),
        listing: Listing::of_notebook(&after),
        edited: slots
            .filter(|(_, slot)| is_new(slot))
            .map(|(index, _)| index)
            .collect(),
    })
}

/// The operations that edits are.
pub(crate) fn operations(edits: &[Edit]) -> Result<Vec<Operation>, BadEdit> {
    edits.iter().map(Edit::operation).collect()
}

/// Makes the edits of an order of which no cell runs.
pub fn edit(order: Order, places: Places) -> Result<Written, RunError> {
    let recorder = Recorder::start(order, places)?;
    recorder.commit()?;
    Ok(recorder.finish())
}

impl Planned {
    /// Cell `index` of a listing.
    pub fn of(listing: &Listing, index: usize) -> Self {
        let cell = &listing.cells()[index];
        Self {
            index,
            id: cell.id.clone(),
            source: cell.source.clone(),
        }
    }

    /// Where it is among these cells: where it was, else the one with its id, else the only one with its
    /// source.
    pub(crate) fn find(&self, cells: &dyn Cells) -> Option<usize> {
        let same_source = |index: usize| cells.source(index) == self.source;
        let same_id = |index: usize| cells.id(index).as_deref() == self.id.as_deref();
        let all = || 0..cells.count();
        if self.index < cells.count() && same_source(self.index) && same_id(self.index) {
            return Some(self.index);
        }
        let only = |fits: &dyn Fn(usize) -> bool| {
            let mut found = all().filter(|&index| fits(index));
            found.next().filter(|_| found.next().is_none())
        };
        if self.id.is_some() {
            return only(&same_id).filter(|&index| same_source(index));
        }
        only(&same_source)
    }
}
