//! JSON objects, member by member, without parsing the values. Kernels send text that is not
//! valid UTF-8, and messages of many megabytes of which one member is needed.

use memchr::{memchr, memchr2};

/// The members of an object: the name between its quotes, still escaped, and the value. Invalid JSON ends the
/// iteration.
pub(crate) struct Members<'a> {
    remaining: &'a [u8],
}

/// The bytes of a value, unparsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueSlice<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether it is a string without escapes, so that its value is the text between its quotes.
    pub(crate) is_plain: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn new(object: &'a [u8]) -> Self {
        let object = skip_whitespace(object);
        Self {
            remaining: object.strip_prefix(b"{").unwrap_or_default(),
        }
    }

    /// The name of the next member. The caller must read its value next, with one of the methods below.
    pub(crate) fn read_name(&mut self) -> Option<&'a [u8]> {
        let mut rest = skip_whitespace(self.remaining);
        if let Some(after) = rest.strip_prefix(b",") {
            rest = skip_whitespace(after);
        }
        let (end, _) = string_end(rest)?;
        let (name, after) = (&rest[1..end - 1], &rest[end..]);
        self.remaining = skip_whitespace(skip_whitespace(after).strip_prefix(b":")?);
        Some(name)
    }

    /// Reads the value.
    pub(crate) fn read_value(&mut self) -> Option<ValueSlice<'a>> {
        let (end, plain) = value_end(self.remaining)?;
        let (text, after) = self.remaining.split_at(end);
        self.remaining = after;
        Some(ValueSlice {
            bytes: text,
            is_plain: plain,
        })
    }

    /// Reads the value as an object, and returns its members; the caller must iterate over all of them. This avoids
    /// scanning a large object twice.
    pub(crate) fn read_members(&mut self) -> NestedMembers<'_, 'a> {
        let is_object = self.remaining.first() == Some(&b'{');
        let members = Members::new(if is_object { self.remaining } else { &[] });
        if !is_object {
            self.read_value();
        }
        NestedMembers {
            members,
            outer: is_object.then_some(self),
        }
    }

    /// The bytes that are not read yet: they start with the value after [`Members::read_name`].
    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.remaining
    }

    /// Whether the value is a string.
    pub(crate) fn is_at_string(&self) -> bool {
        self.remaining.first() == Some(&b'"')
    }

    /// Reads the value. Passes it unescaped to `on_text` if it is a string.
    pub(crate) fn read_string(&mut self, on_text: impl FnMut(&[u8])) {
        if self.is_at_string() {
            self.remaining = unescape(self.remaining, on_text);
        } else {
            self.read_value();
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], ValueSlice<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.read_name()?, self.read_value()?))
    }
}

/// The members of an object within an object.
pub(crate) struct NestedMembers<'m, 'a> {
    members: Members<'a>,
    /// The object to continue with after the last member.
    outer: Option<&'m mut Members<'a>>,
}

impl<'a> Iterator for NestedMembers<'_, 'a> {
    type Item = (&'a [u8], ValueSlice<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.members.next();
        if next.is_none()
            && let Some(outer) = &mut self.outer
        {
            let rest = skip_whitespace(self.members.remaining);
            outer.remaining = rest.strip_prefix(b"}").unwrap_or_default();
        }
        next
    }
}

fn skip_whitespace(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let at = bytes.iter().position(|byte| !blank(byte));
    &bytes[at.unwrap_or(bytes.len())..]
}

/// The end of the string at the start of `bytes`, and whether it contains no escapes.
fn string_end(bytes: &[u8]) -> Option<(usize, bool)> {
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let (mut at, mut plain) = (1, true);
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((at + 1, plain));
        }
        plain = false;
        at += 2;
    }
}

/// The end of the value at the start of `bytes`, and whether it is a string without escapes.
fn value_end(bytes: &[u8]) -> Option<(usize, bool)> {
    match bytes.first()? {
        b'"' => string_end(bytes),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut at = 0;
            loop {
                match bytes.get(at)? {
                    b'"' => at += string_end(&bytes[at..])?.0 - 1,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some((at, false));
                }
            }
        }
        _ => {
            let end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            let at = bytes.iter().position(end)?;
            (at > 0).then_some((at, false))
        }
    }
}

/// Bytes of text that are passed on at once.
const PIECE_SIZE: usize = 64 * 1024;

