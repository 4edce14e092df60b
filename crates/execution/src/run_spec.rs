//! [`RunSpec`]: which cells of a notebook run, and where their outputs are written.

use std::path::PathBuf;
use std::sync::Arc;

use cellwright_notebook::Cells;
use serde::{Deserialize, Serialize};

use crate::SKIP_EXECUTION_TAG;
use crate::edits::Edit;
use crate::listing::Listing;
use crate::shared_list;

/// A planned run of a notebook.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunSpec {
    /// Path of the notebook.
    pub path: PathBuf,
    /// Path of the notebook with outputs; `None` to write in place.
    pub output: Option<PathBuf>,
    /// Revision from which the cells were read.
    pub revision: String,
    /// Edits, applied when the kernel is ready and before the first cell runs.
    pub edits: Vec<Edit>,
    /// Cells to run, in order, as they are after the edits. Shared, because a notebook may have very many.
    #[serde(with = "shared_list")]
    pub cells: Arc<[PlannedCell]>,
    /// Indexes of the earlier cells that have not run on the kernel.
    #[serde(default)]
    pub missing_cells: Vec<usize>,
    /// Ids of all cells of the notebook after the edits, if the cells run on a session.
    #[serde(default, with = "shared_list")]
    pub cell_ids: Arc<[String]>,
    /// Whether to store start and end times in the metadata of each cell.
    pub timing: bool,
    /// Whether the user named the kernel; the notebook then gets its kernelspec.
    pub kernel_named: bool,
    /// Size in bytes above which the outputs of a cell are stored in an artifact.
    #[serde(rename = "largest")]
    pub outputs_limit: Option<u64>,
    /// Jupyter's runtime directory of the caller: it has the records of servers that may have the notebook open.
    #[serde(default)]
    pub jupyter_runtime_dir: Option<PathBuf>,
    /// Whether to write although a collaboration room has the notebook.
    #[serde(default)]
    pub force: bool,
}

impl RunSpec {
    /// Path of the notebook with outputs.
    pub(crate) fn written_path(&self) -> String {
        let path = self.output.as_ref().unwrap_or(&self.path);
        path.display().to_string()
    }
}

/// A cell to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Index in the notebook after the edits.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// Source to run.
    pub source: String,
}

impl PlannedCell {
    /// The selected cells that run: not those without source, and not those that a tag skips.
    pub fn runnable(listing: &Listing, selected: impl IntoIterator<Item = usize>) -> Arc<[Self]> {
        let runs = |index: &usize| {
            let is_empty = listing.source(*index).trim().is_empty();
            !is_empty && !listing.has_tag(*index, SKIP_EXECUTION_TAG)
        };
        let selected = selected.into_iter().filter(runs);
        selected
            .map(|index| Self::from_listing(listing, index))
            .collect()
    }

    /// Cell `index` of a listing.
    pub fn from_listing(listing: &Listing, index: usize) -> Self {
        let cell = &listing.cells()[index];
        Self {
            index,
            id: cell.id.clone(),
            source: cell.source.clone(),
        }
    }

    /// Finds the cell in a notebook: at its index, else by its id, else (without an id) as the unique cell with its
    /// source. Returns `None` if the source has changed.
    pub(crate) fn find_in(&self, cells: &dyn Cells) -> Option<usize> {
        let same_source = |index: usize| cells.source(index) == self.source;
        let same_id = |index: usize| cells.id(index).as_deref() == self.id.as_deref();
        let all = || 0..cells.count();
        if self.index < cells.count() && same_source(self.index) && same_id(self.index) {
            return Some(self.index);
        }
        let unique = |matches: &dyn Fn(usize) -> bool| {
            let mut found = all().filter(|&index| matches(index));
            found.next().filter(|_| found.next().is_none())
        };
        if self.id.is_some() {
            return unique(&same_id).filter(|&index| same_source(index));
        }
        unique(&same_source)
    }
}
