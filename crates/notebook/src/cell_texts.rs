//! [`CellTexts`]: types, ids and sources of cells in few allocations.

use std::borrow::Cow;

use crate::cell::CellKind;
use crate::document::Cells;

/// Types, ids and sources of cells. All texts are in one string, because a notebook may have a million cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellTexts {
    /// The id and the source of each cell, one after the other.
    text: String,
    cells: Vec<TextPosition>,
}

/// Where the texts of a cell are. Its id begins where the source of the cell before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextPosition {
    kind: CellKind,
    has_id: bool,
    source_start: u32,
    source_end: u32,
}

impl CellTexts {
    /// No cells, with memory for the cells of `other`.
    pub(crate) fn with_capacity_of(other: &Self) -> Self {
        Self {
            text: String::with_capacity(other.text.len()),
            cells: Vec::with_capacity(other.cells.len()),
        }
    }

    /// Adds a cell. All texts together have less than 4 GiB, as every notebook file has.
    pub fn push(&mut self, kind: CellKind, id: Option<&str>, source: &str) {
        self.push_with(kind, id, |text| text.push_str(source));
    }

    /// Adds a cell whose source is appended by `append_source`. Returns the source.
    pub(crate) fn push_with(
        &mut self,
        kind: CellKind,
        id: Option<&str>,
        append_source: impl FnOnce(&mut String),
    ) -> &str {
        self.text.push_str(id.unwrap_or_default());
        let source_start = self.text.len();
        append_source(&mut self.text);
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.cells.push(TextPosition {
            kind,
            has_id: id.is_some(),
            source_start: offset(source_start),
            source_end: offset(self.text.len()),
        });
        &self.text[source_start..]
    }

    /// Removes all cells.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
    }

    /// Releases the memory for further cells.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.cells.shrink_to_fit();
    }

    /// Type, id and source of cell `index`.
    pub fn get(&self, index: usize) -> Option<(CellKind, Option<&str>, &str)> {
        let cell = self.cells.get(index)?;
        let before = index.checked_sub(1).map(|before| self.cells[before]);
        let id_start = before.map_or(0, |before| before.source_end);
        let text = |start: u32, end: u32| self.text.get(start as usize..end as usize);
        let id = text(id_start, cell.source_start).filter(|_| cell.has_id);
        let source = text(cell.source_start, cell.source_end);
        Some((cell.kind, id, source.unwrap_or_default()))
    }
}

impl Cells for CellTexts {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.cells[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        Cow::Borrowed(self.get(index).map_or("", |(_, _, source)| source))
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.get(index).and_then(|(_, id, _)| id).map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_cells_are_separate() {
        let expected = [
            (CellKind::Code, Some("a"), "x = 1"),
            (CellKind::Markdown, None, ""),
            (CellKind::Raw, Some(""), "é"),
            (CellKind::Code, None, "y"),
        ];
        let mut cells = CellTexts::default();
        for (kind, id, source) in expected {
            cells.push(kind, id, source);
        }
        cells.shrink_to_fit();
        assert_eq!(cells.count(), expected.len());
        for (index, cell) in expected.into_iter().enumerate() {
            assert_eq!(cells.get(index), Some(cell));
            assert_eq!(cells.id(index).as_deref(), cell.1);
            assert_eq!(cells.source(index), cell.2);
        }
        assert_eq!(cells.get(expected.len()), None);
    }
}
