//! [`Window`]: the signatures of the latest messages.

use std::collections::{HashSet, VecDeque};

/// How many signatures are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 65_536;

/// Signatures are random to whoever has not the key, so half of one will do.
type Half = [u8; 16];

/// The signatures of the latest messages.
#[derive(Debug, Default)]
pub(super) struct Window {
    seen: HashSet<Half>,
    order: VecDeque<Half>,
}

impl Window {
    /// Remembers a signature; false if it is remembered already.
    pub(super) fn is_new(&mut self, signature: [u8; 32]) -> bool {
        let mut half = Half::default();
        half.copy_from_slice(&signature[..16]);
        if !self.seen.insert(half) {
            return false;
        }
        self.order.push_back(half);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_signatures_are_remembered_and_no_more() {
        let mut window = Window::default();
        let signature = |number: usize| {
            let mut signature = [0; 32];
            signature[..8].copy_from_slice(&number.to_le_bytes());
            signature
        };
        for number in 0..=REMEMBERED {
            assert!(window.is_new(signature(number)));
        }
        for number in 1..=REMEMBERED {
            assert!(!window.is_new(signature(number)), "{number}");
        }
        assert!(window.is_new(signature(0)), "the oldest was forgotten");
        assert_eq!(window.seen.len(), REMEMBERED);
    }
}
