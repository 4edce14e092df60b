//! [`CellSelection`]: which cells run.

use cellwright_notebook::edit::Address;
use cellwright_notebook::{CellKind, Cells, EditError};
use serde::{Deserialize, Serialize};

use crate::listing::Listing;

/// Criteria that select cells. A cell must meet all of them; without any, all code cells are selected.
///
/// A cell is named by its index, or by `id:` and the beginning of its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellSelection {
    /// List of cells, such as `3-5,8,id:ab12`.
    pub cells: Option<String>,
    /// This cell and all following cells.
    pub from: Option<String>,
    /// This cell and all preceding cells.
    pub to: Option<String>,
    /// All cells before this one.
    pub above: Option<String>,
    /// All cells after this one.
    pub below: Option<String>,
    /// Cells with at least one of these tags.
    pub tags: Vec<String>,
}

/// Why a selection is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Text that is not the address of a cell.
    #[error("`{text}` is not a cell: expected an index such as 3, a range such as 3-5, or id:…")]
    InvalidAddress {
        /// The text.
        text: String,
    },
    /// An address of no cell, or of several cells.
    #[error("{}", describe_missing_cell(error))]
    NoSuchCell {
        /// Why no cell was found.
        error: EditError,
    },
    /// A cell that is not a code cell.
    #[error("cell {index} is {kind}, and only code cells run")]
    NotCode {
        /// Index of the cell.
        index: usize,
        /// Type of the cell.
        kind: CellKind,
    },
    /// A range whose end is before its start.
    #[error("the range {text} ends before it begins")]
    ReversedRange {
        /// The range.
        text: String,
    },
    /// No code cell has any of the tags.
    #[error("no code cell has the tag {}", tags.join(" or "))]
    NoSuchTag {
        /// The tags.
        tags: Vec<String>,
        /// The tags of the code cells, each once.
        known: Vec<String>,
    },
}

impl CellSelection {
    /// Whether there are no criteria, so that all code cells are selected.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Indexes of the selected code cells, in order.
    pub fn resolve(&self, listing: &Listing) -> Result<Vec<usize>, SelectionError> {
        let count = listing.count();
        let mut selected = vec![true; count];
        if let Some(list) = &self.cells {
            selected = vec![false; count];
            for item in list.split(',').map(str::trim) {
                let (range, single) = resolve_item(item, listing)?;
                let kind = listing.kind(range.start);
                if single && kind != CellKind::Code {
                    let index = range.start;
                    return Err(SelectionError::NotCode { index, kind });
                }
                selected[range].fill(true);
            }
        }
        let bound = |text: &Option<String>| {
            text.as_deref()
                .map(|text| resolve_address(text, listing))
                .transpose()
        };
        let first = bound(&self.from)?
            .into_iter()
            .chain(bound(&self.below)?.map(|below| below + 1));
        let first = first.max().unwrap_or(0);
        let end = bound(&self.to)?
            .map(|to| to + 1)
            .into_iter()
            .chain(bound(&self.above)?);
        let end = end.min().unwrap_or(count);
        let tagged = |index: usize| {
            self.tags.is_empty() || self.tags.iter().any(|tag| listing.has_tag(index, tag))
        };
        let is_code = |index: usize| listing.kind(index) == CellKind::Code;
        if !self.tags.is_empty() && !(0..count).any(|index| is_code(index) && tagged(index)) {
            let mut known: Vec<String> = Vec::new();
            for index in (0..count).filter(|&index| is_code(index)) {
                let is_new = |tag: &&String| !known.contains(tag);
                let tags = listing.cell_tags(index).iter();
                let new: Vec<String> = tags.filter(is_new).cloned().collect();
                known.extend(new);
            }
            return Err(SelectionError::NoSuchTag {
                tags: self.tags.clone(),
                known,
            });
        }
        Ok((first..end)
            .filter(|&index| selected[index] && is_code(index) && tagged(index))
            .collect())
    }
}

/// The cells that an item of a list names, and whether the item names a single cell.
fn resolve_item(
    text: &str,
    listing: &Listing,
) -> Result<(std::ops::Range<usize>, bool), SelectionError> {
    let is_range = |text: &str| {
        !text.starts_with("id:") && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) if is_range(text) && !first.is_empty() => (first, last),
        _ => {
            let index = resolve_address(text, listing)?;
            return Ok((index..index + 1, true));
        }
    };
    let start = resolve_address(first, listing)?;
    let end = if last.is_empty() {
        listing.count()
    } else {
        resolve_address(last, listing)? + 1
    };
    if end <= start {
        return Err(SelectionError::ReversedRange {
            text: text.to_owned(),
        });
    }
    Ok((start..end, false))
}

/// Index of the cell with this address.
fn resolve_address(text: &str, listing: &Listing) -> Result<usize, SelectionError> {
    let Some(address) = Address::parse(text) else {
        return Err(SelectionError::InvalidAddress {
            text: text.to_owned(),
        });
    };
    address
        .resolve(listing)
        .map_err(|error| SelectionError::NoSuchCell { error })
}

