//! The name of a member, copied out of the buffer.

use crate::json::text;

/// A member's name. A refill may overwrite the buffer, so short names are copied into an array.
pub(super) struct MemberName {
    bytes: [u8; MemberName::MAX_LEN],
    length: usize,
}

impl MemberName {
    /// Longer than every name that the scan looks for.
    const MAX_LEN: usize = 16;

    pub(super) fn from_token(token: &[u8]) -> Self {
        let mut name = Self {
            bytes: [0; Self::MAX_LEN],
            length: 0,
        };
        let inside = text::string_contents(token);
        let decoded;
        let plain = if inside.contains(&b'\\') {
            decoded = text::decode(token);
            decoded.as_bytes()
        } else {
            inside
        };
        if plain.len() <= Self::MAX_LEN {
            name.bytes[..plain.len()].copy_from_slice(plain);
            name.length = plain.len();
        }
        name
    }

    /// The name; empty if it is longer than that.
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}
