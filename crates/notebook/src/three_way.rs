//! Two notebooks that come from one, put together cell by cell.
//!
//! `order` says which cells there are and where, `cell` puts the two changes of one cell together:
//! the source line by line (`text`), everything else member by member (`members`). What comes out is our
//! file (`file`) with what they changed spliced in, in our layout.

mod cell;
mod file;
mod members;
mod order;
mod text;

use self::file::Merger;
use crate::document::Notebook;

/// What stands around lines that cannot be put together.
#[derive(Clone, Debug)]
pub struct Marks {
    /// How many signs a mark has.
    pub size: usize,
    /// What our side is called.
    pub ours: String,
    /// What their side is called.
    pub theirs: String,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            size: 7,
            ours: "ours".to_owned(),
            theirs: "theirs".to_owned(),
        }
    }
}

impl Marks {
    fn line(&self, sign: char, name: &str) -> String {
        let mut line = String::from(sign).repeat(self.size);
        if !name.is_empty() {
            line.push(' ');
            line.push_str(name);
        }
        line
    }
}

/// One of the two that changed a notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one whose file is kept.
    Ours,
    /// The other.
    Theirs,
}

/// What a person should know of a merge; cells are those of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// Both changed the same lines: both stand in the source, between marks.
    Source {
        /// Index of the cell.
        cell: usize,
    },
    /// One side deleted the cell, the other changed it: it stays.
    Deleted {
        /// Index of the cell.
        cell: usize,
        /// Who deleted it.
        by: Side,
    },
    /// Both changed the kind of the cell: ours counts.
    Kind {
        /// Index of the cell.
        cell: usize,
    },
    /// Both moved the cell: it stands where we put it.
    Moved {
        /// Index of the cell.
        cell: usize,
    },
    /// Both changed a member: ours counts.
    Member {
        /// Index of the cell; without one it is the notebook's.
        cell: Option<usize>,
        /// The names that lead to it, joined by dots.
        name: String,
    },
    /// The outputs are gone, because the source is neither side's.
    Cleared {
        /// Index of the cell.
        cell: usize,
    },
    /// A cell of theirs got another id, because ours had it.
    Renamed {
        /// Index of the cell.
        cell: usize,
        /// The id that it had.
        id: String,
    },
}

impl Remark {
    /// Whether somebody has to look at it.
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::Source { .. } | Self::Deleted { .. } | Self::Kind { .. } | Self::Moved { .. }
        )
    }
}

/// A notebook put together.
#[derive(Debug)]
pub struct Merged {
    /// The file.
    pub bytes: Vec<u8>,
    /// What a person should know.
    pub remarks: Vec<Remark>,
}

impl Merged {
    /// Whether everything of both sides is in it.
    pub fn is_clean(&self) -> bool {
        !self.remarks.iter().any(Remark::is_conflict)
    }
}

/// Puts what `ours` and `theirs` made of `base` together, in the layout of `ours`.
///
/// ```
/// use cellwright_notebook::{Marks, Notebook, three_way};
///
/// let notebook = |one: &str, two: &str| Notebook::parse(format!(
///     r#"{{"cells": [{{"cell_type": "raw", "id": "a", "source": "{one}", "metadata": {{}}}},
///         {{"cell_type": "raw", "id": "b", "source": "{two}", "metadata": {{}}}}],
///         "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#
/// ));
/// let (base, ours, theirs) = (notebook("1", "2")?, notebook("one", "2")?, notebook("1", "two")?);
/// let merged = three_way(&base, &ours, &theirs, &Marks::default());
/// assert_eq!(merged.bytes, notebook("one", "two")?.bytes());
/// assert!(merged.is_clean());
/// # Ok::<(), cellwright_notebook::FormatError>(())
/// ```
pub fn three_way(base: &Notebook, ours: &Notebook, theirs: &Notebook, marks: &Marks) -> Merged {
    let one_side = |bytes: &[u8]| Merged {
        bytes: bytes.to_vec(),
        remarks: Vec::new(),
    };
    if theirs.bytes() == base.bytes() || theirs.bytes() == ours.bytes() {
        return one_side(ours.bytes());
    }
    if ours.bytes() == base.bytes() {
        return one_side(theirs.bytes());
    }
    Merger::new(base, ours, theirs, marks).merge()
}
