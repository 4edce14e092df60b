//! JSON as Python writes it: with NaN, infinities, numbers of any size and unpaired surrogates.

use serde_json::Value;

/// Parses bytes from a notebook. Values that JSON cannot represent become `null`, and so does invalid JSON.
pub(crate) fn parse(json: &[u8]) -> Value {
    if let Ok(value) = serde_json::from_slice(json) {
        return value;
    }
    serde_json::from_slice(&to_strict_json(json)).unwrap_or_default()
}

/// Replaces the values that JSON cannot represent by `null`.
fn to_strict_json(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'"' => copy_string(rest, &mut out),
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => copy_scalar(rest, &mut out),
            _ => {
                out.push(byte);
                1
            }
        };
        rest = &rest[length..];
    }
    out
}

/// Copies a string. Returns its length in bytes.
fn copy_string(json: &[u8], out: &mut Vec<u8>) -> usize {
    let mut at = 1;
    while at < json.len() && json[at] != b'"' {
        at += if json[at] == b'\\' { 2 } else { 1 };
    }
    let end = (at + 1).min(json.len());
    let token = &json[..end];
    if serde_json::from_slice::<String>(token).is_ok() {
        out.extend_from_slice(token);
    } else {
        // Only an unpaired surrogate makes it invalid; its meaning is unknown.
        out.extend_from_slice(b"null");
        let is_name = json[end..].trim_ascii_start().first() == Some(&b':');
        if is_name {
            out.truncate(out.len() - 4);
            out.extend_from_slice(b"\"\"");
        }
    }
    end
}

/// Copies a number or a literal. Returns its length in bytes.
fn copy_scalar(json: &[u8], out: &mut Vec<u8>) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = json.iter().position(|byte| !is_part(byte));
    let end = end.unwrap_or(json.len());
    let is_json = serde_json::from_slice::<Value>(&json[..end]).is_ok();
    out.extend_from_slice(if is_json { &json[..end] } else { b"null" });
    end
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_written_by_python_is_parsed() {
        let python =
            br#"{"tags": ["NaN", "a\"1e999"], "n": NaN, "i": [Infinity,-Infinity], "big": 1e999,
            "half": "\ud800", "\udc00": 1, "whole": "\ud83d\ude00", "t": true, "f": 1.5}"#;
        let expected = json!({"tags": ["NaN", "a\"1e999"], "n": null, "i": [null, null], "big": null,
            "half": null, "": 1, "whole": "\u{1f600}", "t": true, "f": 1.5});
        assert_eq!(parse(python), expected);
    }

    #[test]
    fn invalid_json_is_null() {
        for invalid in [
            "",
            "{",
            "\"a",
            "\"\\",
            "[1,,2]",
            "{\"a\" 1}",
            "nothing at all",
        ] {
            assert_eq!(parse(invalid.as_bytes()), Value::Null, "{invalid}");
        }
    }
}
