//! [`Revision`]: the name of a file's content.

use std::fmt;

use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::Hasher;

/// A content hash of the whole file (XXH3, 128 bits), written as 32 hexadecimal digits.
///
/// It tells accidental changes apart; it is no proof against somebody who constructs collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(u128);

/// The shortest prefix that may stand for a whole revision.
const SHORTEST_PREFIX: usize = 8;

impl Revision {
    /// The revision of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(bytes))
    }

    /// Whether `text` names this revision: all its digits, or at least the first eight.
    pub fn is_named_by(self, text: &str) -> bool {
        text.len() >= SHORTEST_PREFIX && self.to_string().starts_with(&text.to_ascii_lowercase())
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

/// Computes a [`Revision`] piece by piece.
pub(crate) struct Digest(Hasher);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(Hasher::new())
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(crate) fn finish(&self) -> Revision {
        Revision(self.0.finish_128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_whole_agree() {
        let bytes: Vec<u8> = (0..5000u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut digest = Digest::new();
        for piece in bytes.chunks(77) {
            digest.update(piece);
        }
        assert_eq!(digest.finish(), Revision::of(&bytes));
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
