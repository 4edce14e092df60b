//! A seeded random number generator.

use std::time::Duration;

/// `SplitMix64`: the same seed gives the same sequence.
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0005_ea50)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap();
        usize::try_from(self.next() % limit).unwrap()
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of these durations, in milliseconds.
    pub(super) fn pick_millis(&mut self, from: &[u64]) -> Duration {
        Duration::from_millis(self.pick(from))
    }
}
