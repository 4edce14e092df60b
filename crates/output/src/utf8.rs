//! Bytes → text across chunk borders. A character that is split between chunks comes out whole; what
//! is no UTF-8 becomes U+FFFD, as often as [`String::from_utf8_lossy`] would put it.

/// Turns the bytes of one stream into text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character whose end has not come.
    pending: [u8; 4],
    length: usize,
}

impl Decoder {
    /// Takes the next bytes and hands on the text they make, in pieces that may be empty.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str)) {
        /// Pieces of a few bytes are gathered, or what takes them would be called for each.
        const GATHERED: usize = 4096;
        // At most three rounds: a pending character is finished or found wanting byte by byte.
        while self.length > 0 {
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            self.pending[self.length] = byte;
            let candidate = &self.pending[..=self.length];
            match std::str::from_utf8(candidate) {
                Ok(text) => {
                    take(text);
                    self.length = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.length += 1;
                    bytes = rest;
                }
                Err(_) => {
                    // The byte does not belong to it; it is looked at again by itself.
                    take("\u{fffd}");
                    self.length = 0;
                }
            }
        }
        // What is left over is put aside first, so that valid text is only looked at once.
        let (whole, rest) = bytes.split_at(bytes.len() - incomplete_suffix(bytes));
        self.pending[..rest.len()].copy_from_slice(rest);
        self.length = rest.len();
        if let Ok(text) = simdutf8::basic::from_utf8(whole) {
            take(text);
            return;
        }
        let mut gathered = String::with_capacity(2 * GATHERED);
        for chunk in whole.utf8_chunks() {
            if chunk.valid().len() > GATHERED {
                take(&gathered);
                gathered.clear();
                take(chunk.valid());
            } else {
                gathered.push_str(chunk.valid());
            }
            if !chunk.invalid().is_empty() {
                gathered.push('\u{fffd}');
            }
            if gathered.len() > GATHERED {
                take(&gathered);
                gathered.clear();
            }
        }
        take(&gathered);
    }

    /// No more bytes come: a character that was begun is invalid.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&str)) {
        if self.length > 0 {
            self.length = 0;
            take("\u{fffd}");
        }
    }
}

/// How many bytes at the end begin a character that the bytes after them could finish.
pub(crate) fn incomplete_suffix(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    (start..bytes.len())
        .find(|&at| {
            // A character begins here, and all that follows belongs to it.
            bytes[at] >= 0xc0
                && std::str::from_utf8(&bytes[at..])
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .map_or(0, |at| bytes.len() - at)
}

/// How many bytes at the beginning continue a character that began before them.
pub(crate) fn continuation_prefix(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xc0 == 0x80)
        .count()
}
