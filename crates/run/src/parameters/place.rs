//! Where the cell of given parameters goes.

use super::{INJECTED_TAG, TAG};

/// What has to be known of a cell to place another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its index in the notebook.
    pub index: usize,
    /// Whether it is a code cell.
    pub is_code: bool,
    /// Its tags.
    pub tags: Vec<String>,
}

impl Cell {
    fn has(&self, tag: &str) -> bool {
        self.tags.iter().any(|one| one == tag)
    }
}

/// Where the cell of given parameters goes, and where the one with the defaults is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Where it goes.
    pub place: Place,
    /// The index of the code cell that holds the defaults, if there is one.
    pub defaults: Option<usize>,
}

/// Where a cell goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In place of this one, which an earlier run put there.
    Replace(usize),
    /// After this one.
    After(usize),
    /// Before all others.
    Top,
}

/// Where the cell goes: in place of the first code cell tagged `injected-parameters`; else after the
/// first cell tagged `parameters`; else to the top.
pub fn place(cells: &[Cell]) -> Injection {
    let injected = cells
        .iter()
        .find(|cell| cell.is_code && cell.has(INJECTED_TAG));
    // What is explained in a Markdown cell of that tag concerns the parameters too.
    let tagged = cells.iter().find(|cell| cell.has(TAG));
    let defaults = cells.iter().find(|cell| cell.is_code && cell.has(TAG));
    Injection {
        place: match (injected, tagged) {
            (Some(injected), _) => Place::Replace(injected.index),
            (None, Some(tagged)) => Place::After(defaults.unwrap_or(tagged).index),
            (None, None) => Place::Top,
        },
        defaults: defaults.map(|cell| cell.index),
    }
}
