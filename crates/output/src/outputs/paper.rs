//! [`Paper`]: JSON in a given style, written as it comes. Of what it writes it holds a few kilobytes.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use crate::style::Style;

/// What is gathered before it is handed on.
const GATHERED: usize = 64 * 1024;

/// JSON that is being written.
pub(crate) struct Paper<'a> {
    out: &'a mut dyn Write,
    style: &'a Style,
    depth: usize,
    gathered: Vec<u8>,
}

impl<'a> Paper<'a> {
    /// What is written first stands at a depth.
    pub(crate) fn new(out: &'a mut dyn Write, style: &'a Style, depth: usize) -> Self {
        Self {
            out,
            style,
            depth,
            gathered: Vec::with_capacity(GATHERED + 1024),
        }
    }

    /// That was all.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.hand_on()
    }

    /// Begins a list or an object with its bracket.
    pub(crate) fn open(&mut self, bracket: u8) {
        self.gathered.push(bracket);
        self.depth += 1;
    }

    /// Goes to where the next item begins.
    pub(crate) fn item(&mut self, first: bool) {
        if !first {
            self.gathered.extend_from_slice(self.style.comma.as_bytes());
        }
        self.break_line();
    }

    /// Goes to where the value of a member begins.
    pub(crate) fn member(&mut self, first: bool, name: &str) -> io::Result<()> {
        self.item(first);
        self.string(name)?;
        self.gathered.extend_from_slice(self.style.colon.as_bytes());
        Ok(())
    }

    /// Ends a list or an object; an empty one stands on one line.
    pub(crate) fn close(&mut self, bracket: u8, empty: bool) -> io::Result<()> {
        self.depth -= 1;
        if !empty {
            self.break_line();
        }
        self.gathered.push(bracket);
        self.hand_on_if_much()
    }

    fn break_line(&mut self) {
        if self.style.newline.is_empty() {
            return;
        }
        self.gathered
            .extend_from_slice(self.style.newline.as_bytes());
        for _ in 0..self.depth {
            self.gathered.extend_from_slice(self.style.unit.as_bytes());
        }
    }

    /// Writes a text.
    pub(crate) fn string(&mut self, text: &str) -> io::Result<()> {
        self.quote();
        self.escaped(text)?;
        self.quote();
        Ok(())
    }

    /// Begins or ends a text that comes in pieces.
    pub(crate) fn quote(&mut self) {
        self.gathered.push(b'"');
    }

    /// Writes a piece of a text.
    pub(crate) fn escaped(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.up_to_special(rest)?;
            let mut characters = rest.chars();
            if let Some(character) = characters.next() {
                self.character(character);
                rest = characters.as_str();
            }
        }
        self.hand_on_if_much()
    }

    /// Writes the beginning of a text that stands for itself; the rest begins with something that does not,
    /// or may end a line.
    pub(crate) fn up_to_special<'t>(&mut self, text: &'t str) -> io::Result<&'t str> {
        let bytes = text.as_bytes();
        let length = if self.style.ascii {
            find(bytes, is_special_to_ascii)
        } else {
            find(bytes, is_special)
        };
        self.plain(&bytes[..length])?;
        Ok(&text[length..])
    }

    /// Writes one character of a text.
    pub(crate) fn character(&mut self, character: char) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let short = match character {
            '"' => b'"',
            '\\' => b'\\',
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            '\0'..='\u{1f}' | '\u{7f}'.. if self.style.ascii || character < ' ' => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let digit = |shift: u16| DIGITS[usize::from(*unit >> shift & 15)];
                    let escape = [b'\\', b'u', digit(12), digit(8), digit(4), digit(0)];
                    self.gathered.extend_from_slice(&escape);
                }
                return;
            }
            _ => {
                let mut text = [0; 4];
                let text = character.encode_utf8(&mut text);
                self.gathered.extend_from_slice(text.as_bytes());
                return;
            }
        };
        self.gathered.extend_from_slice(&[b'\\', short]);
    }

    /// Writes bytes as base64. Of several pieces all but the last must be a multiple of three.
    pub(crate) fn base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut text = String::new();
        for part in bytes.chunks(GATHERED / 4 * 3) {
            text.clear();
            STANDARD.encode_string(part, &mut text);
            self.plain(text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes what needs no escapes, or is JSON already.
    pub(crate) fn plain(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= GATHERED {
            self.hand_on()?;
            return self.out.write_all(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        self.hand_on_if_much()
    }

    /// Writes a value; the members of objects in the order of their names.
    pub(crate) fn value(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Null => self.plain(b"null"),
            Value::Bool(true) => self.plain(b"true"),
            Value::Bool(false) => self.plain(b"false"),
            Value::Number(number) => self.plain(written(number).as_bytes()),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.open(b'[');
                for (at, item) in items.iter().enumerate() {
                    self.item(at == 0);
                    self.value(item)?;
                }
                self.close(b']', items.is_empty())
            }
            Value::Object(members) => self.object(members),
        }
    }

    /// As above.
    pub(crate) fn object(&mut self, members: &Map<String, Value>) -> io::Result<()> {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        self.open(b'{');
        for (at, (name, value)) in sorted.into_iter().enumerate() {
            self.member(at == 0, name)?;
            self.value(value)?;
        }
        self.close(b'}', members.is_empty())
    }

    fn hand_on_if_much(&mut self) -> io::Result<()> {
        if self.gathered.len() < GATHERED {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.out.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

/// JSON in a style of its own, written in this one. It comes in pieces, without blanks.
#[derive(Debug, Default)]
pub(crate) struct Relaid {
    in_string: bool,
    after_backslash: bool,
    /// A bracket was the last thing that came: what it begins may be empty.
    begun: bool,
}

impl Relaid {
    pub(crate) fn push(&mut self, text: &str, paper: &mut Paper<'_>) -> io::Result<()> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.string(&text[at..], paper)?;
                continue;
            }
            let byte = bytes[at];
            at += 1;
            let begun = std::mem::take(&mut self.begun);
            if matches!(byte, b'}' | b']') {
                paper.close(byte, begun)?;
                continue;
            }
            if begun {
                paper.item(true);
            }
            match byte {
                b'{' | b'[' => {
                    paper.open(byte);
                    self.begun = true;
                }
                b',' => paper.item(false),
                b':' => paper
                    .gathered
                    .extend_from_slice(paper.style.colon.as_bytes()),
                b'"' => {
                    paper.quote();
                    self.in_string = true;
                }
                other => paper.gathered.push(other),
            }
        }
        paper.hand_on_if_much()
    }

    /// Takes what is in a string, up to what ends it.
    fn string(&mut self, text: &str, paper: &mut Paper<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        if std::mem::take(&mut self.after_backslash) {
            paper.gathered.push(bytes[0]);
            return Ok(1);
        }
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        // There is nothing to be escaped in it, but for other alphabets.
        paper.escaped(&text[..end])?;
        match bytes.get(end) {
            None => return Ok(end),
            Some(b'"') => self.in_string = false,
            Some(_) => self.after_backslash = true,
        }
        paper.gathered.push(bytes[end]);
        Ok(end + 1)
    }
}

/// Whether a byte does not stand for itself in a string, or may begin what ends a line.
#[allow(clippy::needless_bitwise_bool)]
fn is_special(byte: u8) -> bool {
    // Without branches, so that a loop over many bytes becomes vector instructions.
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0xc2) | (byte == 0xe2)
}

/// The same, if nothing but ASCII may be written.
#[allow(clippy::needless_bitwise_bool)]
fn is_special_to_ascii(byte: u8) -> bool {
    is_special(byte) | (byte >= 0x7f)
}

/// Where the first byte of a sort is, or the length.
fn find(bytes: &[u8], is_it: impl Fn(u8) -> bool) -> usize {
    /// Enough for vectors, little enough to be looked at again byte by byte.
    const BLOCK: usize = 64;
    let mut start = 0;
    for block in bytes.chunks(BLOCK) {
        if block.iter().fold(false, |any, &byte| any | is_it(byte)) {
            let at = block.iter().position(|&byte| is_it(byte));
            return start + at.unwrap_or_default();
        }
        start += block.len();
    }
    bytes.len()
}

/// A number as Python writes it.
fn written(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => python(float),
        None => number.to_string(),
    }
}

