//! Hexadecimal text.

/// Returns `bytes` as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
