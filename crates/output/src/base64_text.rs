//! Base64 decoding of text that arrives in chunks.

use std::borrow::Cow;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Decodes base64 that arrives in chunks and may contain line breaks.
#[derive(Debug, Default)]
pub(crate) struct Base64Decoder {
    /// Characters that do not fill a group of four yet.
    pending: Vec<u8>,
    bytes: Vec<u8>,
    /// Padding was decoded, so nothing may follow.
    padded: bool,
}

impl Base64Decoder {
    pub(crate) fn push(
        &mut self,
        text: &[u8],
        push: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let characters = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        self.pending.extend(characters);
        let complete = self.pending.len() / 4 * 4;
        if complete == 0 {
            return Ok(());
        }
        if self.padded {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.padded = self.pending[complete - 1] == b'=';
        self.bytes.clear();
        let decoded = STANDARD.decode_vec(&self.pending[..complete], &mut self.bytes);
        decoded.map_err(|_| io::ErrorKind::InvalidData)?;
        self.pending.drain(..complete);
        push(&self.bytes)
    }

    /// Returns an error if characters are left over.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Decodes base64. Text that is not base64 is returned as it is.
pub(crate) fn decode_or_keep(text: &str) -> Cow<'_, [u8]> {
    let compact: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    match STANDARD.decode(compact) {
        Ok(bytes) => Cow::Owned(bytes),
        Err(_) => Cow::Borrowed(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &[u8], chunk_size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut decoder = Base64Decoder::default();
        for chunk in text.chunks(chunk_size) {
            decoder.push(chunk, |decoded| {
                bytes.extend_from_slice(decoded);
                Ok(())
            })?;
        }
        decoder.finish()?;
        Ok(bytes)
    }

    #[test]
    fn invalid_base64_is_rejected() {
        for text in ["a", "abc", "ab==cd==", "ab=c", "äöü.", "AAAA="] {
            for chunk_size in 1..8 {
                assert!(
                    decode(text.as_bytes(), chunk_size).is_err(),
                    "{text} in chunks of {chunk_size}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_restores_encoded_bytes(bytes in any::<Vec<u8>>(), chunk_size in 1..90_usize, width in 1..80_usize) {
            let text = STANDARD.encode(&bytes);
            let lines: Vec<&[u8]> = text.as_bytes().chunks(width).collect();
            prop_assert_eq!(decode(&lines.join(&b'\n'), chunk_size).unwrap(), bytes);
        }
    }
}
