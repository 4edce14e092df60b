//! Merges two notebooks with a common base, cell by cell.
//!
//! `order` decides which cells the result has and in which order. `cell` merges two changes of
//! one cell: the source line by line (`text`), everything else member by member (`members`).
//! `file` splices their changes into our file, in our layout.

mod cell;
mod file;
mod members;
mod order;
mod text;

use self::file::FileMerger;
use crate::document::Notebook;

/// The conflict markers around lines that cannot be merged.
#[derive(Clone, Debug)]
pub struct ConflictMarkers {
    /// The length of a marker in characters.
    pub size: usize,
    /// The label of our side.
    pub ours: String,
    /// The label of their side.
    pub theirs: String,
}

impl Default for ConflictMarkers {
    fn default() -> Self {
        Self {
            size: 7,
            ours: "ours".to_owned(),
            theirs: "theirs".to_owned(),
        }
    }
}

impl ConflictMarkers {
    fn marker_line(&self, sign: char, name: &str) -> String {
        let mut line = String::from(sign).repeat(self.size);
        if !name.is_empty() {
            line.push(' ');
            line.push_str(name);
        }
        line
    }
}

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side whose file is kept.
    Ours,
    /// The other side.
    Theirs,
}

/// A fact about a merge that the user should know. Cell indexes refer to the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeNotice {
    /// Both sides changed the same lines: the source has both, between conflict markers.
    SourceConflict {
        /// Index of the cell.
        cell: usize,
    },
    /// One side deleted the cell, the other changed it: the cell stays.
    DeletedAndChanged {
        /// Index of the cell.
        cell: usize,
        /// The side that deleted it.
        by: Side,
    },
    /// Both sides changed the kind of the cell: ours is kept.
    KindConflict {
        /// Index of the cell.
        cell: usize,
    },
    /// Both sides moved the cell: our position is kept.
    MoveConflict {
        /// Index of the cell.
        cell: usize,
    },
    /// Both sides changed a member: ours is kept.
    MemberConflict {
        /// Index of the cell; `None` for a member of the notebook itself.
        cell: Option<usize>,
        /// The path of member names, joined by dots.
        name: String,
    },
    /// The outputs were cleared, because the merged source is neither side's.
    OutputsCleared {
        /// Index of the cell.
        cell: usize,
    },
    /// One of their cells got a new id, because one of our cells has the same.
    IdReplaced {
        /// Index of the cell.
        cell: usize,
        /// The old id.
        id: String,
    },
}

impl MergeNotice {
    /// Whether the user has to resolve it.
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::SourceConflict { .. }
                | Self::DeletedAndChanged { .. }
                | Self::KindConflict { .. }
                | Self::MoveConflict { .. }
        )
    }
}

/// The result of a merge.
#[derive(Debug)]
pub struct MergedNotebook {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Facts that the user should know.
    pub notices: Vec<MergeNotice>,
}

impl MergedNotebook {
    /// Whether there is no conflict to resolve.
    pub fn is_clean(&self) -> bool {
        !self.notices.iter().any(MergeNotice::is_conflict)
    }
}

/// Merges the changes from `base` to `ours` and to `theirs`, in the layout of `ours`.
///
/// ```
/// use cellwright_notebook::{ConflictMarkers, Notebook, merge_three_way};
///
/// let notebook = |one: &str, two: &str| Notebook::parse(format!(
///     r#"{{"cells": [{{"cell_type": "raw", "id": "a", "source": "{one}", "metadata": {{}}}},
///         {{"cell_type": "raw", "id": "b", "source": "{two}", "metadata": {{}}}}],
///         "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#
/// ));
/// let (base, ours, theirs) = (notebook("1", "2")?, notebook("one", "2")?, notebook("1", "two")?);
/// let merged = merge_three_way(&base, &ours, &theirs, &ConflictMarkers::default());
/// assert_eq!(merged.bytes, notebook("one", "two")?.bytes());
/// assert!(merged.is_clean());
/// # Ok::<(), cellwright_notebook::FormatError>(())
/// ```
pub fn merge_three_way(
    base: &Notebook,
    ours: &Notebook,
    theirs: &Notebook,
    markers: &ConflictMarkers,
) -> MergedNotebook {
    let one_side = |bytes: &[u8]| MergedNotebook {
        bytes: bytes.to_vec(),
        notices: Vec::new(),
    };
    if theirs.bytes() == base.bytes() || theirs.bytes() == ours.bytes() {
        return one_side(ours.bytes());
    }
    if ours.bytes() == base.bytes() {
        return one_side(theirs.bytes());
    }
    FileMerger::new(base, ours, theirs, markers).merge()
}
