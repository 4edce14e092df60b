//! A JSON parser that shares no code with the crate, so that both are unlikely to have the same
//! bug.
//!
//! It builds a tree with byte ranges, and accepts what Python's `json` accepts.

use std::ops::Range;

/// A value and its byte range.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) key: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// The member called `name`; of several the last.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let found = self.members().iter().rev().find(|m| m.name == name);
        found.map(|member| &member.node)
    }

    pub(crate) fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn elements(&self) -> &[Self] {
        match &self.value {
            Value::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The names of the members, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.members().iter().map(|m| m.name.as_str()).collect()
    }

    /// A string, or strings joined.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Array(elements) => elements.iter().map(Self::text).collect(),
            _ => String::new(),
        }
    }

    pub(crate) fn raw<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.span.clone()]
    }
}

/// A notebook, parsed independently.
pub(crate) struct Document<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) top: Node,
}

impl<'b> Document<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> Self {
        let top = read(bytes)
            .unwrap_or_else(|error| panic!("not JSON: {error}\n{}", super::lossy(bytes)));
        Self { bytes, top }
    }

    /// The value of `cells`.
    pub(crate) fn array(&self) -> &Node {
        self.top.get("cells").unwrap()
    }

    pub(crate) fn cells(&self) -> &[Node] {
        self.array().elements()
    }

    pub(crate) fn kind(&self, cell: usize) -> String {
        self.cells()[cell].get("cell_type").unwrap().text()
    }

    pub(crate) fn source(&self, cell: usize) -> String {
        let source = self.cells()[cell].get("source");
        source.map(Node::text).unwrap_or_default()
    }

    /// The id of a cell, if it is a string.
    pub(crate) fn id(&self, cell: usize) -> Option<String> {
        let id = self.cells()[cell].get("id")?;
        matches!(id.value, Value::Text(_)).then(|| id.text())
    }

    pub(crate) fn raw(&self, cell: usize) -> &'b [u8] {
        self.cells()[cell].raw(self.bytes)
    }

    /// The bytes before and after the `cells` array.
    pub(crate) fn around(&self) -> (&'b [u8], &'b [u8]) {
        let span = &self.array().span;
        (&self.bytes[..span.start], &self.bytes[span.end..])
    }
}

/// Parses a whole document, with an optional byte order mark.
pub(crate) fn read(bytes: &[u8]) -> Result<Node, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let at = if bytes.starts_with("\u{feff}".as_bytes()) {
        3
    } else {
        0
    };
    let mut reader = Reader { bytes, text, at };
    let node = reader.node()?;
    reader.space();
    if reader.at < bytes.len() {
        return Err(format!("something follows at {}", reader.at));
    }
    Ok(node)
}

struct Reader<'b> {
    bytes: &'b [u8],
    text: &'b str,
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.next(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        self.space();
        if self.next() != byte {
            return Err(format!("expected {:?} at {}", char::from(byte), self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        self.next() == byte
    }

    fn node(&mut self) -> Result<Node, String> {
        self.space();
        let start = self.at;
        let value = match self.next() {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => Value::Text(self.string()?),
            _ => self.scalar()?,
        };
        Ok(Node {
            span: start..self.at,
            value,
        })
    }

    fn object(&mut self) -> Result<Value, String> {
        self.at += 1;
        let mut members = Vec::new();
        if !self.next_is(b'}') {
            loop {
                self.space();
                let start = self.at;
                if self.next() != b'"' {
                    return Err(format!("expected a name at {start}"));
                }
                let name = self.string()?;
                let key = start..self.at;
                self.expect(b':')?;
                let node = self.node()?;
                members.push(Member { name, key, node });
                if !self.next_is(b',') {
                    break;
                }
                self.at += 1;
            }
        }
        self.expect(b'}')?;
        Ok(Value::Object(members))
    }

    fn array(&mut self) -> Result<Value, String> {
        self.at += 1;
        let mut elements = Vec::new();
        if !self.next_is(b']') {
            loop {
                elements.push(self.node()?);
                if !self.next_is(b',') {
                    break;
                }
                self.at += 1;
            }
        }
        self.expect(b']')?;
        Ok(Value::Array(elements))
    }

    /// Decodes by way of UTF-16, unlike the crate: lone surrogates become U+FFFD.
    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut units: Vec<u16> = Vec::new();
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err("a string does not end".to_owned());
            };
            self.at += character.len_utf8();
            match character {
                '"' => break,
                '\\' => units.push(self.escape()?),
                '\0'..='\u{1f}' => return Err(format!("control character at {}", self.at)),
                _ => units.extend(character.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        Ok(String::from_utf16_lossy(&units))
    }

    fn escape(&mut self) -> Result<u16, String> {
        let letter = self.next();
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => letter.into(),
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'f' => 12,
            b'r' => 13,
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4);
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                self.at += 4;
                digits
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| format!("bad \\u before {}", self.at))?
            }
            _ => return Err(format!("bad escape before {}", self.at)),
        })
    }

    fn scalar(&mut self) -> Result<Value, String> {
        let start = self.at;
        while matches!(self.next(), b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.bytes[start..self.at]).unwrap();
        let known = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];
        if known.contains(&word) || is_number(word) {
            Ok(Value::Other)
        } else {
            Err(format!("expected a value at {start}, found {word:?}"))
        }
    }
}

fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let word = word.strip_prefix('-').unwrap_or(word);
    let (number, exponent) = match word.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (word, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}
