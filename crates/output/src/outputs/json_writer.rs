//! [`JsonWriter`]: writes JSON in a given style, incrementally, with a buffer of 64 KiB.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use crate::json_style::JsonStyle;

/// Bytes buffered before a write.
const BUFFER_SIZE: usize = 64 * 1024;

/// Writes JSON incrementally.
pub(crate) struct JsonWriter<'a> {
    out: &'a mut dyn Write,
    style: &'a JsonStyle,
    depth: usize,
    buffer: Vec<u8>,
}

impl<'a> JsonWriter<'a> {
    /// Creates a writer whose first value is at `depth` levels of indentation.
    pub(crate) fn new(out: &'a mut dyn Write, style: &'a JsonStyle, depth: usize) -> Self {
        Self {
            out,
            style,
            depth,
            buffer: Vec::with_capacity(BUFFER_SIZE + 1024),
        }
    }

    /// Flushes the buffer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }

    /// Starts a list or an object with its bracket.
    pub(crate) fn open(&mut self, bracket: u8) {
        self.buffer.push(bracket);
        self.depth += 1;
    }

    /// Starts the next item.
    pub(crate) fn start_item(&mut self, first: bool) {
        if !first {
            self.buffer.extend_from_slice(self.style.comma.as_bytes());
        }
        self.break_line();
    }

    /// Starts the next member, up to its value.
    pub(crate) fn start_member(&mut self, first: bool, name: &str) -> io::Result<()> {
        self.start_item(first);
        self.write_string(name)?;
        self.buffer.extend_from_slice(self.style.colon.as_bytes());
        Ok(())
    }

    /// Ends a list or an object. An empty one stays on one line.
    pub(crate) fn close(&mut self, bracket: u8, empty: bool) -> io::Result<()> {
        self.depth -= 1;
        if !empty {
            self.break_line();
        }
        self.buffer.push(bracket);
        self.flush_if_full()
    }

    fn break_line(&mut self) {
        if self.style.newline.is_empty() {
            return;
        }
        self.buffer.extend_from_slice(self.style.newline.as_bytes());
        for _ in 0..self.depth {
            self.buffer.extend_from_slice(self.style.indent.as_bytes());
        }
    }

    /// Writes a string.
    pub(crate) fn write_string(&mut self, text: &str) -> io::Result<()> {
        self.quote();
        self.write_escaped(text)?;
        self.quote();
        Ok(())
    }

    /// Starts or ends a string that is written in chunks.
    pub(crate) fn quote(&mut self) {
        self.buffer.push(b'"');
    }

