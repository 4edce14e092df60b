//! A cell's `source`: decodes its text, and writes new text into it.
//!
//! When the text changes, unchanged lines keep their bytes, however they were escaped or split.
//! Only new lines are encoded again.

use std::ops::Range;

use crate::json::text::{self, Escapes};
use crate::lines::{LineChange, diff_lines};

/// The layout of an array of lines: the text after `[`, between lines and before `]`.
#[derive(Clone, Debug)]
pub(crate) struct ArrayLayout {
    pub(crate) open: String,
    pub(crate) between: String,
    pub(crate) close: String,
}

/// The shape of a `source`: one string, or an array of lines.
#[derive(Clone, Debug)]
pub(crate) enum SourceShape {
    Text,
    Lines(ArrayLayout),
}

/// The text of a `source` value: a string, an array of strings, or nothing.
pub(crate) fn decode_text(value: &[u8]) -> String {
    let mut out = String::new();
    append_text(value, &mut out);
    out
}

/// Appends the text of a `source` value.
pub(crate) fn append_text(value: &[u8], out: &mut String) {
    for token in string_tokens(value) {
        text::decode_into(&value[token], out);
    }
}

/// The string tokens in a value that is a string or an array of strings.
pub(crate) fn string_tokens(value: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + memchr::memchr(b'"', &value[from..])?;
        let mut end = start + 1;
        loop {
            end += memchr::memchr2(b'"', b'\\', value.get(end..)?)?;
            if value[end] == b'"' {
                break;
            }
            end += 2;
        }
        from = end + 1;
        Some(start..from)
    })
}

/// A new value, and whether the change lost a lone surrogate.
pub(crate) struct SourceValue {
    pub(crate) value: String,
    pub(crate) surrogate_lost: bool,
}

/// A value for text without an old value.
pub(crate) fn new_value(new: &str, shape: &SourceShape, escapes: Escapes) -> String {
    rewrite_value(&[], new, shape, escapes).value
}

/// The value `old` with its text replaced by `new`.
pub(crate) fn rewrite_value(
    old: &[u8],
    new: &str,
    shape: &SourceShape,
    escapes: Escapes,
) -> SourceValue {
    let old_lines = split_lines(old);
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut out = TokenWriter {
        old,
        lines: matches!(shape, SourceShape::Lines(_)),
        parts: Vec::new(),
    };
    let mut surrogate_lost = false;
    let old_texts: Vec<&str> = old_lines.iter().map(|line| line.text.as_str()).collect();
    for change in diff_lines(&old_texts, &new_lines) {
        match change {
            LineChange::Keep(range) => out.keep(&old_lines[range]),
            LineChange::Replace { old, new } => {
                let mut replacements = Replacements::new(&old_lines[old], &new_lines[new.clone()]);
                for line in &new_lines[new] {
                    let mut encoded = String::with_capacity(line.len() + 2);
                    replacements.encode(line, escapes, &mut encoded);
                    out.parts.push(encoded);
                }
                surrogate_lost |= replacements.surrogate_lost;
            }
        }
    }
    SourceValue {
        value: join_parts(&out.parts, shape),
        surrogate_lost,
    }
}

fn join_parts(parts: &[String], shape: &SourceShape) -> String {
    let mut value = String::new();
    match shape {
        SourceShape::Text => {
            value.push('"');
            value.extend(parts.iter().map(String::as_str));
            value.push('"');
        }
        SourceShape::Lines(_) if parts.is_empty() => value.push_str("[]"),
        SourceShape::Lines(layout) => {
            value.push('[');
            value.push_str(&layout.open);
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    value.push_str(&layout.between);
                }
                value.push('"');
                value.push_str(part);
                value.push('"');
            }
            value.push_str(&layout.close);
            value.push(']');
        }
    }
    value
}

/// One line of the old text: its characters, and the token slices that encode it.
struct SourceLine {
    text: String,
    slices: Vec<TokenSlice>,
    /// For each U+FFFD in the text: the bytes that encode it.
    replacements: Vec<String>,
}

/// Part of a string token: index of the token, byte range, and whether the range reaches its
/// ends.
struct TokenSlice {
    token: usize,
    bytes: Range<usize>,
    starts_token: bool,
    ends_token: bool,
}

