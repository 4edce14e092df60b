//! [`RecordedCells`]: the results of cells, created one after the other while the notebook is written.

use cellwright_notebook::file::{CellUpdate, CellUpdates};

use super::{Saver, TargetFile};

/// The cells to write, by their positions among the planned cells.
pub(super) struct RecordedCells<'s> {
    pub(super) saver: &'s Saver,
    pub(super) target: &'s TargetFile,
    pub(super) cells: &'s [usize],
}

impl CellUpdates for RecordedCells<'_> {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn cell(&self, at: usize) -> usize {
        self.target.cell_indexes[self.cells[at]]
    }

    fn update(&self, at: usize) -> CellUpdate {
        self.saver
            .entry(self.cells[at], self.cell(at), &self.target.style)
    }
}
