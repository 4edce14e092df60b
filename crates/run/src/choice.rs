//! Which cells are to run.

use cellwright_notebook::edit::Address;
use cellwright_notebook::{CellKind, Cells, EditError};
use serde::{Deserialize, Serialize};

use crate::listing::Listing;

/// What was said about which cells are meant. Without anything: all of them. What is said narrows it down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// A list such as `3-5,8,id:ab12`.
    pub cells: Option<String>,
    /// This one and those behind it.
    pub from: Option<String>,
    /// This one and those before it.
    pub to: Option<String>,
    /// Those before this one.
    pub above: Option<String>,
    /// Those behind this one.
    pub below: Option<String>,
    /// Those with one of these tags.
    pub tags: Vec<String>,
}

/// What is wrong with a choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Not an address.
    #[error("`{text}` is not a cell: expected an index such as 3, a range such as 3-5, or id:…")]
    NotACell {
        /// What was said.
        text: String,
    },
    /// An address that leads nowhere.
    #[error("{error:?}")]
    NoSuchCell {
        /// Why.
        error: EditError,
    },
    /// A cell that cannot run.
    #[error("cell {index} is {kind}, and only code cells run")]
    NotCode {
        /// Which.
        index: usize,
        /// What it is.
        kind: CellKind,
    },
    /// A range that ends before it begins.
    #[error("the range {text} ends before it begins")]
    Backwards {
        /// What was said.
        text: String,
    },
    /// No cell has any of the tags.
    #[error("no code cell has the tag {}", tags.join(" or "))]
    NoSuchTag {
        /// Those.
        tags: Vec<String>,
    },
}

impl Choice {
    /// Whether nothing was said.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// The code cells that are meant, in order.
    pub fn resolve(&self, listing: &Listing) -> Result<Vec<usize>, ChoiceError> {
        let count = listing.count();
        let mut chosen = vec![true; count];
        if let Some(list) = &self.cells {
            chosen = vec![false; count];
            for item in list.split(',').map(str::trim) {
                let (range, single) = items(item, listing)?;
                let kind = listing.kind(range.start);
                if single && kind != CellKind::Code {
                    let index = range.start;
                    return Err(ChoiceError::NotCode { index, kind });
                }
                chosen[range].fill(true);
            }
        }
        let bound = |text: &Option<String>| {
            text.as_deref()
                .map(|text| address(text, listing))
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
            return Err(ChoiceError::NoSuchTag {
                tags: self.tags.clone(),
            });
        }
        Ok((first..end)
            .filter(|&index| chosen[index] && is_code(index) && tagged(index))
            .collect())
    }
}

/// The cells that an item of a list names, and whether it names just one.
fn items(text: &str, listing: &Listing) -> Result<(std::ops::Range<usize>, bool), ChoiceError> {
    let is_range = |text: &str| {
        !text.starts_with("id:") && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) if is_range(text) && !first.is_empty() => (first, last),
        _ => {
            let index = address(text, listing)?;
            return Ok((index..index + 1, true));
        }
    };
    let start = address(first, listing)?;
    let end = if last.is_empty() {
        listing.count()
    } else {
        address(last, listing)? + 1
    };
    if end <= start {
        return Err(ChoiceError::Backwards {
            text: text.to_owned(),
        });
    }
    Ok((start..end, false))
}

/// The cell that somebody means.
pub(crate) fn address(text: &str, listing: &Listing) -> Result<usize, ChoiceError> {
    let Some(address) = Address::read(text) else {
        return Err(ChoiceError::NotACell {
            text: text.to_owned(),
        });
    };
    address
        .find(listing)
        .map_err(|error| ChoiceError::NoSuchCell { error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Listed;

    /// Six cells; the third is Markdown.
    fn listing() -> Listing {
        let cell = |index: usize| Listed {
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
            took: None,
        };
        Listing::new((0..6).map(cell).collect())
    }

    fn chosen(choice: &Choice) -> Result<Vec<usize>, ChoiceError> {
        choice.resolve(&listing())
    }

    fn cells(list: &str) -> Result<Vec<usize>, ChoiceError> {
        chosen(&Choice {
            cells: Some(list.to_owned()),
            ..Choice::default()
        })
    }

    #[test]
    fn a_list_names_cells_by_index_range_and_id() {
        assert_eq!(chosen(&Choice::default()), Ok(vec![0, 1, 3, 4, 5]));
        assert_eq!(cells("1-3,5"), Ok(vec![1, 3, 5]));
        assert_eq!(cells("4-, id:a"), Ok(vec![0, 4, 5]));
        assert_eq!(cells("id:d-id"), Ok(vec![3]));
    }

    #[test]
    fn above_and_below_leave_the_cell_out_and_from_and_to_do_not() {
        let with = |set: fn(&mut Choice)| {
            let mut choice = Choice::default();
            set(&mut choice);
            chosen(&choice)
        };
        assert_eq!(with(|c| c.above = Some("3".into())), Ok(vec![0, 1]));
        assert_eq!(with(|c| c.to = Some("3".into())), Ok(vec![0, 1, 3]));
        assert_eq!(with(|c| c.below = Some("3".into())), Ok(vec![4, 5]));
        assert_eq!(with(|c| c.from = Some("id:d".into())), Ok(vec![3, 4, 5]));
        let both = Choice {
            from: Some("1".into()),
            to: Some("4".into()),
            tags: vec!["even".into()],
            ..Choice::default()
        };
        assert_eq!(chosen(&both), Ok(vec![4]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(matches!(
            cells("2"),
            Err(ChoiceError::NotCode { index: 2, .. })
        ));
        assert!(matches!(cells("5-3"), Err(ChoiceError::Backwards { .. })));
        assert!(matches!(cells("9"), Err(ChoiceError::NoSuchCell { .. })));
        assert!(matches!(cells(""), Err(ChoiceError::NotACell { .. })));
        assert!(matches!(cells("x"), Err(ChoiceError::NotACell { .. })));
        let tags = Choice {
            tags: vec!["odd".into()],
            ..Choice::default()
        };
        assert!(matches!(chosen(&tags), Err(ChoiceError::NoSuchTag { .. })));
    }
}
