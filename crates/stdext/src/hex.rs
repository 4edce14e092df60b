//! Lowercase hexadecimal text.

/// Encodes each byte as two digits.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// Decodes exactly `N` bytes. Returns `None` for another length and for anything but lowercase digits: a value has only
/// one text.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
        let digit = |at: usize| match digits[at] {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(0)? << 4 | digit(1)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(encode(&[]), "");
        assert_eq!(encode(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(decode(b"000fa0ff"), Some([0x00, 0x0f, 0xa0, 0xff]));
        assert_eq!(decode(b""), Some([]));
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "0", "000", "0G", "FF", "+f", " f", "é"] {
            assert_eq!(decode::<1>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decode::<2>(b"ff"), None);
    }

    proptest! {
        #[test]
        fn decoded_text_is_the_encoded_bytes(bytes: [u8; 32]) {
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn only_encoded_text_is_decoded(text: [u8; 4]) {
            if let Some(bytes) = decode::<2>(&text) {
                prop_assert_eq!(encode(&bytes).into_bytes(), text);
            }
        }
    }
}
