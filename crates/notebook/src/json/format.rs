//! Formats JSON in a given style. Tokens stay as they are.

use std::fmt::Write as _;

use crate::json::style::Style;

/// Values at a greater depth are on one line. Otherwise the indentation of a deeply nested value is much larger than the value.
const INDENTED_DEPTH_MAX: usize = 64;

impl Style {
    /// Formats a well-formed value whose line is indented by `indentation`; on one line if
    /// `None`.
    pub(crate) fn format(&self, json: &str, indentation: Option<&str>) -> String {
        let indentation = indentation.filter(|_| !self.newline.is_empty());
        let mut out = String::with_capacity(json.len() + json.len() / 4);
        let mut depth = 0usize;
        let mut rest = json;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                ' ' | '\n' | '\r' | '\t' => {}
                '{' | '[' => {
                    out.push(character);
                    let inside = rest.trim_ascii_start();
                    if inside.starts_with(['}', ']']) {
                        out.push_str(&inside[..1]);
                        rest = &inside[1..];
                    } else {
                        depth += 1;
                        self.push_line_break(&mut out, indentation, depth);
                    }
                }
                '}' | ']' => {
                    // Closed as it was opened.
                    if depth <= INDENTED_DEPTH_MAX {
                        self.push_line_break(&mut out, indentation, depth.saturating_sub(1));
                    }
                    depth = depth.saturating_sub(1);
                    out.push(character);
                }
                ',' if indentation.is_some() && depth <= INDENTED_DEPTH_MAX => {
                    out.push(',');
                    self.push_line_break(&mut out, indentation, depth);
                }
                ',' => out.push_str(&self.comma),
                ':' => out.push_str(&self.colon),
                '"' => {
                    let end = string_end(rest.as_bytes());
                    out.push('"');
                    self.push_token(&rest[..end], &mut out);
                    rest = &rest[end..];
                }
                other => out.push(other),
            }
        }
        out
    }

    fn push_line_break(&self, out: &mut String, indentation: Option<&str>, depth: usize) {
        if let Some(indentation) = indentation.filter(|_| depth <= INDENTED_DEPTH_MAX) {
            out.push_str(&self.newline);
            out.push_str(indentation);
            for _ in 0..depth {
                out.push_str(&self.unit);
            }
        }
    }

    fn push_token(&self, token: &str, out: &mut String) {
        if !self.ascii || token.is_ascii() {
            out.push_str(token);
            return;
        }
        for character in token.chars() {
            if character.is_ascii() {
                out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                write!(out, "\\u{unit:04x}").ok();
            }
        }
    }
}

/// Formats a well-formed value at a nesting depth of a file.
pub(crate) fn format_at_depth(json: &[u8], style: &Style, depth: usize) -> Vec<u8> {
    let json = String::from_utf8_lossy(json);
    let indentation = style.unit.repeat(depth);
    style.format(&json, Some(&indentation)).into_bytes()
}

/// Formats a well-formed document in Jupyter's style.
pub(crate) fn format_like_jupyter(json: &[u8]) -> Vec<u8> {
    let json = String::from_utf8_lossy(json);
    Style::default().format(&json, Some("")).into_bytes()
}

/// Offset of the end of a string, after the closing quote. `bytes` start after the opening one.
pub(crate) fn string_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
        if at > bytes.len() {
            break;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_and_white_space_changes() {
        let json = r#"{"a":[1.0,{ } , [ ]],"b":"x: {\"y\", [é]}\\","c":{"d":null}}"#;
        let expected = "{\n \"a\": [\n  1.0,\n  {},\n  []\n ],\n \"b\": \"x: {\\\"y\\\", [é]}\\\\\",\n \"c\": {\n  \"d\": null\n }\n}";
        assert_eq!(
            String::from_utf8_lossy(&format_like_jupyter(json.as_bytes())),
            expected
        );
    }

    #[test]
    fn deep_values_are_on_one_line() {
        let json = |depth: usize| format!("{}1, 2{}", "[".repeat(depth), "]".repeat(depth));
        let indented = format_like_jupyter(json(INDENTED_DEPTH_MAX).as_bytes());
        let lines = String::from_utf8(indented).unwrap().lines().count();
        assert_eq!(lines, 2 * INDENTED_DEPTH_MAX + 2);
        let deep = json(9_900);
        let formatted = String::from_utf8(format_like_jupyter(deep.as_bytes())).unwrap();
        assert!(formatted.len() < deep.len() + 10_000, "{}", formatted.len());
        let compact: String = formatted.split_ascii_whitespace().collect();
        assert_eq!(compact, deep.replace(' ', ""));
    }

    #[test]
    fn value_takes_the_layout_of_its_position() {
        let style = Style {
            newline: "\r\n".to_owned(),
            unit: "\t".to_owned(),
            colon: " : ".to_owned(),
            comma: ",".to_owned(),
            ascii: true,
        };
        let json = r#"{"a": [1, "é𝄞"], "b": {}}"#;
        assert_eq!(
            style.format(json, Some("\t\t")),
            "{\r\n\t\t\t\"a\" : [\r\n\t\t\t\t1,\r\n\t\t\t\t\"\\u00e9\\ud834\\udd1e\"\r\n\t\t\t],\r\n\t\t\t\"b\" : {}\r\n\t\t}"
        );
        assert_eq!(
            style.format(json, None),
            r#"{"a" : [1,"\u00e9\ud834\udd1e"],"b" : {}}"#
        );
    }
}
