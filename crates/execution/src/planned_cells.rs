//! [`PlannedCells`]: the cells of a notebook that run.

use std::fmt;
use std::sync::Arc;

use cellwright_notebook::{CellKind, CellTexts, Cells};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::listing::Listing;
use crate::{RAISES_EXCEPTION_TAG, SKIP_EXECUTION_TAG};

/// A cell to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Index in the notebook after the edits.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// Source to run.
    pub source: String,
    /// Whether a tag states that the cell raises an exception.
    #[serde(default)]
    pub raises_exception: bool,
}

/// Cells to run, in order. Clones share the texts, which are in one allocation: a notebook may have very many cells.
#[derive(Clone, Default)]
pub struct PlannedCells(Arc<CellList>);

#[derive(Default)]
struct CellList {
    texts: Arc<CellTexts>,
    /// Whether the texts are those of all cells of the notebook, not only of the cells that run.
    has_all_texts: bool,
    cells: Vec<CellPosition>,
}

struct CellPosition {
    index: usize,
    raises_exception: bool,
}

impl PlannedCell {
    /// Cell `index` of a listing.
    pub fn from_listing(listing: &Listing, index: usize) -> Self {
        Self {
            index,
            id: listing.id(index).map(Into::into),
            source: listing.source(index).into(),
            raises_exception: listing.has_tag(index, RAISES_EXCEPTION_TAG),
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

impl PlannedCells {
    /// The selected cells that run: not those without source, and not those that a tag skips.
    pub fn runnable(listing: &Listing, selected: impl IntoIterator<Item = usize>) -> Self {
        let runs = |index: &usize| {
            let is_empty = listing.source(*index).trim().is_empty();
            !is_empty && !listing.has_tag(*index, SKIP_EXECUTION_TAG)
        };
        let selected: Vec<usize> = selected.into_iter().filter(runs).collect();
        if selected.len() < listing.count() / 2 {
            let cells = selected.into_iter();
            return cells
                .map(|index| PlannedCell::from_listing(listing, index))
                .collect();
        }
        let position = |index: usize| CellPosition {
            index,
            raises_exception: listing.has_tag(index, RAISES_EXCEPTION_TAG),
        };
        Self(Arc::new(CellList {
            texts: listing.texts(),
            has_all_texts: true,
            cells: selected.into_iter().map(position).collect(),
        }))
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.0.cells.len()
    }

    /// Whether no cell runs.
    pub fn is_empty(&self) -> bool {
        self.0.cells.is_empty()
    }

    /// The cell at a position among the cells that run.
    pub fn get(&self, at: usize) -> Option<PlannedCell> {
        let position = self.0.cells.get(at)?;
        let (id, source) = self.0.text(at)?;
        Some(PlannedCell {
            index: position.index,
            id: id.map(str::to_owned),
            source: source.to_owned(),
            raises_exception: position.raises_exception,
        })
    }

    /// The texts of the cells, and possibly of other cells of the notebook.
    pub(crate) fn texts(&self) -> &Arc<CellTexts> {
        &self.0.texts
    }

    /// The cells.
    pub fn iter(&self) -> impl Iterator<Item = PlannedCell> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// The index of each cell in the notebook.
    pub fn indexes(&self) -> impl Iterator<Item = usize> {
        self.0.cells.iter().map(|cell| cell.index)
    }

    /// The source of each cell.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        let texts = (0..self.len()).filter_map(|at| self.0.text(at));
        texts.map(|(_, source)| source)
    }
}

impl CellList {
    /// Id and source of the cell at a position.
    fn text(&self, at: usize) -> Option<(Option<&str>, &str)> {
        let position = if self.has_all_texts {
            self.cells.get(at)?.index
        } else {
            at
        };
        let (_, id, source) = self.texts.get(position)?;
        Some((id, source))
    }
}

/// Cells that are added one after the other.
#[derive(Default)]
struct PlannedCellsBuilder {
    texts: CellTexts,
    cells: Vec<CellPosition>,
}

impl PlannedCellsBuilder {
    fn push(&mut self, cell: &PlannedCell) {
        let id = cell.id.as_deref();
        self.texts.push(CellKind::Code, id, &cell.source);
        self.cells.push(CellPosition {
            index: cell.index,
            raises_exception: cell.raises_exception,
        });
    }

    fn finish(mut self) -> PlannedCells {
        self.texts.shrink_to_fit();
        self.cells.shrink_to_fit();
        PlannedCells(Arc::new(CellList {
            texts: Arc::new(self.texts),
            has_all_texts: false,
            cells: self.cells,
        }))
    }
}

impl FromIterator<PlannedCell> for PlannedCells {
    fn from_iter<I: IntoIterator<Item = PlannedCell>>(cells: I) -> Self {
        let mut builder = PlannedCellsBuilder::default();
        for cell in cells {
            builder.push(&cell);
        }
        builder.finish()
    }
}

impl fmt::Debug for PlannedCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for PlannedCells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for PlannedCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CellsVisitor;

        impl<'de> Visitor<'de> for CellsVisitor {
            type Value = PlannedCells;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of cells")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<PlannedCells, A::Error> {
                let mut builder = PlannedCellsBuilder::default();
                let mut size = 0;
                while let Some(cell) = cells.next_element::<PlannedCell>()? {
                    size += cell.source.len() + cell.id.as_ref().map_or(0, String::len);
                    if u32::try_from(size).is_err() {
                        return Err(de::Error::custom("cells of 4 GiB or more"));
                    }
                    builder.push(&cell);
                }
                Ok(builder.finish())
            }
        }

