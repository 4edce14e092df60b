//! The name of a member, while the bytes that it came from go by.

use crate::json::text;

/// A member's name: borrowed is impossible across a refill, so short names go into an array.
pub(super) struct Name {
    bytes: [u8; Name::LONGEST],
    length: usize,
}

impl Name {
    /// Longer than every name that matters here.
    const LONGEST: usize = 16;

    pub(super) fn of(token: &[u8]) -> Self {
        let mut name = Self {
            bytes: [0; Self::LONGEST],
            length: 0,
        };
        let inside = text::inside(token);
        let decoded;
        let plain = if inside.contains(&b'\\') {
            decoded = text::decode(token);
            decoded.as_bytes()
        } else {
            inside
        };
        if plain.len() <= Self::LONGEST {
            name.bytes[..plain.len()].copy_from_slice(plain);
            name.length = plain.len();
        }
        name
    }

    /// The name; empty for those that are too long to matter.
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}
