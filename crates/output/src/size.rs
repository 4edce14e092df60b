//! Text sizes, and byte counts for readers.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// The size of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of lines, including an unfinished last line.
    pub lines: u64,
}

impl TextSize {
    /// Returns bytes and newlines of a chunk, so that the sizes of chunks add up.
    pub fn from_chunk(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            lines: count_newlines(text.as_bytes()),
        }
    }
}

impl Add for TextSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            lines: self.lines + other.lines,
        }
    }
}

impl AddAssign for TextSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for TextSize {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            lines: self.lines.saturating_sub(other.lines),
        }
    }
}

impl SubAssign for TextSize {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Returns the number of newlines.
pub(crate) fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Displays a number of bytes in a fitting unit: `812 B`, `56.7 KiB`.
#[derive(Clone, Copy, Debug)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // In rounded tenths, without floating point; 1023.96 KiB is 1.0 MiB.
        let mut unit = 0;
        let mut scale = 1024_u64;
        let tenths = |scale: u64| {
            let whole = self.0 / scale;
            let rest = u128::from(self.0 % scale) * 10 + u128::from(scale / 2);
            u128::from(whole) * 10 + rest / u128::from(scale)
        };
        while tenths(scale) >= 10_240 && unit + 1 < UNITS.len() {
            scale *= 1024;
            unit += 1;
        }
        let tenths = tenths(scale);
        write!(f, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn byte_sizes_use_the_fitting_unit() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (58_061, "56.7 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_258_291, "1.2 MiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(ByteSize(bytes).to_string(), expected);
        }
    }
}
