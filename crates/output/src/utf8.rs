//! Incremental UTF-8 decoding. Characters split between chunks are decoded; invalid bytes become U+FFFD,
//! exactly as in [`String::from_utf8_lossy`].

/// Decodes the bytes of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Decoder {
    /// The beginning of an incomplete character.
    pending: [u8; 4],
    length: usize,
}

impl Utf8Decoder {
    /// Decodes the next bytes, and calls `push` with the text in chunks, which may be empty.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut push: impl FnMut(&str)) {
        /// Short valid runs are collected, to avoid one call for each.
        const BUFFER_SIZE: usize = 4096;
        // At most three rounds: each byte completes or invalidates the pending character.
        while self.length > 0 {
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            self.pending[self.length] = byte;
            let candidate = &self.pending[..=self.length];
            match std::str::from_utf8(candidate) {
                Ok(text) => {
                    push(text);
                    self.length = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.length += 1;
                    bytes = rest;
                }
                Err(_) => {
                    // The byte is not part of the character, and is decoded again on its own.
                    push("\u{fffd}");
                    self.length = 0;
                }
            }
        }
        // The incomplete suffix is split off first, so that valid text is scanned only once.
        let (complete, rest) = bytes.split_at(bytes.len() - incomplete_suffix(bytes));
        self.pending[..rest.len()].copy_from_slice(rest);
        self.length = rest.len();
        if let Ok(text) = simdutf8::basic::from_utf8(complete) {
            push(text);
            return;
        }
        let mut buffer = String::with_capacity(2 * BUFFER_SIZE);
        for chunk in complete.utf8_chunks() {
            if chunk.valid().len() > BUFFER_SIZE {
                push(&buffer);
                buffer.clear();
                push(chunk.valid());
            } else {
                buffer.push_str(chunk.valid());
            }
            if !chunk.invalid().is_empty() {
                buffer.push('\u{fffd}');
            }
            if buffer.len() > BUFFER_SIZE {
                push(&buffer);
                buffer.clear();
            }
        }
        push(&buffer);
    }

    /// Ends the text: an incomplete character is invalid.
    pub(crate) fn finish(&mut self, mut push: impl FnMut(&str)) {
        if self.length > 0 {
            self.length = 0;
            push("\u{fffd}");
        }
    }
}

/// Returns the length of an incomplete character at the end.
pub(crate) fn incomplete_suffix(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    (start..bytes.len())
        .find(|&at| {
            // A character starts here and continues to the end.
            bytes[at] >= 0xc0
                && std::str::from_utf8(&bytes[at..])
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .map_or(0, |at| bytes.len() - at)
}

/// Returns the number of continuation bytes at the start.
pub(crate) fn continuation_prefix(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xc0 == 0x80)
        .count()
}
