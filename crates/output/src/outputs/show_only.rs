//! Tracks which outputs are shown only, and not stored in the notebook.

/// The indices at which the list of outputs switches between stored and shown only.
#[derive(Debug, Default)]
pub(super) struct ShowOnlyRanges {
    toggles: Vec<usize>,
}

impl ShowOnlyRanges {
    /// Sets whether outputs from index `at` on are shown only.
    pub(super) fn set(&mut self, show_only: bool, at: usize) {
        if show_only == self.is_on() {
            return;
        }
        // No output arrived since the last switch, so both cancel out.
        if self.toggles.last() == Some(&at) {
            self.toggles.pop();
        } else {
            self.toggles.push(at);
        }
    }

    /// Returns whether the outputs before and after an index differ.
    pub(super) fn changed_at(&self, at: usize) -> bool {
        self.toggles.last() == Some(&at)
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        self.toggles.partition_point(|toggle| *toggle <= at) % 2 == 1
    }

    /// Removes all ranges, but keeps the current state.
    pub(super) fn clear(&mut self) {
        let is_on = self.is_on();
        self.toggles.clear();
        if is_on {
            self.toggles.push(0);
        }
    }

    fn is_on(&self) -> bool {
        self.toggles.len() % 2 == 1
    }
}
