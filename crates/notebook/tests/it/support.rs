//! Helpers for several test modules.

pub(crate) mod json;
pub(crate) mod relayout;
pub(crate) mod text;

use std::path::{Path, PathBuf};

use cellwright_test_support::skip;
use proptest::test_runner::Config;

/// The configuration of a random test with `cases` cases, or `CELLWRIGHT_TEST_FACTOR` times as
/// many. Failing cases are printed whole, so nothing is written to the tree.
pub(crate) fn cases(cases: u32) -> Config {
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    let factor = factor.and_then(|factor| factor.parse().ok()).unwrap_or(1);
    Config {
        cases: cases * factor,
        max_global_rejects: 1024 * factor,
        failure_persistence: None,
        ..Config::default()
    }
}

/// A pseudo-random sequence, for choices that proptest need not shrink.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `limit`, which must not be 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The notebooks in the test directory.
pub(crate) fn fixtures() -> Vec<PathBuf> {
    notebooks_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/notebooks"))
}

/// The corpus of real notebooks, if available. It is not part of the repository.
pub(crate) fn corpus() -> Option<PathBuf> {
    let dir = repository().join("../shared/corpus/visible");
    let exists = dir.is_dir();
    if !exists {
        skip("corpus", "there is no directory with real notebooks");
    }
    exists.then_some(dir)
}

/// The notebooks in a directory, sorted by name.
pub(crate) fn notebooks_in(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ipynb"))
        .collect();
    found.sort();
    found
}

/// Bytes as text, for messages.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