    /// Writes a chunk of a string.
    pub(crate) fn write_escaped(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.write_plain_prefix(rest)?;
            let mut characters = rest.chars();
            if let Some(character) = characters.next() {
                self.write_char(character);
                rest = characters.as_str();
            }
        }
        self.flush_if_full()
    }

    /// Writes the part of a string that needs no escapes. Returns the rest, which starts with a character
    /// that may need an escape or end a line.
    pub(crate) fn write_plain_prefix<'t>(&mut self, text: &'t str) -> io::Result<&'t str> {
        let bytes = text.as_bytes();
        let length = if self.style.ascii {
            find_byte(bytes, is_special_to_ascii)
        } else {
            find_byte(bytes, is_special)
        };
        self.write_raw(&bytes[..length])?;
        Ok(&text[length..])
    }

    /// Writes one character of a string.
    pub(crate) fn write_char(&mut self, character: char) {
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
                    self.buffer.extend_from_slice(&escape);
                }
                return;
            }
            _ => {
                let mut text = [0; 4];
                let text = character.encode_utf8(&mut text);
                self.buffer.extend_from_slice(text.as_bytes());
                return;
            }
        };
        self.buffer.extend_from_slice(&[b'\\', short]);
    }

    /// Writes a chunk of bytes as base64. All chunks but the last must have a multiple of three bytes.
    pub(crate) fn write_base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut text = String::new();
        for part in bytes.chunks(BUFFER_SIZE / 4 * 3) {
            text.clear();
            STANDARD.encode_string(part, &mut text);
            self.write_raw(text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes text that needs no escapes, or is JSON already.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= BUFFER_SIZE {
            self.flush()?;
            return self.out.write_all(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.flush_if_full()
    }

    /// Writes a value, with the members of objects sorted by name.
    pub(crate) fn write_value(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Null => self.write_raw(b"null"),
            Value::Bool(true) => self.write_raw(b"true"),
            Value::Bool(false) => self.write_raw(b"false"),
            Value::Number(number) => self.write_raw(format_number(number).as_bytes()),
            Value::String(text) => self.write_string(text),
            Value::Array(items) => {
                self.open(b'[');
                for (at, item) in items.iter().enumerate() {
                    self.start_item(at == 0);
                    self.write_value(item)?;
                }
                self.close(b']', items.is_empty())
            }
            Value::Object(members) => self.write_object(members),
        }
    }

    /// Writes an object, with its members sorted by name.
    pub(crate) fn write_object(&mut self, members: &Map<String, Value>) -> io::Result<()> {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        self.open(b'{');
        for (at, (name, value)) in sorted.into_iter().enumerate() {
            self.start_member(at == 0, name)?;
            self.write_value(value)?;
        }
        self.close(b'}', members.is_empty())
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < BUFFER_SIZE {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Converts compact JSON, which arrives in chunks, to the style of a writer.
#[derive(Debug, Default)]
pub(crate) struct JsonRelayout {
    in_string: bool,
    after_backslash: bool,
    /// The last byte opened a list or an object, which may be empty.
    after_bracket: bool,
}

impl JsonRelayout {
    pub(crate) fn push(&mut self, text: &str, writer: &mut JsonWriter<'_>) -> io::Result<()> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.push_string(&text[at..], writer)?;
                continue;
            }
            let byte = bytes[at];
            at += 1;
            let after_bracket = std::mem::take(&mut self.after_bracket);
            if matches!(byte, b'}' | b']') {
                writer.close(byte, after_bracket)?;
                continue;
            }
            if after_bracket {
                writer.start_item(true);
            }
            match byte {
                b'{' | b'[' => {
                    writer.open(byte);
                    self.after_bracket = true;
                }
                b',' => writer.start_item(false),
                b':' => writer
                    .buffer
                    .extend_from_slice(writer.style.colon.as_bytes()),
                b'"' => {
                    writer.quote();
                    self.in_string = true;
                }
                other => writer.buffer.push(other),
            }
        }
        writer.flush_if_full()
    }

    /// Writes a part of a string, up to its end or an escape. Returns its length in bytes.
    fn push_string(&mut self, text: &str, writer: &mut JsonWriter<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        if std::mem::take(&mut self.after_backslash) {
            writer.buffer.push(bytes[0]);
            return Ok(1);
        }
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        // The text is already escaped, except for non-ASCII characters.
        writer.write_escaped(&text[..end])?;
        match bytes.get(end) {
            None => return Ok(end),
            Some(b'"') => self.in_string = false,
            Some(_) => self.after_backslash = true,
        }
        writer.buffer.push(bytes[end]);
        Ok(end + 1)
    }
}

/// Returns whether a byte may need an escape, or start a line ending.
#[allow(clippy::needless_bitwise_bool)]
fn is_special(byte: u8) -> bool {
    // Without branches, so that the compiler vectorises a loop over many bytes.
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0xc2) | (byte == 0xe2)
}

/// As [`is_special`], for ASCII output.
#[allow(clippy::needless_bitwise_bool)]
fn is_special_to_ascii(byte: u8) -> bool {
    is_special(byte) | (byte >= 0x7f)
}

/// Returns the position of the first matching byte, or the length.
fn find_byte(bytes: &[u8], matches: impl Fn(u8) -> bool) -> usize {
    /// Large enough for vector code, small enough to search again byte by byte.
    const BLOCK_SIZE: usize = 64;
    let mut start = 0;
    for block in bytes.chunks(BLOCK_SIZE) {
        if block.iter().fold(false, |any, &byte| any | matches(byte)) {
            let at = block.iter().position(|&byte| matches(byte));
            return start + at.unwrap_or_default();
        }
        start += block.len();
    }
    bytes.len()
}

/// Formats a number as Python does.
fn format_number(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => format_float(float),
        None => number.to_string(),
    }
}

/// Formats the shortest digits that denote the number, as Python's `repr` does.
fn format_float(float: f64) -> String {
    /// Exponents outside this range are written in scientific notation.
    const EXPONENT_MAX: i32 = 16;
    const EXPONENT_MIN: i32 = -4;
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (EXPONENT_MIN..EXPONENT_MAX).contains(&exponent) {
        // `Display` writes the shortest decimal digits.
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
    fn numbers_match_python() {
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
            assert_eq!(format_number(&number), expected);
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

    fn written_json(style: &JsonStyle, write: impl Fn(&mut JsonWriter<'_>)) -> String {
        let mut out = Vec::new();
        let mut writer = JsonWriter::new(&mut out, style, 2);
        write(&mut writer);
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn every_value_round_trips_in_every_style(
            value in tree(),
            style in 0..3_usize,
            chunk_size in 1..9_usize,
        ) {
            let ascii = JsonStyle { ascii: true, comma: ", ".to_owned(), ..JsonStyle::compact() };
            let dos = JsonStyle { newline: "\r\n".to_owned(), indent: "\t".to_owned(), ..JsonStyle::default() };
            let style = &[JsonStyle::default(), ascii, dos][style];
            let text = written_json(style, |writer| writer.write_value(&value).unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.clone());
            prop_assert!(!style.ascii || text.is_ascii());
            // The same through a compact file.
            let compact = written_json(&JsonStyle::compact(), |writer| writer.write_value(&value).unwrap());
            let relayout = written_json(style, |writer| {
                let mut relayout = JsonRelayout::default();
                let mut rest = compact.as_str();
                while !rest.is_empty() {
                    let (chunk, after) = rest.split_at(rest.ceil_char_boundary(chunk_size));
                    relayout.push(chunk, writer).unwrap();
                    rest = after;
                }
            });
            prop_assert_eq!(relayout, text);
        }
    }
}