/// Describes why an address does not lead to one cell. Resolving an address has only these two errors.
fn describe_missing_cell(error: &EditError) -> String {
    match error {
        EditError::OutOfRange {
            index,
            last: Some(last),
            ..
        } => format!("cell index {index} is out of range (0-{last})"),
        EditError::OutOfRange { index, .. } => {
            format!("cell index {index} is out of range: the notebook has no cells")
        }
        EditError::IdMatches {
            prefix, count: 0, ..
        } => format!("no cell has an id that begins with `{prefix}`"),
        EditError::IdMatches { prefix, count, .. } => {
            format!("{count} cells have an id that begins with `{prefix}`")
        }
        EditError::NoSuchId { id, .. } => format!(
            "no cell has the id `{id}`: expected an index such as 3, a range such as 3-5, a whole id, or id:…"
        ),
        _ => "the notebook has no such cell".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::ListedCell;

    /// Six cells; the third is Markdown.
    fn listing() -> Listing {
        let cell = |index: usize| ListedCell {
            kind: if index == 2 {
                CellKind::Markdown
            } else {
                CellKind::Code
            },
            id: Some(format!("{}-id", ["a", "b", "c", "d", "e", "f"][index])),
            source: format!("x = {index}"),
            tags: if index.is_multiple_of(2) {
                vec!["even".to_owned()]
            } else {
                Vec::new()
            },
            last_duration: None,
        };
        Listing::new((0..6).map(cell).collect())
    }

    fn selected(selection: &CellSelection) -> Result<Vec<usize>, SelectionError> {
        selection.resolve(&listing())
    }

    fn cells(list: &str) -> Result<Vec<usize>, SelectionError> {
        selected(&CellSelection {
            cells: Some(list.to_owned()),
            ..CellSelection::default()
        })
    }

    #[test]
    fn list_selects_cells_by_index_range_and_id() {
        assert_eq!(selected(&CellSelection::default()), Ok(vec![0, 1, 3, 4, 5]));
        assert_eq!(cells("1-3,5"), Ok(vec![1, 3, 5]));
        assert_eq!(cells("4-, id:a"), Ok(vec![0, 4, 5]));
        assert_eq!(cells("id:d-id"), Ok(vec![3]));
        assert_eq!(cells("d-id,0"), Ok(vec![0, 3]));
    }

    #[test]
    fn above_and_below_exclude_the_named_cell_from_and_to_include_it() {
        let with = |set: fn(&mut CellSelection)| {
            let mut selection = CellSelection::default();
            set(&mut selection);
            selected(&selection)
        };
        assert_eq!(with(|c| c.above = Some("3".into())), Ok(vec![0, 1]));
        assert_eq!(with(|c| c.to = Some("3".into())), Ok(vec![0, 1, 3]));
        assert_eq!(with(|c| c.below = Some("3".into())), Ok(vec![4, 5]));
        assert_eq!(with(|c| c.from = Some("id:d".into())), Ok(vec![3, 4, 5]));
        let both = CellSelection {
            from: Some("1".into()),
            to: Some("4".into()),
            tags: vec!["even".into()],
            ..CellSelection::default()
        };
        assert_eq!(selected(&both), Ok(vec![4]));
    }

    #[test]
    fn invalid_selections_are_rejected() {
        assert!(matches!(
            cells("2"),
            Err(SelectionError::NotCode { index: 2, .. })
        ));
        assert!(matches!(
            cells("5-3"),
            Err(SelectionError::ReversedRange { .. })
        ));
        assert!(matches!(cells("9"), Err(SelectionError::NoSuchCell { .. })));
        assert!(matches!(
            cells(""),
            Err(SelectionError::InvalidAddress { .. })
        ));
        assert!(matches!(cells("x"), Err(SelectionError::NoSuchCell { .. })));
        assert!(matches!(
            cells("x y"),
            Err(SelectionError::InvalidAddress { .. })
        ));
        let tags = CellSelection {
            tags: vec!["odd".into()],
            ..CellSelection::default()
        };
        assert!(matches!(
            selected(&tags),
            Err(SelectionError::NoSuchTag { .. })
        ));
    }

    #[test]
    fn missing_cells_are_described() {
        let mut twins: Vec<ListedCell> = listing().cells().collect();
        twins[1].id = Some("a-other".to_owned());
        let cases = [
            ("9", listing(), "cell index 9 is out of range (0-5)"),
            (
                "0",
                Listing::default(),
                "cell index 0 is out of range: the notebook has no cells",
            ),
            ("id:x", listing(), "no cell has an id that begins with `x`"),
            (
                "id:a",
                Listing::new(twins),
                "2 cells have an id that begins with `a`",
            ),
        ];
        for (list, listing, expected) in cases {
            let selection = CellSelection {
                cells: Some(list.to_owned()),
                ..CellSelection::default()
            };
            let error = selection.resolve(&listing).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