        deserializer.deserialize_seq(CellsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::ListedCell;

    #[test]
    fn cells_without_source_and_skipped_cells_do_not_run() {
        let listed = |source: &str, tag: &str| ListedCell {
            kind: CellKind::Code,
            id: Some(format!("id {source}")),
            source: source.to_owned(),
            tags: vec![tag.to_owned()],
            last_duration: None,
        };
        let listing = Listing::new(vec![
            listed("a", ""),
            listed(" \n", ""),
            listed("b", SKIP_EXECUTION_TAG),
            listed("c", RAISES_EXCEPTION_TAG),
            listed("d", ""),
            listed("e", ""),
        ]);
        for selected in [vec![3], vec![0, 1, 2, 3, 4, 5]] {
            let runs = selected.iter().filter(|&&index| ![1, 2].contains(&index));
            let expected: Vec<PlannedCell> = runs
                .map(|&index| PlannedCell::from_listing(&listing, index))
                .collect();
            let cells = PlannedCells::runnable(&listing, selected);
            assert_eq!(cells.iter().collect::<Vec<_>>(), expected);
            assert!(cells.sources().eq(expected.iter().map(|cell| &cell.source)));
            let raising = cells.iter().filter(|cell| cell.raises_exception);
            assert!(raising.map(|cell| cell.index).eq([3]));
        }
    }

    #[test]
    fn cells_are_the_same_after_serialization() {
        let cell = |index: usize, id: Option<&str>, source: &str| PlannedCell {
            index,
            id: id.map(str::to_owned),
            source: source.to_owned(),
            raises_exception: index == 3,
        };
        let expected = [
            cell(1, Some("a"), "x"),
            cell(3, None, "é\n"),
            cell(4, None, ""),
        ];
        let cells: PlannedCells = expected.iter().cloned().collect();
        assert_eq!(cells.iter().collect::<Vec<_>>(), expected);
        assert_eq!(cells.indexes().collect::<Vec<_>>(), [1, 3, 4]);
        assert_eq!(cells.sources().collect::<Vec<_>>(), ["x", "é\n", ""]);
        assert_eq!(cells.get(3), None);
        let json = serde_json::to_string(&cells).unwrap();
        assert_eq!(json, serde_json::to_string(&expected).unwrap());
        let received: PlannedCells = serde_json::from_str(&json).unwrap();
        assert_eq!(received.iter().collect::<Vec<_>>(), expected);
    }
}
