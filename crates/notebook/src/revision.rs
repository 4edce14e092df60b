//! [`Revision`]: the name of a file's content.

use std::fmt;

use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::Hasher;

/// A content hash of the whole file, written as 32 hexadecimal digits: XXH3 with 128 bits, over
/// blocks first and then over what came of them, so that a block in the cache is hashed in one go.
///
/// It tells accidental changes apart; it is no proof against somebody who constructs collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(u128);

/// How much is hashed at a time. Part of the definition: another size gives other revisions.
pub(crate) const BLOCK: usize = 256 * 1024;

/// The shortest prefix that may stand for a whole revision.
const SHORTEST_PREFIX: usize = 8;

impl Revision {
    /// The revision of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        if !bytes.is_empty() && bytes.len() <= BLOCK {
            // One block, as nearly every cell is: nothing to keep in between.
            let block = XxHash3_128::oneshot(bytes).to_le_bytes();
            return Self(XxHash3_128::oneshot(&block));
        }
        let mut digest = Digest::new();
        digest.update(bytes);
        digest.finish()
    }

    /// Whether `text` names this revision: all its digits, or at least the first eight.
    pub fn is_named_by(self, text: &str) -> bool {
        text.len() >= SHORTEST_PREFIX && self.to_string().starts_with(&text.to_ascii_lowercase())
    }

    /// Enough of it to tell a few contents apart.
    pub(crate) fn short(self) -> String {
        self.to_string()[..SHORTEST_PREFIX].to_owned()
    }

    /// Reads all 32 digits.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let whole = text.len() == 32;
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| whole)
            .map(Self)
    }

    /// Whether `text` can name a revision at all.
    pub fn is_plausible(text: &str) -> bool {
        (SHORTEST_PREFIX..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
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

/// Computes a [`Revision`] piece by piece. Pieces that are whole blocks are quickest.
pub(crate) struct Digest {
    /// Hashes of the blocks before this one, one after the other.
    blocks: Vec<u8>,
    /// The block under way, and how much of it there is.
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
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCK - self.length));
            bytes = rest;
            if piece.len() == BLOCK {
                self.end_block(XxHash3_128::oneshot(piece));
                continue;
            }
            self.block.get_or_insert_with(Hasher::new).write(piece);
            self.length += piece.len();
            if self.length == BLOCK
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
    fn pieces_and_whole_agree() {
        let bytes: Vec<u8> = (0..600_000u32).map(|n| (n / 7).to_le_bytes()[0]).collect();
        for length in [0, 1, 5000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 600_000] {
            for size in [77, 65_536, BLOCK, 400_000] {
                let mut digest = Digest::new();
                for piece in bytes[..length].chunks(size) {
                    digest.update(piece);
                }
                let whole = Revision::of(&bytes[..length]);
                assert_eq!(digest.finish(), whole, "{length} by {size}");
            }
        }
    }

    #[test]
    fn a_prefix_of_eight_digits_names_it_and_seven_do_not() {
        let revision = Revision::of(b"x");
        let text = revision.to_string();
        assert!(revision.is_named_by(&text));
        assert!(revision.is_named_by(&text[..8].to_uppercase()));
        assert!(!revision.is_named_by(&text[..7]));
        assert!(!revision.is_named_by("0000000000"));
    }
}
