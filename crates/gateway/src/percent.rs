//! Percent-encoding, for paths and forms.

/// The text with every byte escaped that has a meaning in a URL or in a form.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(
            percent_encode("a/b?c&d=e f+é"),
            "a%2Fb%3Fc%26d%3De%20f%2B%C3%A9"
        );
        assert_eq!(percent_encode("0a-1_2.3~"), "0a-1_2.3~");
    }
}
