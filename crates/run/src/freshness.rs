//! Which cells of a notebook are as they ran: [`Ledger`] remembers what ran on a session, [`Freshness`] is what
//! that says of a cell now.

use cellwright_notebook::{CellKind, Cells, Revision};
use serde::{Deserialize, Serialize};

use crate::listing::Listing;
use crate::order::Planned;

/// What ran of a notebook on a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    cells: Vec<Ran>,
    /// How many cells have run.
    sequence: u64,
}

/// A cell that came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ran {
    id: Option<String>,
    index: usize,
    /// Of its source.
    hash: String,
    /// The number of the kernel that ran it.
    generation: u32,
    /// The how many it was.
    sequence: u64,
}

/// What is known of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// It ran as it is, behind those before it.
    Fresh,
    /// It ran as it is, but a cell before it has not, or did so later.
    Stale,
    /// It was changed since it ran.
    Changed,
    /// It has not run to its end.
    NeverRun,
    /// It ran on a kernel that is no more.
    OtherKernel,
}

impl Ledger {
    /// A cell came to its end on a kernel.
    pub fn ran(&mut self, cell: &Planned, generation: u32) {
        self.forget(cell);
        self.sequence += 1;
        self.cells.push(Ran {
            id: cell.id.clone(),
            index: cell.index,
            hash: hash(&cell.source),
            generation,
            sequence: self.sequence,
        });
    }

    /// A cell did not come to its end.
    pub fn forget(&mut self, cell: &Planned) {
        self.cells.retain(|ran| match (&ran.id, &cell.id) {
            (Some(own), Some(other)) => own != other,
            (None, None) => ran.index != cell.index,
            _ => true,
        });
    }

    /// What is known of the cells; `None` for those that do not run. `generation` is the number of the kernel
    /// that there is now, if there is one.
    pub fn states(&self, listing: &Listing, generation: Option<u32>) -> Vec<Option<Freshness>> {
        let mut clean = true;
        let mut newest = 0;
        (0..listing.count())
            .map(|index| {
                let runs = listing.kind(index) == CellKind::Code
                    && !listing.source(index).trim().is_empty()
                    && !listing.has_tag(index, crate::SKIPPED);
                if !runs {
                    return None;
                }
                let state = match self.find(listing, index) {
                    None => Freshness::NeverRun,
                    Some(ran) if Some(ran.generation) != generation => Freshness::OtherKernel,
                    Some(ran) if ran.hash != hash(&listing.source(index)) => Freshness::Changed,
                    Some(ran) if clean && ran.sequence > newest => {
                        newest = ran.sequence;
                        Freshness::Fresh
                    }
                    Some(_) => Freshness::Stale,
                };
                clean &= state == Freshness::Fresh;
                Some(state)
            })
            .collect()
    }

    /// When a cell ran. Those without an id are known by their source, or else by their place.
    fn find(&self, listing: &Listing, index: usize) -> Option<&Ran> {
        if let Some(id) = listing.id(index) {
            return self.cells.iter().find(|ran| ran.id.as_deref() == Some(&id));
        }
        let nameless = || self.cells.iter().filter(|ran| ran.id.is_none());
        let hash = hash(&listing.source(index));
        nameless()
            .filter(|ran| ran.hash == hash)
            .min_by_key(|ran| ran.index.abs_diff(index))
            .or_else(|| nameless().find(|ran| ran.index == index))
    }
}

fn hash(source: &str) -> String {
    Revision::of(source.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use Freshness::{Changed, Fresh, NeverRun, OtherKernel, Stale};

    use super::*;
    use crate::listing::Listed;

    fn listing(sources: &[&str]) -> Listing {
        let cell = |(index, source): (usize, &&str)| Listed {
            kind: CellKind::Code,
            id: Some(format!("c{index}")),
            source: (*source).to_owned(),
            tags: Vec::new(),
            took: None,
        };
        Listing::new(sources.iter().enumerate().map(cell).collect())
    }

    fn states(ledger: &Ledger, listing: &Listing, generation: u32) -> Vec<Freshness> {
        let states = ledger.states(listing, Some(generation));
        states.into_iter().flatten().collect()
    }

    #[test]
    fn what_stands_behind_a_changed_cell_is_stale() {
        let before = listing(&["a", "b", "c"]);
        let mut ledger = Ledger::default();
        assert_eq!(states(&ledger, &before, 1), [NeverRun; 3]);
        for index in 0..3 {
            ledger.ran(&Planned::of(&before, index), 1);
        }
        assert_eq!(states(&ledger, &before, 1), [Fresh; 3]);
        let edited = listing(&["a", "B", "c"]);
        assert_eq!(states(&ledger, &edited, 1), [Fresh, Changed, Stale]);
        ledger.ran(&Planned::of(&edited, 1), 1);
        assert_eq!(states(&ledger, &edited, 1), [Fresh, Fresh, Stale]);
        ledger.ran(&Planned::of(&edited, 2), 1);
        assert_eq!(states(&ledger, &edited, 1), [Fresh; 3]);
        // One that runs once more makes those behind it old, though nothing was changed.
        ledger.ran(&Planned::of(&edited, 0), 1);
        assert_eq!(states(&ledger, &edited, 1), [Fresh, Stale, Stale]);
        ledger.forget(&Planned::of(&edited, 0));
        assert_eq!(states(&ledger, &edited, 1), [NeverRun, Stale, Stale]);
    }

    #[test]
    fn another_kernel_knows_nothing() {
        let cells = listing(&["a", "b"]);
        let mut ledger = Ledger::default();
        for index in 0..2 {
            ledger.ran(&Planned::of(&cells, index), 1);
        }
        assert_eq!(states(&ledger, &cells, 2), [OtherKernel; 2]);
        assert_eq!(ledger.states(&cells, None), [Some(OtherKernel); 2]);
        ledger.ran(&Planned::of(&cells, 0), 2);
        assert_eq!(states(&ledger, &cells, 2), [Fresh, OtherKernel]);
    }
}
