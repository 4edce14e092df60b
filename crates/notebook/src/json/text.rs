//! Decodes and encodes JSON string tokens.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Appends the text of a string token (quotes included) to `out`.
///
/// An escaped lone surrogate is no character; it becomes U+FFFD.
pub(crate) fn decode_into(token: &[u8], out: &mut String) {
    let mut rest = string_contents(token);
    loop {
        let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        // The scan has checked the encoding, so the second arm is never needed.
        match std::str::from_utf8(&rest[..plain]) {
            Ok(text) => out.push_str(text),
            Err(_) => out.push_str(&String::from_utf8_lossy(&rest[..plain])),
        }
        rest = &rest[plain..];
        if rest.is_empty() {
            return;
        }
        let (character, length) = decode_escape(rest);
        out.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &rest[length..];
    }
}

/// The text of a string token.
pub(crate) fn decode(token: &[u8]) -> Cow<'_, str> {
    let bytes = string_contents(token);
    if memchr::memchr(b'\\', bytes).is_none() {
        return String::from_utf8_lossy(bytes);
    }
    let mut out = String::with_capacity(bytes.len());
    decode_into(token, &mut out);
    Cow::Owned(out)
}

/// The bytes between the quotes.
pub(crate) fn string_contents(token: &[u8]) -> &[u8] {
    if token.len() < 2 {
        return &[];
    }
    &token[1..token.len() - 1]
}

/// The character of the escape at the start of `bytes` (`None` for a lone surrogate) and its
/// length.
pub(crate) fn decode_escape(bytes: &[u8]) -> (Option<char>, usize) {
    let simple = |character| (Some(character), 2);
    match bytes.get(1) {
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'u') => {
            let Some(first) = code_unit(bytes) else {
                return (None, bytes.len());
            };
            if let Some(character) = char::from_u32(first) {
                return (Some(character), 6);
            }
            let second = bytes.get(6..).and_then(code_unit);
            match second {
                Some(low @ 0xdc00..=0xdfff) if first < 0xdc00 => {
                    let value = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                    (char::from_u32(value), 12)
                }
                _ => (None, 6),
            }
        }
        Some(&other) => simple(char::from(other)),
        None => (None, bytes.len()),
    }
}

fn code_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether the contents of a string token end with an escaped lone high surrogate.
pub(crate) fn ends_with_high_surrogate(inside: &str) -> bool {
    let Some(at) = inside.len().checked_sub(6) else {
        return false;
    };
    let escape = inside.as_bytes().get(at..).and_then(code_unit);
    let backslashes = inside.as_bytes()[..at].iter().rev();
    // After an odd number of backslashes the next one is itself escaped.
    escape.is_some_and(|unit| (0xd800..0xdc00).contains(&unit))
        && backslashes.take_while(|&&b| b == b'\\').count() % 2 == 0
}

/// Whether an escape is a low surrogate.
pub(crate) fn is_low_surrogate(escape: &str) -> bool {
    code_unit(escape.as_bytes()).is_some_and(|unit| (0xdc00..0xe000).contains(&unit))
}

/// Whether new text escapes non-ASCII characters (`\u00e9`) or not (`é`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    Ascii,
    Utf8,
}

/// Appends `text` as the contents of a string token, as Python and JavaScript write it.
pub(crate) fn encode_into(text: &str, escapes: Escapes, out: &mut String) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                push_code_unit(u16::try_from(u32::from(character)).unwrap_or(0), out);
            }
            _ if escapes == Escapes::Ascii && !character.is_ascii() => {
                for &mut unit in character.encode_utf16(&mut [0; 2]) {
                    push_code_unit(unit, out);
                }
            }
            _ => out.push(character),
        }
    }
}

/// A whole string token.
pub(crate) fn encode(text: &str, escapes: Escapes) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    encode_into(text, escapes, &mut out);
    out.push('"');
    out
}

fn push_code_unit(unit: u16, out: &mut String) {
    // Writing to a String cannot fail.
    write!(out, "\\u{unit:04x}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters() {
        let token = br#""a\"\\\/\b\f\n\r\t\u00e9\ud834\udd1e\ud83d!\udd1ez""#;
        assert_eq!(decode(token), "a\"\\/\u{8}\u{c}\n\r\té𝄞\u{fffd}!\u{fffd}z");
    }

    #[test]
    fn text_survives_both_ways_of_writing_it() {
        let text = "\0\u{1f}\u{7f}é\u{2028}𝄞\"\\\n\r\t\u{8}\u{c}/";
        for escapes in [Escapes::Ascii, Escapes::Utf8] {
            let token = encode(text, escapes);
            assert_eq!(decode(token.as_bytes()), text);
            assert_eq!(token.is_ascii(), escapes == Escapes::Ascii);
        }
        assert_eq!(encode("é𝄞", Escapes::Ascii), r#""\u00e9\ud834\udd1e""#);
    }
}
