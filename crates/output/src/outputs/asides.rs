//! Which outputs are shown beside the cell and not in it.

/// Where the list of outputs goes over to those beside the cell, and back, by turns.
#[derive(Debug, Default)]
pub(super) struct Asides {
    turns: Vec<usize>,
}

impl Asides {
    /// From `at` on they are beside the cell, or in it.
    pub(super) fn change(&mut self, aside: bool, at: usize) {
        if aside == self.is_open() {
            return;
        }
        // Where nothing came between, it is as if it had gone on.
        if self.turns.last() == Some(&at) {
            self.turns.pop();
        } else {
            self.turns.push(at);
        }
    }

    /// Whether the outputs before and after a place are in different places.
    pub(super) fn changed_at(&self, at: usize) -> bool {
        self.turns.last() == Some(&at)
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.turns.partition_point(|turn| *turn <= at) % 2 == 1
    }

    /// Nothing is left of what was; what comes stays where it goes.
    pub(super) fn clear(&mut self) {
        let open = self.is_open();
        self.turns.clear();
        if open {
            self.turns.push(0);
        }
    }

    fn is_open(&self) -> bool {
        self.turns.len() % 2 == 1
    }
}
