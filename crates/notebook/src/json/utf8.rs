//! Checks UTF-8 incrementally.

/// The state of the check.
#[derive(Default)]
pub(crate) struct Utf8Checker {
    /// Offset of the first byte that is not UTF-8.
    pub(crate) invalid_at: Option<usize>,
    /// Number of bytes in complete, valid characters so far.
    valid_len: usize,
    /// A character that the last chunk ended inside: its bytes so far, and their number.
    partial: [u8; 4],
    partial_len: usize,
}

impl Utf8Checker {
    /// Checks all bytes at once.
    pub(crate) fn check_all(bytes: &[u8]) -> Self {
        let mut utf8 = Self::default();
        utf8.push(bytes);
        utf8.finish();
        utf8
    }

    /// Checks the next chunk.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while self.partial_len > 0 && self.invalid_at.is_none() {
            let Some((&next, rest)) = chunk.split_first() else {
                return;
            };
            self.partial[self.partial_len] = next;
            self.partial_len += 1;
            chunk = rest;
            match std::str::from_utf8(&self.partial[..self.partial_len]) {
                Ok(_) => {
                    self.valid_len += self.partial_len;
                    self.partial_len = 0;
                }
                Err(error) if error.error_len().is_some() => self.invalid_at = Some(self.valid_len),
                Err(_) => {}
            }
        }
        if self.invalid_at.is_some() {
            return;
        }
        let whole = complete_prefix_len(chunk);
        // The fast check does not return the position of an error; the exact one does.
        if simdutf8::basic::from_utf8(&chunk[..whole]).is_ok() {
            self.valid_len += whole;
            self.partial_len = chunk.len() - whole;
            self.partial[..self.partial_len].copy_from_slice(&chunk[whole..]);
            return;
        }
        let Err(error) = std::str::from_utf8(chunk) else {
            self.valid_len += chunk.len();
            return;
        };
        self.valid_len += error.valid_up_to();
        self.invalid_at = Some(self.valid_len);
    }

    /// Ends the input: an incomplete character is invalid.
    pub(crate) fn finish(&mut self) {
        if self.partial_len > 0 && self.invalid_at.is_none() {
            self.invalid_at = Some(self.valid_len);
        }
    }
}

/// The length of `piece` without an incomplete character at the end.
fn complete_prefix_len(chunk: &[u8]) -> usize {
    for (back, &byte) in chunk.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..0xc0 => continue,
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        return if back + 1 < length {
            chunk.len() - back - 1
        } else {
            chunk.len()
        };
    }
    chunk.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_invalid(bytes: &[u8], size: usize) -> Option<usize> {
        let mut utf8 = Utf8Checker::default();
        bytes.chunks(size).for_each(|chunk| utf8.push(chunk));
        utf8.finish();
        utf8.invalid_at
    }

    #[test]
    fn invalid_utf8_is_found_across_chunks() {
        for (bytes, expected) in [
            (&b"caf\xe9!"[..], Some(3)),
            ("é€𝄞".as_bytes(), None),
            (b"a\xf0\x9d\x84\x9e\xff", Some(5)),
            (b"\xf0\x9d\x84\"", Some(0)),
            (b"\xed\xa0\xbd", Some(0)),
            (b"ab\xc3", Some(2)),
            (b"\xc3\xa9\xa9", Some(2)),
        ] {
            for size in 1..6 {
                assert_eq!(first_invalid(bytes, size), expected, "{bytes:?} by {size}");
            }
        }
    }
}