fn split_lines(value: &[u8]) -> Vec<SourceLine> {
    let mut lines: Vec<SourceLine> = Vec::new();
    let mut open = false;
    for (index, token) in string_tokens(value).enumerate() {
        let (start, end) = (token.start + 1, token.end - 1);
        let mut from = start;
        while from < end || (start == end && from == start) {
            if !open {
                lines.push(SourceLine {
                    text: String::new(),
                    slices: Vec::new(),
                    replacements: Vec::new(),
                });
            }
            let Some(line) = lines.last_mut() else { break };
            let (until, ends) = line.read(&value[..end], from);
            line.slices.push(TokenSlice {
                token: index,
                bytes: from..until,
                starts_token: from == start,
                ends_token: until == end,
            });
            open = !ends;
            from = until.max(from + 1);
        }
    }
    lines
}

impl SourceLine {
    /// Reads raw string bytes from `from` up to and including a newline. Returns the end offset
    /// and whether there was a newline.
    fn read(&mut self, bytes: &[u8], mut from: usize) -> (usize, bool) {
        while from < bytes.len() {
            if bytes[from] != b'\\' {
                let plain = memchr::memchr(b'\\', &bytes[from..]).map_or(bytes.len(), |n| from + n);
                let text = String::from_utf8_lossy(&bytes[from..plain]);
                let genuine = text.matches(char::REPLACEMENT_CHARACTER).count();
                self.replacements
                    .extend(std::iter::repeat_n("\u{fffd}".to_owned(), genuine));
                self.text.push_str(&text);
                from = plain;
                continue;
            }
            let (character, length) = text::decode_escape(&bytes[from..]);
            let shown = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.push(shown);
            if shown == char::REPLACEMENT_CHARACTER {
                let raw = String::from_utf8_lossy(&bytes[from..from + length]);
                self.replacements.push(raw.into_owned());
            }
            from += length;
            if character == Some('\n') {
                return (from, true);
            }
        }
        (from, false)
    }
}

/// Collects the contents of the string tokens of the new value.
struct TokenWriter<'a> {
    old: &'a [u8],
    /// Whether each part becomes its own token.
    lines: bool,
    parts: Vec<String>,
}

impl TokenWriter<'_> {
    /// Copies unchanged lines, token for token where whole tokens stay.
    fn keep(&mut self, lines: &[SourceLine]) {
        let slices: Vec<&TokenSlice> = lines.iter().flat_map(|line| &line.slices).collect();
        let mut rest = &slices[..];
        while let [first, ..] = rest {
            let run = rest.iter().take_while(|p| p.token == first.token).count();
            let last = rest[run - 1];
            if !self.lines || (first.starts_token && last.ends_token) {
                self.copy(first.bytes.start..last.bytes.end);
            } else {
                // Some lines of the token were removed: each remaining line becomes its own
                // token.
                for slice in &rest[..run] {
                    self.copy(slice.bytes.clone());
                }
            }
            rest = &rest[run..];
        }
    }

    fn copy(&mut self, bytes: Range<usize>) {
        self.parts
            .push(String::from_utf8_lossy(&self.old[bytes]).into_owned());
    }
}

/// The original bytes of the U+FFFD characters in replaced lines.
struct Replacements {
    raw: std::vec::IntoIter<String>,
    surrogate_lost: bool,
}

impl Replacements {
    /// Reuses the old bytes if the number of U+FFFD is unchanged.
    fn new(old: &[SourceLine], new: &[&str]) -> Self {
        let raw: Vec<String> = old.iter().flat_map(|l| l.replacements.clone()).collect();
        let count: usize = new
            .iter()
            .map(|line| line.matches(char::REPLACEMENT_CHARACTER).count())
            .sum();
        let surrogates = raw
            .iter()
            .any(|raw| raw.starts_with("\\ud") || raw.starts_with("\\uD"));
        if raw.len() == count {
            return Self {
                raw: raw.into_iter(),
                surrogate_lost: false,
            };
        }
        Self {
            raw: Vec::new().into_iter(),
            // If none is left, the user removed them. Otherwise it is unknown which one is which.
            surrogate_lost: surrogates && count > 0,
        }
    }

