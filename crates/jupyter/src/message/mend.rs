//! JSON that is nearly JSON. Kernels print what programs print: Python sends bytes that are no UTF-8 as they
//! are, JavaScript sends halves of surrogate pairs, some write `NaN`. A character is lost then, not the
//! message.

/// The same, with everything in place that a parser stumbles over.
pub(super) fn mended(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    let mut inside = false;
    while let Some(character) = rest.chars().next() {
        let taken = match character {
            '"' => {
                inside = !inside;
                out.push('"');
                1
            }
            '\\' if inside => escape(rest, &mut out),
            control if inside && u32::from(control) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
                1
            }
            _ if inside => {
                out.push(character);
                character.len_utf8()
            }
            _ => bare(rest, character, &mut out),
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Something outside of a string.
fn bare(rest: &str, character: char, out: &mut String) -> usize {
    for number in ["NaN", "Infinity", "-Infinity"] {
        if rest.starts_with(number) {
            out.push_str("null");
            return number.len();
        }
    }
    out.push(character);
    character.len_utf8()
}

/// An escape inside of a string.
fn escape(rest: &str, out: &mut String) -> usize {
    let Some(first) = unit(rest) else {
        // One of the short ones, whose second character must not be taken for a quote.
        let length = rest.chars().take(2).map(char::len_utf8).sum();
        out.push_str(&rest[..length]);
        return length;
    };
    let second = rest.get(UNIT..).and_then(unit);
    match (first, second) {
        (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => {
            out.push_str(&rest[..2 * UNIT]);
            2 * UNIT
        }
        (0xd800..=0xdfff, _) => {
            out.push(char::REPLACEMENT_CHARACTER);
            UNIT
        }
        _ => {
            out.push_str(&rest[..UNIT]);
            UNIT
        }
    }
}

/// The length of `\u0000`.
const UNIT: usize = 6;

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::mended;

    #[test]
    fn what_a_parser_stumbles_over_is_put_in_place_and_nothing_else() {
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
        for (given, meant) in cases {
            let mended = mended(given);
            let value: Value = serde_json::from_str(&mended).unwrap_or_default();
            assert_eq!(value, meant, "{mended}");
        }
        // Hopeless, but no reason to panic.
        for given in [
            &b"\"\\"[..],
            b"\"\\u",
            b"\"\\u12\xc3\xa9",
            b"\\",
            b"\"\\\xc3\xa9",
        ] {
            mended(given);
        }
    }
}
