//! Position of the cell with the injected parameters.

use super::{INJECTED_TAG, PARAMETERS_TAG};

/// The properties of a cell that decide where parameters are injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedCell {
    /// Index in the notebook.
    pub index: usize,
    /// Whether it is a code cell.
    pub is_code: bool,
    /// Tags of the cell.
    pub tags: Vec<String>,
}

impl TaggedCell {
    fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }
}

/// Where the injected cell is placed, and where the cell with the defaults is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Position of the injected cell.
    pub point: InjectionPoint,
    /// Index of the code cell with the defaults, if there is one.
    pub defaults: Option<usize>,
}

/// Position of the injected cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionPoint {
    /// Replaces this cell, which an earlier run injected.
    Replace(usize),
    /// After this cell.
    After(usize),
    /// Before all cells.
    Top,
}

/// Chooses the position of the injected cell: it replaces the first code cell tagged `injected-parameters`; else it
/// follows the first cell tagged `parameters`, preferably a code cell; else it is the first cell.
pub fn plan_injection(cells: &[TaggedCell]) -> Injection {
    let injected = cells
        .iter()
        .find(|cell| cell.is_code && cell.has_tag(INJECTED_TAG));
    // A tagged Markdown cell describes the parameters, so the cell follows it.
    let tagged = cells.iter().find(|cell| cell.has_tag(PARAMETERS_TAG));
    let defaults = cells
        .iter()
        .find(|cell| cell.is_code && cell.has_tag(PARAMETERS_TAG));
    Injection {
        point: match (injected, tagged) {
            (Some(injected), _) => InjectionPoint::Replace(injected.index),
            (None, Some(tagged)) => InjectionPoint::After(defaults.unwrap_or(tagged).index),
            (None, None) => InjectionPoint::Top,
        },
        defaults: defaults.map(|cell| cell.index),
    }
}