/// Passes the unescaped string at the start of `bytes` to `on_text`, in pieces. Returns the bytes after it. Invalid
/// UTF-8 is kept, and lone surrogates that Python made of such bytes become those bytes again.
pub(crate) fn unescape(bytes: &[u8], mut on_text: impl FnMut(&[u8])) -> &[u8] {
    let mut rest = bytes.strip_prefix(b"\"").unwrap_or_default();
    let mut piece = Vec::with_capacity(PIECE_SIZE.min(rest.len()));
    loop {
        let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let (text, after) = rest.split_at(plain);
        if piece.len() + text.len() >= PIECE_SIZE && !piece.is_empty() {
            on_text(&piece);
            piece.clear();
        }
        if text.len() >= PIECE_SIZE {
            on_text(text);
        } else {
            piece.extend_from_slice(text);
        }
        rest = match after {
            // By far the most frequent escape.
            [b'\\', b'n', after @ ..] => {
                piece.push(b'\n');
                after
            }
            [b'\\', after @ ..] => unescape_one(after, &mut piece),
            _ => {
                if !piece.is_empty() {
                    on_text(&piece);
                }
                return after.get(1..).unwrap_or_default();
            }
        };
    }
}

/// Unescapes a string that arrives in pieces, without its quotes.
#[derive(Debug, Default)]
pub(crate) struct Unescaper {
    /// The beginning of an escape whose end has not arrived.
    partial_escape: Vec<u8>,
}

impl Unescaper {
    /// The longest escape: a surrogate pair.
    const LONGEST_ESCAPE: usize = "\\ud83d\\ude00".len();

    /// Unescapes the next piece and passes it to `on_text`.
    pub(crate) fn push(&mut self, piece: &[u8], mut on_text: impl FnMut(&[u8])) {
        let joined;
        let mut rest = piece;
        if !self.partial_escape.is_empty() {
            joined = [&std::mem::take(&mut self.partial_escape)[..], piece].concat();
            rest = &joined;
        }
        let mut text = Vec::new();
        while let Some(at) = memchr(b'\\', rest) {
            text.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if rest.len() < Self::LONGEST_ESCAPE {
                self.partial_escape = rest.to_vec();
                rest = &[];
                break;
            }
            rest = unescape_one(&rest[1..], &mut text);
        }
        if text.is_empty() {
            on_text(rest);
            return;
        }
        text.extend_from_slice(rest);
        on_text(&text);
    }

    /// Ends the string and passes on the rest.
    pub(crate) fn finish(&mut self, mut on_text: impl FnMut(&[u8])) {
        let escape = std::mem::take(&mut self.partial_escape);
        let mut rest = &escape[..];
        let mut text = Vec::new();
        while let Some(at) = memchr(b'\\', rest) {
            text.extend_from_slice(&rest[..at]);
            rest = unescape_one(&rest[at + 1..], &mut text);
        }
        text.extend_from_slice(rest);
        on_text(&text);
    }
}

/// Unescapes the bytes after a backslash. Returns the remaining bytes.
fn unescape_one<'a>(after: &'a [u8], piece: &mut Vec<u8>) -> &'a [u8] {
    let Some((&escape, rest)) = after.split_first() else {
        return after;
    };
    let byte = match escape {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => return unescape_unicode(rest, piece),
        other => other,
    };
    piece.push(byte);
    rest
}

/// Unescapes the digits after `\u`, and a second escape if it completes a surrogate pair.
fn unescape_unicode<'a>(rest: &'a [u8], piece: &mut Vec<u8>) -> &'a [u8] {
    let Some((unit, after)) = parse_hex_unit(rest) else {
        piece.extend_from_slice("\u{fffd}".as_bytes());
        return rest;
    };
    let mut text = [0; 4];
    let character = match unit {
        0xd800..=0xdbff => {
            let low = after.strip_prefix(b"\\u").and_then(self::parse_hex_unit);
            match low {
                Some((low @ 0xdc00..=0xdfff, after)) => {
                    let both = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    let character = char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER);
                    piece.extend_from_slice(character.encode_utf8(&mut text).as_bytes());
                    return after;
                }
                _ => char::REPLACEMENT_CHARACTER,
            }
        }
        0xdc80..=0xdcff => {
            piece.push(u8::try_from(unit - 0xdc00).unwrap_or_default());
            return after;
        }
        unit => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    piece.extend_from_slice(character.encode_utf8(&mut text).as_bytes());
    after
}

