//! JSON objects, member by member, without taking apart what is in them. Kernels send text that is not
//! quite UTF-8, and messages of many megabytes of which one member is wanted.

use memchr::{memchr, memchr2};

/// The members of an object: the name as it is written between its quotes, and the value. What makes no
/// sense ends it.
pub(crate) struct Members<'a> {
    rest: &'a [u8],
}

/// A value as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) text: &'a [u8],
    /// Whether it is a string in which nothing is escaped: what it means is what stands between its quotes.
    pub(crate) plain: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn of(object: &'a [u8]) -> Self {
        let object = skip_blanks(object);
        Self {
            rest: object.strip_prefix(b"{").unwrap_or_default(),
        }
    }

    /// The name of the next member. What it has is to be taken next, in one of the ways below.
    pub(crate) fn name(&mut self) -> Option<&'a [u8]> {
        let mut rest = skip_blanks(self.rest);
        if let Some(after) = rest.strip_prefix(b",") {
            rest = skip_blanks(after);
        }
        let (end, _) = string_end(rest)?;
        let (name, after) = (&rest[1..end - 1], &rest[end..]);
        self.rest = skip_blanks(skip_blanks(after).strip_prefix(b":")?);
        Some(name)
    }

    /// Takes the value.
    pub(crate) fn value(&mut self) -> Option<Written<'a>> {
        let (end, plain) = value_end(self.rest)?;
        let (text, after) = self.rest.split_at(end);
        self.rest = after;
        Some(Written { text, plain })
    }

    /// Takes the value: its members, if it is an object. They are to be gone through; this goes on behind
    /// the last. It saves reading all of a large object twice.
    pub(crate) fn members(&mut self) -> Inner<'_, 'a> {
        let is_object = self.rest.first() == Some(&b'{');
        let members = Members::of(if is_object { self.rest } else { &[] });
        if !is_object {
            self.value();
        }
        Inner {
            members,
            outer: is_object.then_some(self),
        }
    }

    /// What follows: the value, if a name was taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether the value is a string.
    pub(crate) fn is_at_string(&self) -> bool {
        self.rest.first() == Some(&b'"')
    }

    /// Takes the value, and hands on what it means if it is a string.
    pub(crate) fn string(&mut self, hear: impl FnMut(&[u8])) {
        if self.is_at_string() {
            self.rest = unescape(self.rest, hear);
        } else {
            self.value();
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Written<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.name()?, self.value()?))
    }
}

/// The members of an object within an object.
pub(crate) struct Inner<'m, 'a> {
    members: Members<'a>,
    /// Where to go on behind them.
    outer: Option<&'m mut Members<'a>>,
}

impl<'a> Iterator for Inner<'_, 'a> {
    type Item = (&'a [u8], Written<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.members.next();
        if next.is_none()
            && let Some(outer) = &mut self.outer
        {
            let rest = skip_blanks(self.members.rest);
            outer.rest = rest.strip_prefix(b"}").unwrap_or_default();
        }
        next
    }
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let at = bytes.iter().position(|byte| !blank(byte));
    &bytes[at.unwrap_or(bytes.len())..]
}

/// Where the string ends that `bytes` begin with, and whether nothing in it is escaped.
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

/// Where the value ends that `bytes` begin with, and whether it is a string in which nothing is escaped.
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

/// How much text is handed on at once.
const PIECE: usize = 64 * 1024;

/// Hands on what the string means that `bytes` begin with, in pieces; what follows it comes back. Bytes that
/// are not UTF-8 stay, and halves of characters that Python made of such bytes become those bytes again.
pub(crate) fn unescape(bytes: &[u8], mut hear: impl FnMut(&[u8])) -> &[u8] {
    let mut rest = bytes.strip_prefix(b"\"").unwrap_or_default();
    let mut piece = Vec::with_capacity(PIECE.min(rest.len()));
    loop {
        let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let (text, after) = rest.split_at(plain);
        if piece.len() + text.len() >= PIECE && !piece.is_empty() {
            hear(&piece);
            piece.clear();
        }
        if text.len() >= PIECE {
            hear(text);
        } else {
            piece.extend_from_slice(text);
        }
        rest = match after {
            // Nearly all of them.
            [b'\\', b'n', after @ ..] => {
                piece.push(b'\n');
                after
            }
            [b'\\', after @ ..] => one(after, &mut piece),
            _ => {
                if !piece.is_empty() {
                    hear(&piece);
                }
                return after.get(1..).unwrap_or_default();
            }
        };
    }
}

/// What a string means that comes in pieces, without its quotes.
#[derive(Debug, Default)]
pub(crate) struct Unescape {
    /// An escape whose end has not come.
    begun: Vec<u8>,
}

impl Unescape {
    /// The longest escape: a character that is written as two numbers.
    const LONGEST: usize = "\\ud83d\\ude00".len();

