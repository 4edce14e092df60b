//! Checks that bytes are UTF-8, piece by piece.

/// What was found so far.
#[derive(Default)]
pub(crate) struct Utf8 {
    /// Offset of the first byte that is not UTF-8.
    pub(crate) bad: Option<usize>,
    /// Bytes of whole characters that were checked.
    checked: usize,
    /// A character that the last piece cut: its bytes so far, and how many.
    cut: [u8; 4],
    cut_length: usize,
}

impl Utf8 {
    /// Checks bytes that are all there.
    pub(crate) fn checked(bytes: &[u8]) -> Self {
        let mut utf8 = Self::default();
        utf8.check(bytes);
        utf8.end();
        utf8
    }

    /// Takes the next piece.
    pub(crate) fn check(&mut self, mut piece: &[u8]) {
        while self.cut_length > 0 && self.bad.is_none() {
            let Some((&next, rest)) = piece.split_first() else {
                return;
            };
            self.cut[self.cut_length] = next;
            self.cut_length += 1;
            piece = rest;
            match std::str::from_utf8(&self.cut[..self.cut_length]) {
                Ok(_) => {
                    self.checked += self.cut_length;
                    self.cut_length = 0;
                }
                Err(error) if error.error_len().is_some() => self.bad = Some(self.checked),
                Err(_) => {}
            }
        }
        if self.bad.is_some() {
            return;
        }
        let whole = whole_characters(piece);
        // The quick check has no answer to where it goes wrong; the other is for that.
        if simdutf8::basic::from_utf8(&piece[..whole]).is_ok() {
            self.checked += whole;
            self.cut_length = piece.len() - whole;
            self.cut[..self.cut_length].copy_from_slice(&piece[whole..]);
            return;
        }
        let Err(error) = std::str::from_utf8(piece) else {
            self.checked += piece.len();
            return;
        };
        self.checked += error.valid_up_to();
        self.bad = Some(self.checked);
    }

    /// No more pieces: a character that is still cut is broken.
    pub(crate) fn end(&mut self) {
        if self.cut_length > 0 && self.bad.is_none() {
            self.bad = Some(self.checked);
        }
    }
}

/// How many bytes there are without the beginning of a character at the end.
fn whole_characters(piece: &[u8]) -> usize {
    for (back, &byte) in piece.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..0xc0 => continue,
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        return if back + 1 < length {
            piece.len() - back - 1
        } else {
            piece.len()
        };
    }
    piece.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(bytes: &[u8], size: usize) -> Option<usize> {
        let mut utf8 = Utf8::default();
        bytes.chunks(size).for_each(|piece| utf8.check(piece));
        utf8.end();
        utf8.bad
    }

    #[test]
    fn broken_characters_are_found_however_they_are_cut() {
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
                assert_eq!(bad(bytes, size), expected, "{bytes:?} by {size}");
            }
        }
    }
}