fn parse_hex_unit(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(4)?;
    let mut unit = 0;
    for digit in digits {
        unit = unit * 16 + char::from(*digit).to_digit(16)?;
    }
    Some((unit, rest))
}

/// The text of a JSON string.
pub(crate) fn unescape_to_string(string: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(string.len());
    unescape(string, |piece| bytes.extend_from_slice(piece));
    lossy_utf8(bytes)
}

/// Bytes as text, with invalid UTF-8 replaced.
pub(crate) fn lossy_utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn members(object: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Members::new(object.as_bytes())
            .map(|(name, value)| (text(name), text(value.bytes)))
            .collect()
    }

    #[test]
    fn members_are_returned_in_order_with_unparsed_values() {
        let object = r#" { "a" : "x\"}", "b":{"c":[1,"]"]} ,"d":-1.5e3,"e": null,"a":[]} "#;
        let expected = [
            ("a", r#""x\"}""#),
            ("b", r#"{"c":[1,"]"]}"#),
            ("d", "-1.5e3"),
            ("e", "null"),
            ("a", "[]"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(members(object), expected);
    }

    #[test]
    fn invalid_json_ends_the_members() {
        for object in ["", "[1]", "{", "{\"a\"", "{\"a\":", "{\"a\":\"x", "{a:1}"] {
            assert_eq!(members(object), [], "{object}");
        }
        assert_eq!(members("{\"a\":1,\"b\":[").len(), 1);
    }

    #[test]
    fn invalid_utf8_is_preserved() {
        let mut text = Vec::new();
        unescape(
            b"\"a\xff\\udcfe\\ud83d\\ude00\\ud83d\\u00e9\\q\\\"\"",
            |piece| {
                text.extend_from_slice(piece);
            },
        );
        let mut expected = b"a\xff\xfe".to_vec();
        expected.extend_from_slice("😀\u{fffd}éq".as_bytes());
        expected.push(b'"');
        assert_eq!(text, expected);
    }

    proptest! {
        #[test]
        fn any_text_survives_escaping(original in any::<String>(), before in any::<String>()) {
            let object = json!({"before": before, "text": original, "n": [before, 1]}).to_string();
            let found = Members::new(object.as_bytes()).find(|(name, _)| *name == b"text");
            prop_assert_eq!(unescape_to_string(found.unwrap().1.bytes), original);
        }

        #[test]
        fn pieces_are_unescaped_like_the_whole_string(
            parts in prop::collection::vec(prop_oneof![
                any::<String>(),
                r"(\\\\|\\n|\\u[0-9a-f]{4}|\\ud83d\\ude00|\\ud83d|\\udcff|\\u12|\\q){1,4}",
            ], 0..8),
            cut in 1..20_usize,
        ) {
            let original = parts.concat().replace('"', "");
            let mut text = Vec::new();
            let mut unescaper = Unescaper::default();
            for piece in original.as_bytes().chunks(cut) {
                unescaper.push(piece, |piece| text.extend_from_slice(piece));
            }
            unescaper.finish(|piece| text.extend_from_slice(piece));
            let mut whole = Vec::new();
            super::unescape(format!("\"{original}").as_bytes(), |piece| whole.extend_from_slice(piece));
            prop_assert_eq!(text, whole);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in any::<Vec<u8>>()) {
            for (_, value) in Members::new(&bytes) {
                unescape_to_string(value.bytes);
            }
            unescape(&bytes, |_| {});
        }

        #[test]
        fn values_equal_those_of_serde_json(names in prop::collection::vec("[a-z]{1,5}", 0..6), n in any::<i64>()) {
            let mut object = serde_json::Map::new();
            for name in &names {
                object.insert(name.clone(), json!({"x": [n, name, {"y": "}\\\""}]}));
            }
            let source = Value::Object(object.clone()).to_string();
            let found: Vec<_> = Members::new(source.as_bytes()).collect();
            prop_assert_eq!(found.len(), object.len());
            for (name, value) in found {
                let value: Value = serde_json::from_slice(value.bytes).unwrap();
                prop_assert_eq!(&value, &object[std::str::from_utf8(name).unwrap()]);
            }
        }
    }
}
