//! Base64 that comes in pieces.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::stored::Stored;

/// Turns base64 into bytes, though it comes in pieces, and broken into lines.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// What came and is not a whole group of four.
    begun: Vec<u8>,
    bytes: Vec<u8>,
    /// There was padding, and nothing may follow.
    ended: bool,
}

impl Decoded {
    pub(crate) fn push(
        &mut self,
        text: &[u8],
        take: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let wanted = text.iter().filter(|byte| !byte.is_ascii_whitespace());
        self.begun.extend(wanted);
        let whole = self.begun.len() / 4 * 4;
        if whole == 0 {
            return Ok(());
        }
        if self.ended {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.ended = self.begun[whole - 1] == b'=';
        self.bytes.clear();
        let decoded = STANDARD.decode_vec(&self.begun[..whole], &mut self.bytes);
        decoded.map_err(|_| io::ErrorKind::InvalidData)?;
        self.begun.drain(..whole);
        take(&self.bytes)
    }

    /// Nothing more comes.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.begun.is_empty() {
            return Ok(());
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// The first bytes of a text that may be base64, whose beginning this is, and how many there are in all.
pub(super) fn head(stored: &Stored, head: Vec<u8>) -> (Vec<u8>, u64) {
    let (mut bytes, mut characters, mut padding) = (Vec::new(), 0_u64, 0_u64);
    let decoded = Decoded::default().push(&head, |decoded| {
        bytes.extend_from_slice(decoded);
        Ok(())
    });
    let counted = stored.read(|text| {
        let blanks = text.iter().filter(|byte| byte.is_ascii_whitespace());
        characters += (text.len() - blanks.count()) as u64;
        padding += memchr::memchr_iter(b'=', text).count() as u64;
        Ok(())
    });
    if decoded.is_err() || counted.is_err() {
        return (head, stored.size());
    }
    (bytes, (characters / 4 * 3).saturating_sub(padding))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(text: &[u8], cut: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut decoded = Decoded::default();
        for piece in text.chunks(cut) {
            decoded.push(piece, |decoded| {
                bytes.extend_from_slice(decoded);
                Ok(())
            })?;
        }
        decoded.finish()?;
        Ok(bytes)
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["a", "abc", "ab==cd==", "ab=c", "äöü.", "AAAA="] {
            for cut in 1..8 {
                assert!(decoded(text.as_bytes(), cut).is_err(), "{text} by {cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in any::<Vec<u8>>(), cut in 1..90_usize, width in 1..80_usize) {
            let text = STANDARD.encode(&bytes);
            let lines: Vec<&[u8]> = text.as_bytes().chunks(width).collect();
            prop_assert_eq!(decoded(&lines.join(&b'\n'), cut).unwrap(), bytes);
        }
    }
}
