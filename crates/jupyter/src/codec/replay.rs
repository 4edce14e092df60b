//! [`ReplayWindow`]: the signatures of the latest messages.

use std::collections::{HashSet, VecDeque};

/// Number of signatures that the window holds. The oldest is dropped first.
const WINDOW_SIZE: usize = 65_536;

/// Without the key, signatures look random. Half of one identifies a message.
type SignatureHalf = [u8; 16];

/// The signatures of the latest messages.
#[derive(Debug, Default)]
pub(super) struct ReplayWindow {
    known: HashSet<SignatureHalf>,
    order: VecDeque<SignatureHalf>,
}

impl ReplayWindow {
    /// Adds a signature. Returns false if the window already holds it.
    pub(super) fn insert(&mut self, signature: [u8; 32]) -> bool {
        let mut half = SignatureHalf::default();
        half.copy_from_slice(&signature[..16]);
        if !self.known.insert(half) {
            return false;
        }
        self.order.push_back(half);
        if self.order.len() > WINDOW_SIZE
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_latest_signatures_only() {
        let mut window = ReplayWindow::default();
        let signature = |number: usize| {
            let mut signature = [0; 32];
            signature[..8].copy_from_slice(&number.to_le_bytes());
            signature
        };
        for number in 0..=WINDOW_SIZE {
            assert!(window.insert(signature(number)));
        }
        for number in 1..=WINDOW_SIZE {
            assert!(!window.insert(signature(number)), "{number}");
        }
        assert!(window.insert(signature(0)), "the oldest was dropped");
        assert_eq!(window.known.len(), WINDOW_SIZE);
    }
}
