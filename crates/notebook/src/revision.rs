//! [`Revision`]: a content hash that names the state of a file.

use std::fmt;

use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::Hasher;

/// A content hash of the whole file, written as 32 hexadecimal digits. It is XXH3 with 128 bits
/// over the hashes of blocks, so that a block in the cache is hashed in one call.
///
/// It detects accidental changes. It does not resist deliberate collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(u128);

/// Bytes per block. Part of the definition: another size gives other revisions.
pub(crate) const BLOCK_SIZE: usize = 256 * 1024;

/// The shortest prefix that may stand for a whole revision.
const MIN_PREFIX_LEN: usize = 8;

impl Revision {
    /// The revision of these bytes.
    pub fn compute(bytes: &[u8]) -> Self {
        if !bytes.is_empty() && bytes.len() <= BLOCK_SIZE {
            // One block, like nearly every cell: no state is needed.
            let block = XxHash3_128::oneshot(bytes).to_le_bytes();
            return Self(XxHash3_128::oneshot(&block));
        }
        let mut digest = Digest::new();
        digest.update(bytes);
        digest.finish()
    }

    /// Whether `text` names this revision: all its digits, or a prefix of at least eight.
    pub fn matches_name(self, text: &str) -> bool {
        text.len() >= MIN_PREFIX_LEN && self.to_string().starts_with(&text.to_ascii_lowercase())
    }

    /// The first eight digits.
    pub(crate) fn short(self) -> String {
        self.to_string()[..MIN_PREFIX_LEN].to_owned()
    }

    /// Parses all 32 digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let whole = text.len() == 32;
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| whole)
            .map(Self)
    }

    /// Whether `text` has the form of a revision or of a prefix.
    pub fn is_valid_name(text: &str) -> bool {
        (MIN_PREFIX_LEN..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Revision({self})")
    }
}

/// Computes a [`Revision`] incrementally. Whole blocks are fastest.
pub(crate) struct Digest {
    /// The hashes of the completed blocks, concatenated.
    blocks: Vec<u8>,
    /// The current block, and its length so far in bytes.
    block: Option<Hasher>,
    length: usize,
}

impl Digest {
    pub(crate) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            block: None,
            length: 0,
        }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (chunk, rest) = bytes.split_at(bytes.len().min(BLOCK_SIZE - self.length));
            bytes = rest;
            if chunk.len() == BLOCK_SIZE {
                self.end_block(XxHash3_128::oneshot(chunk));
                continue;
            }
            self.block.get_or_insert_with(Hasher::new).write(chunk);
            self.length += chunk.len();
            if self.length == BLOCK_SIZE
                && let Some(block) = self.block.take()
            {
                self.end_block(block.finish_128());
            }
        }
    }

    fn end_block(&mut self, hash: u128) {
        self.blocks.extend_from_slice(&hash.to_le_bytes());
        self.length = 0;
    }

    pub(crate) fn finish(&self) -> Revision {
        let last = self.block.as_ref().map(Hasher::finish_128);
        let mut all = self.blocks.clone();
        all.extend(last.map(u128::to_le_bytes).into_iter().flatten());
        Revision(XxHash3_128::oneshot(&all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_and_whole_hashes_agree() {
        let bytes: Vec<u8> = (0..600_000u32).map(|n| (n / 7).to_le_bytes()[0]).collect();
        for length in [
            0,
            1,
            5000,
            BLOCK_SIZE - 1,
            BLOCK_SIZE,
            BLOCK_SIZE + 1,
            2 * BLOCK_SIZE,
            600_000,
        ] {
            for size in [77, 65_536, BLOCK_SIZE, 400_000] {
                let mut digest = Digest::new();
                for chunk in bytes[..length].chunks(size) {
                    digest.update(chunk);
                }
                let whole = Revision::compute(&bytes[..length]);
                assert_eq!(digest.finish(), whole, "{length} by {size}");
            }
        }
    }

    #[test]
    fn prefix_of_eight_digits_matches_and_seven_do_not() {
        let revision = Revision::compute(b"x");
        let text = revision.to_string();
        assert!(revision.matches_name(&text));
        assert!(revision.matches_name(&text[..8].to_uppercase()));
        assert!(!revision.matches_name(&text[..7]));
        assert!(!revision.matches_name("0000000000"));
    }
}