/// The shortest digits that mean the number, as `repr` writes them.
fn python(float: f64) -> String {
    /// From here on, and below its counterpart, there is an exponent.
    const LARGE: i32 = 16;
    const SMALL: i32 = -4;
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (SMALL..LARGE).contains(&exponent) {
        // As many digits as it takes, and none after them.
        let plain = format!("{float}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_as_python_writes_them() {
        for (number, expected) in [
            (json!(0.0), "0.0"),
            (json!(-0.0), "-0.0"),
            (json!(1.0), "1.0"),
            (json!(0.1), "0.1"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(1.5e300), "1.5e+300"),
            (json!(0.0001), "0.0001"),
            (json!(0.00012), "0.00012"),
            (json!(0.00001), "1e-05"),
            (json!(5e-324), "5e-324"),
            (json!(123_456_789.123_456_78), "123456789.12345678"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(-7), "-7"),
        ] {
            let Value::Number(number) = number else {
                panic!("{number}");
            };
            assert_eq!(written(&number), expected);
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn on_paper(style: &Style, write: impl Fn(&mut Paper<'_>)) -> String {
        let mut out = Vec::new();
        let mut paper = Paper::new(&mut out, style, 2);
        write(&mut paper);
        paper.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn any_value_comes_back_in_any_style(
            value in tree(),
            style in 0..3_usize,
            cut in 1..9_usize,
        ) {
            let ascii = Style { ascii: true, comma: ", ".to_owned(), ..Style::compact() };
            let dos = Style { newline: "\r\n".to_owned(), unit: "\t".to_owned(), ..Style::default() };
            let style = &[Style::default(), ascii, dos][style];
            let text = on_paper(style, |paper| paper.value(&value).unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.clone());
            prop_assert!(!style.ascii || text.is_ascii());
            // And the same by way of a file.
            let compact = on_paper(&Style::compact(), |paper| paper.value(&value).unwrap());
            let relaid = on_paper(style, |paper| {
                let mut relaid = Relaid::default();
                let mut rest = compact.as_str();
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(rest.ceil_char_boundary(cut));
                    relaid.push(piece, paper).unwrap();
                    rest = after;
                }
            });
            prop_assert_eq!(relaid, text);
        }
    }
}