    fn encode(&mut self, line: &str, escapes: Escapes, out: &mut String) {
        let mut parts = line.split(char::REPLACEMENT_CHARACTER);
        if let Some(first) = parts.next() {
            text::encode_into(first, escapes, out);
        }
        for part in parts {
            match self.raw.next() {
                // Two adjacent halves would become another character.
                Some(raw)
                    if text::ends_with_high_surrogate(out) && text::is_low_surrogate(&raw) =>
                {
                    self.surrogate_lost = true;
                    text::encode_into("\u{fffd}", escapes, out);
                }
                Some(raw) => out.push_str(&raw),
                None => text::encode_into("\u{fffd}", escapes, out),
            }
            text::encode_into(part, escapes, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> SourceShape {
        SourceShape::Lines(ArrayLayout {
            open: String::new(),
            between: ",".into(),
            close: String::new(),
        })
    }

    fn check(old: &str, new: &str, expected: &str) {
        let shape = if old.starts_with('"') {
            SourceShape::Text
        } else {
            lines()
        };
        let written = rewrite_value(old.as_bytes(), new, &shape, Escapes::Utf8);
        assert_eq!(written.value, expected, "{old} to {new:?}");
        assert_eq!(decode_text(written.value.as_bytes()), new);
    }

    #[test]
    fn unchanged_lines_keep_their_bytes() {
        check(
            r#"["a\n","\u00e9\/\n","b"]"#,
            "x\né/\nb",
            r#"["x\n","\u00e9\/\n","b"]"#,
        );
        check(r#""a\n\u00e9\/\nb""#, "x\né/\nb", r#""x\n\u00e9\/\nb""#);
        check(r#"["a\n","b\n","c"]"#, "a\nc", r#"["a\n","c"]"#);
        check(r#"["a\n","b"]"#, "a\nb\n", r#"["a\n","b\n"]"#);
        check(r#"["a"]"#, "", "[]");
        check(r#""a""#, "", r#""""#);
        check("[]", "a\nb", r#"["a\n","b"]"#);
        check(r#"[""]"#, "a", r#"["a"]"#);
    }

    #[test]
    fn odd_splits_survive_where_nothing_changed() {
        // Several lines in one token: kept whole, or split only where necessary.
        check(
            r#"["a\nb\n","c\n","d"]"#,
            "a\nb\nX\nd",
            r#"["a\nb\n","X\n","d"]"#,
        );
        check(r#"["a\nb\n","c"]"#, "a\nX\nc", r#"["a\n","X\n","c"]"#);
        // One line in several tokens.
        check(r#"["a","b\n","c"]"#, "ab\nX", r#"["a","b\n","X"]"#);
        check(r#"["a","b\n","c"]"#, "aX\nc", r#"["aX\n","c"]"#);
        check(
            r#"["a\n","","b\n","\"\n"]"#,
            "X\nb\n\"\n",
            r#"["X\n","","b\n","\"\n"]"#,
        );
        check(r#"["x\"\n\"\n","b"]"#, "\"\nb", r#"["\"\n","b"]"#);
    }

    #[test]
    fn lone_surrogates_survive_an_edit_of_their_line() {
        check(
            r#"["a \ud83d b\n","c"]"#,
            "A \u{fffd} B\nc",
            r#"["A \ud83d B\n","c"]"#,
        );
        let unclear = rewrite_value(
            br#"["\ud83d"]"#,
            "\u{fffd}\u{fffd}",
            &lines(),
            Escapes::Utf8,
        );
        assert!(unclear.surrogate_lost);
        let deleted = rewrite_value(br#"["\ud83d"]"#, "gone", &lines(), Escapes::Utf8);
        assert!(!deleted.surrogate_lost);
        let kept = rewrite_value(
            br#"["\ud83d\n","c"]"#,
            "\u{fffd}\nX",
            &lines(),
            Escapes::Utf8,
        );
        assert_eq!(kept.value, r#"["\ud83d\n","X"]"#);
        assert!(!kept.surrogate_lost);
    }

    #[test]
    fn new_text_follows_the_escapes_of_the_file() {
        assert_eq!(new_value("é", &lines(), Escapes::Ascii), r#"["\u00e9"]"#);
        assert_eq!(new_value("é", &SourceShape::Text, Escapes::Utf8), "\"é\"");
    }
}
