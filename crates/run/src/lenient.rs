//! JSON as Python writes it: with NaN, infinities, numbers of any size and halves of surrogate pairs.

use serde_json::Value;

/// The value that bytes from a notebook are. What JSON has no words for becomes `null`, and what is no
/// value at all says nothing.
pub(crate) fn read(json: &[u8]) -> Value {
    if let Ok(value) = serde_json::from_slice(json) {
        return value;
    }
    serde_json::from_slice(&strict(json)).unwrap_or_default()
}

/// The same without what JSON has no words for.
fn strict(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'"' => string(rest, &mut out),
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => word(rest, &mut out),
            _ => {
                out.push(byte);
                1
            }
        };
        rest = &rest[length..];
    }
    out
}

/// Takes a string; gives its length.
fn string(json: &[u8], out: &mut Vec<u8>) -> usize {
    let mut at = 1;
    while at < json.len() && json[at] != b'"' {
        at += if json[at] == b'\\' { 2 } else { 1 };
    }
    let end = (at + 1).min(json.len());
    let token = &json[..end];
    if serde_json::from_slice::<String>(token).is_ok() {
        out.extend_from_slice(token);
    } else {
        // Only a half of a pair can be wrong with it. What it stands for nobody knows.
        out.extend_from_slice(b"null");
        let is_name = json[end..].trim_ascii_start().first() == Some(&b':');
        if is_name {
            out.truncate(out.len() - 4);
            out.extend_from_slice(b"\"\"");
        }
    }
    end
}

/// Takes a number or a word; gives its length.
fn word(json: &[u8], out: &mut Vec<u8>) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = json.iter().position(|byte| !is_part(byte));
    let end = end.unwrap_or(json.len());
    let known = serde_json::from_slice::<Value>(&json[..end]).is_ok();
    out.extend_from_slice(if known { &json[..end] } else { b"null" });
    end
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_python_writes_is_read() {
        let said =
            br#"{"tags": ["NaN", "a\"1e999"], "n": NaN, "i": [Infinity,-Infinity], "big": 1e999,
            "half": "\ud800", "\udc00": 1, "whole": "\ud83d\ude00", "t": true, "f": 1.5}"#;
        let expected = json!({"tags": ["NaN", "a\"1e999"], "n": null, "i": [null, null], "big": null,
            "half": null, "": 1, "whole": "\u{1f600}", "t": true, "f": 1.5});
        assert_eq!(read(said), expected);
    }

    #[test]
    fn what_is_no_json_says_nothing() {
        for nothing in [
            "",
            "{",
            "\"a",
            "\"\\",
            "[1,,2]",
            "{\"a\" 1}",
            "nothing at all",
        ] {
            assert_eq!(read(nothing.as_bytes()), Value::Null, "{nothing}");
        }
    }
}