    /// Takes the next piece, and hands on what it means.
    pub(crate) fn push(&mut self, piece: &[u8], mut hear: impl FnMut(&[u8])) {
        let joined;
        let mut rest = piece;
        if !self.begun.is_empty() {
            joined = [&std::mem::take(&mut self.begun)[..], piece].concat();
            rest = &joined;
        }
        let mut text = Vec::new();
        while let Some(at) = memchr(b'\\', rest) {
            text.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if rest.len() < Self::LONGEST {
                self.begun = rest.to_vec();
                rest = &[];
                break;
            }
            rest = one(&rest[1..], &mut text);
        }
        if text.is_empty() {
            hear(rest);
            return;
        }
        text.extend_from_slice(rest);
        hear(&text);
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self, mut hear: impl FnMut(&[u8])) {
        let begun = std::mem::take(&mut self.begun);
        let mut rest = &begun[..];
        let mut text = Vec::new();
        while let Some(at) = memchr(b'\\', rest) {
            text.extend_from_slice(&rest[..at]);
            rest = one(&rest[at + 1..], &mut text);
        }
        text.extend_from_slice(rest);
        hear(&text);
    }
}

/// Takes what follows a backslash; the rest comes back.
fn one<'a>(after: &'a [u8], piece: &mut Vec<u8>) -> &'a [u8] {
    let Some((&sign, rest)) = after.split_first() else {
        return after;
    };
    let meant = match sign {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => return number(rest, piece),
        other => other,
    };
    piece.push(meant);
    rest
}

/// Takes a character that is written as a number; two of them if it takes two.
fn number<'a>(rest: &'a [u8], piece: &mut Vec<u8>) -> &'a [u8] {
    let Some((unit, after)) = unit(rest) else {
        piece.extend_from_slice("\u{fffd}".as_bytes());
        return rest;
    };
    let mut text = [0; 4];
    let character = match unit {
        0xd800..=0xdbff => {
            let low = after.strip_prefix(b"\\u").and_then(self::unit);
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

fn unit(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(4)?;
    let mut unit = 0;
    for digit in digits {
        unit = unit * 16 + char::from(*digit).to_digit(16)?;
    }
    Some((unit, rest))
}

/// The text of a string.
pub(crate) fn text(written: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(written.len());
    unescape(written, |piece| bytes.extend_from_slice(piece));
    utf8(bytes)
}

/// Bytes as text; what is no UTF-8 is replaced.
pub(crate) fn utf8(bytes: Vec<u8>) -> String {
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
        Members::of(object.as_bytes())
            .map(|(name, value)| (text(name), text(value.text)))
            .collect()
    }

    #[test]
    fn members_come_in_order_with_their_values_untouched() {
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
    fn what_makes_no_sense_ends_it() {
        for object in ["", "[1]", "{", "{\"a\"", "{\"a\":", "{\"a\":\"x", "{a:1}"] {
            assert_eq!(members(object), [], "{object}");
        }
        assert_eq!(members("{\"a\":1,\"b\":[").len(), 1);
    }

    #[test]
    fn text_that_is_not_utf8_stays_what_it_was() {
        let mut heard = Vec::new();
        unescape(
            b"\"a\xff\\udcfe\\ud83d\\ude00\\ud83d\\u00e9\\q\\\"\"",
            |piece| {
                heard.extend_from_slice(piece);
            },
        );
        let mut expected = b"a\xff\xfe".to_vec();
        expected.extend_from_slice("😀\u{fffd}éq".as_bytes());
        expected.push(b'"');
        assert_eq!(heard, expected);
    }

    proptest! {
        #[test]
        fn any_text_comes_back(given in any::<String>(), before in any::<String>()) {
            let object = json!({"before": before, "text": given, "n": [before, 1]}).to_string();
            let found = Members::of(object.as_bytes()).find(|(name, _)| *name == b"text");
            prop_assert_eq!(text(found.unwrap().1.text), given);
        }

        #[test]
        fn pieces_mean_what_the_whole_means(
            parts in prop::collection::vec(prop_oneof![
                any::<String>(),
                r"(\\\\|\\n|\\u[0-9a-f]{4}|\\ud83d\\ude00|\\ud83d|\\udcff|\\u12|\\q){1,4}",
            ], 0..8),
            cut in 1..20_usize,
        ) {
            let given = parts.concat().replace('"', "");
            let mut heard = Vec::new();
            let mut unescape = Unescape::default();
            for piece in given.as_bytes().chunks(cut) {
                unescape.push(piece, |piece| heard.extend_from_slice(piece));
            }
            unescape.finish(|piece| heard.extend_from_slice(piece));
            let mut whole = Vec::new();
            super::unescape(format!("\"{given}").as_bytes(), |piece| whole.extend_from_slice(piece));
            prop_assert_eq!(heard, whole);
        }

        #[test]
        fn any_bytes_are_survived(bytes in any::<Vec<u8>>()) {
            for (_, value) in Members::of(&bytes) {
                text(value.text);
            }
            unescape(&bytes, |_| {});
        }

        #[test]
        fn values_are_those_that_a_parser_finds(names in prop::collection::vec("[a-z]{1,5}", 0..6), n in any::<i64>()) {
            let mut object = serde_json::Map::new();
            for name in &names {
                object.insert(name.clone(), json!({"x": [n, name, {"y": "}\\\""}]}));
            }
            let written = Value::Object(object.clone()).to_string();
            let found: Vec<_> = Members::of(written.as_bytes()).collect();
            prop_assert_eq!(found.len(), object.len());
            for (name, value) in found {
                let value: Value = serde_json::from_slice(value.text).unwrap();
                prop_assert_eq!(&value, &object[std::str::from_utf8(name).unwrap()]);
            }
        }
    }
}
