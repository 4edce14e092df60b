//! Repairs JSON that is nearly valid. Kernels pass on the output of programs: Python sends bytes that are not UTF-8,
//! JavaScript sends lone surrogates, some kernels write `NaN`. Only the character is lost, not the message.

/// Returns the text with everything replaced that a JSON parser rejects.
pub(super) fn to_valid_json(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    let mut in_string = false;
    while let Some(character) = rest.chars().next() {
        let consumed = match character {
            '"' => {
                in_string = !in_string;
                out.push('"');
                1
            }
            '\\' if in_string => copy_escape(rest, &mut out),
            control if in_string && u32::from(control) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
                1
            }
            _ if in_string => {
                out.push(character);
                character.len_utf8()
            }
            _ => copy_token(rest, character, &mut out),
        };
        rest = rest.get(consumed..).unwrap_or_default();
    }
    out
}

/// Copies the next token outside of a string. Returns the number of bytes consumed.
fn copy_token(rest: &str, character: char, out: &mut String) -> usize {
    for number in ["NaN", "Infinity", "-Infinity"] {
        if rest.starts_with(number) {
            out.push_str("null");
            return number.len();
        }
    }
    out.push(character);
    character.len_utf8()
}

/// Copies the next escape inside a string. Returns the number of bytes consumed.
fn copy_escape(rest: &str, out: &mut String) -> usize {
    let Some(first) = parse_unicode_escape(rest) else {
        // A short escape. Its second character may be a quote that does not end the string.
        let length = rest.chars().take(2).map(char::len_utf8).sum();
        out.push_str(&rest[..length]);
        return length;
    };
    let second = rest
        .get(UNICODE_ESCAPE_SIZE..)
        .and_then(parse_unicode_escape);
    match (first, second) {
        (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => {
            out.push_str(&rest[..2 * UNICODE_ESCAPE_SIZE]);
            2 * UNICODE_ESCAPE_SIZE
        }
        (0xd800..=0xdfff, _) => {
            out.push(char::REPLACEMENT_CHARACTER);
            UNICODE_ESCAPE_SIZE
        }
        _ => {
            out.push_str(&rest[..UNICODE_ESCAPE_SIZE]);
            UNICODE_ESCAPE_SIZE
        }
    }
}

/// Size of `\u0000` in bytes.
const UNICODE_ESCAPE_SIZE: usize = 6;

/// Returns the code unit of a `\u` escape at the beginning of a text.
fn parse_unicode_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::to_valid_json;

    #[test]
    fn only_invalid_json_is_replaced() {
        let cases: [(&[u8], Value); 9] = [
            (b"{\"text\": \"a\xffb\"}", json!({"text": "a\u{fffd}b"})),
            (br#"["\ud83d"]"#, json!(["\u{fffd}"])),
            (br#"["\ude00\ud83d x"]"#, json!(["\u{fffd}\u{fffd} x"])),
            (br#"["\ud83d\ude00"]"#, json!(["\u{1f600}"])),
            (br#"["\\ud83d NaN \" NaN"]"#, json!(["\\ud83d NaN \" NaN"])),
            (
                br"[NaN, -Infinity, Infinity, -1]",
                json!([null, null, null, -1]),
            ),
            (b"[\"a\nb\"]", json!(["a\nb"])),
            (br#"["\ud83d\n"]"#, json!(["\u{fffd}\n"])),
            ("[\"é\\u00e9\"]".as_bytes(), json!(["éé"])),
        ];
        for (input, expected) in cases {
            let json = to_valid_json(input);
            let value: Value = serde_json::from_str(&json).unwrap_or_default();
            assert_eq!(value, expected, "{json}");
        }
        // Cannot be repaired, but must not panic.
        for input in [
            &b"\"\\"[..],
            b"\"\\u",
            b"\"\\u12\xc3\xa9",
            b"\\",
            b"\"\\\xc3\xa9",
        ] {
            to_valid_json(input);
        }
    }
}
