//! Lowercase hexadecimal digits.

/// Encodes each byte as two digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Decodes exactly `N` bytes. Uppercase digits are rejected: Jupyter does not write them, and a signature must have
/// only one form.
pub(crate) fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
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
