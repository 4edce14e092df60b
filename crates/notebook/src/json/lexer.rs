//! Walks over JSON without building anything.
//!
//! Accepts what Python's `json` accepts, `NaN` and `Infinity` included, because that is what
//! notebooks are written with. Nesting costs heap, not stack, and is bounded.

use std::io;

use super::input::Input;

/// Deeper than any real notebook (Python gives up near 1000), shallow enough to refuse an attack.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// Why the lexer stopped.
#[derive(Debug)]
pub(crate) enum LexError {
    Io(io::Error),
    /// `what` reads after "line 3, column 5: ".
    Syntax {
        what: &'static str,
        offset: usize,
    },
    NotUtf8 {
        offset: usize,
    },
    /// The input stopped before the value did: what a half-written file looks like.
    Ended {
        offset: usize,
    },
}

impl From<io::Error> for LexError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

type Lexed<T> = Result<T, LexError>;

pub(crate) struct Lexer<'r> {
    pub(crate) input: Input<'r>,
    /// Open containers of the value being skipped; kept to reuse its memory.
    open: Vec<Container>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

impl<'r> Lexer<'r> {
    pub(crate) fn new(input: Input<'r>) -> Self {
        Self {
            input,
            open: Vec::new(),
        }
    }

    pub(crate) fn offset(&self) -> usize {
        self.input.offset()
    }

    pub(crate) fn syntax(&self, what: &'static str) -> LexError {
        LexError::Syntax {
            what,
            offset: self.offset(),
        }
    }

    /// The next byte that is no white space, not taken.
    pub(crate) fn peek_token(&mut self) -> Lexed<Option<u8>> {
        loop {
            let ahead = self.input.ahead();
            let token = ahead
                .iter()
                .position(|b| !matches!(b, b' ' | b'\n' | b'\r' | b'\t'));
            if let Some(skip) = token {
                let byte = ahead[skip];
                self.input.pos += skip;
                return Ok(Some(byte));
            }
            self.input.pos += ahead.len();
            if !self.input.refill()? {
                return Ok(None);
            }
        }
    }

    /// Like [`peek_token`](Lexer::peek_token), where the input may not end.
    pub(crate) fn need_token(&mut self) -> Lexed<u8> {
        let token = self.peek_token()?;
        token.ok_or_else(|| LexError::Ended {
            offset: self.offset(),
        })
    }

    /// Takes `byte` if it comes next.
    pub(crate) fn take(&mut self, byte: u8) -> Lexed<bool> {
        let found = self.need_token()? == byte;
        if found {
            self.input.pos += 1;
        }
        Ok(found)
    }

    /// Takes `byte` or fails with `what`.
    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Lexed<()> {
        if self.take(byte)? {
            Ok(())
        } else {
            Err(self.syntax(what))
        }
    }

    /// After a member or element: `true` if another follows, `false` at the closing byte.
    pub(crate) fn another(&mut self, close: u8) -> Lexed<bool> {
        let what = if close == b'}' {
            "expected `,` or `}`"
        } else {
            "expected `,` or `]`"
        };
        match self.need_token()? {
            b',' => {
                self.input.pos += 1;
                Ok(true)
            }
            found if found == close => {
                self.input.pos += 1;
                Ok(false)
            }
            _ => Err(self.syntax(what)),
        }
    }

    /// Skips a whole value of any kind.
    pub(crate) fn skip_value(&mut self) -> Lexed<()> {
        self.open.clear();
        loop {
            match self.need_token()? {
                b'{' => {
                    self.input.pos += 1;
                    if !self.take(b'}')? {
                        self.enter(Container::Object)?;
                        self.skip_key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.input.pos += 1;
                    if !self.take(b']')? {
                        self.enter(Container::Array)?;
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                _ => self.skip_scalar()?,
            }
            loop {
                match self.open.last() {
                    None => return Ok(()),
                    Some(Container::Object) => {
                        if self.another(b'}')? {
                            self.skip_key()?;
                            break;
                        }
                    }
                    Some(Container::Array) => {
                        if self.another(b']')? {
                            break;
                        }
                    }
                }
                self.open.pop();
            }
        }
    }

    fn enter(&mut self, container: Container) -> Lexed<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.syntax("values are nested too deeply (more than 10000 levels)"));
        }
        self.open.push(container);
        Ok(())
    }

    fn skip_key(&mut self) -> Lexed<()> {
        if self.need_token()? != b'"' {
            return Err(self.syntax("expected a member name in double quotes"));
        }
        self.skip_string()?;
        self.expect(b':', "expected `:`")
    }

    /// Skips a string token; the opening quote comes next.
    pub(crate) fn skip_string(&mut self) -> Lexed<()> {
        self.input.pos += 1;
        loop {
            let ahead = self.input.ahead();
            let plain = plain_prefix(ahead);
            let next = ahead.get(plain).copied();
            self.input.pos += plain;
            match next {
                None => {
                    if !self.input.refill()? {
                        return Err(LexError::Ended {
                            offset: self.offset(),
                        });
                    }
                }
                Some(b'"') => {
                    self.input.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => self.skip_escape()?,
                Some(0x80..) => self.skip_non_ascii()?,
                Some(_) => {
                    return Err(self.syntax("control character in a string (it must be escaped)"));
                }
            }
        }
    }

    fn skip_escape(&mut self) -> Lexed<()> {
        // Nearly every line of a source or an output ends in this one.
        if self.input.ahead().starts_with(b"\\n") {
            self.input.pos += 2;
            return Ok(());
        }
        let offset = self.offset();
        let ended = |ahead: &[u8]| LexError::Ended {
            offset: offset + ahead.len(),
        };
        let ahead = self.input.look(2)?;
        let &[_, letter, ..] = ahead else {
            return Err(ended(ahead));
        };
        let length = match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let ahead = self.input.look(6)?;
                if ahead[2..].iter().any(|b| !b.is_ascii_hexdigit()) {
                    return Err(self.syntax("`\\u` needs four hexadecimal digits"));
                }
                if ahead.len() < 6 {
                    return Err(ended(ahead));
                }
                6
            }
            _ => return Err(self.syntax("unknown escape in a string")),
        };
        self.input.pos += length;
        Ok(())
    }

    /// Skips a run of non-ASCII characters, checking that they are UTF-8.
    fn skip_non_ascii(&mut self) -> Lexed<()> {
        let ahead = self.input.ahead();
        let run = ahead
            .iter()
            .position(u8::is_ascii)
            .map_or(ahead, |end| &ahead[..end]);
        match std::str::from_utf8(run) {
            Ok(_) => self.input.pos += run.len(),
            Err(error) if error.valid_up_to() > 0 => self.input.pos += error.valid_up_to(),
            Err(_) => {
                // Broken, or only cut by the end of what is loaded.
                let ahead = self.input.look(4)?;
                let valid = match std::str::from_utf8(ahead) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                if valid == 0 {
                    return Err(LexError::NotUtf8 {
                        offset: self.offset(),
                    });
                }
                self.input.pos += valid.min(leading_character(ahead));
            }
        }
        Ok(())
    }

    fn skip_scalar(&mut self) -> Lexed<()> {
        for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
            let offset = self.offset();
            let ahead = self.input.look(word.len())?;
            if ahead == word.as_bytes() {
                self.input.pos += word.len();
                return Ok(());
            }
            if ahead.len() < word.len() && word.as_bytes().starts_with(ahead) {
                return Err(LexError::Ended {
                    offset: offset + ahead.len(),
                });
            }
        }
        self.skip_number()
    }

    fn skip_number(&mut self) -> Lexed<()> {
        if self.input.peek()? == Some(b'-') {
            self.input.pos += 1;
        }
        match self.input.peek()? {
            Some(b'0') => self.input.pos += 1,
            Some(b'1'..=b'9') => self.skip_digits()?,
            Some(_) => return Err(self.syntax("expected a value")),
            None => {
                return Err(LexError::Ended {
                    offset: self.offset(),
                });
            }
        }
        if self.input.peek()? == Some(b'.') {
            self.input.pos += 1;
            self.need_digits()?;
        }
        if matches!(self.input.peek()?, Some(b'e' | b'E')) {
            self.input.pos += 1;
            if matches!(self.input.peek()?, Some(b'+' | b'-')) {
                self.input.pos += 1;
            }
            self.need_digits()?;
        }
        Ok(())
    }

    fn need_digits(&mut self) -> Lexed<()> {
        match self.input.peek()? {
            Some(b'0'..=b'9') => self.skip_digits(),
            Some(_) => Err(self.syntax("expected a digit")),
            None => Err(LexError::Ended {
                offset: self.offset(),
            }),
        }
    }

    fn skip_digits(&mut self) -> Lexed<()> {
        while let Some(b'0'..=b'9') = self.input.peek()? {
            self.input.pos += 1;
        }
        Ok(())
    }
}

/// Length of the character at the start of valid UTF-8.
fn leading_character(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    }
}

/// How many bytes go by before a quote, a backslash, a control character or a non-ASCII byte.
///
/// Short strings are looked at eight bytes at a time. Long ones, the base64 images that most large
/// notebooks consist of, go through a loop without early exit that the compiler turns into vector
/// instructions, at memory speed.
fn plain_prefix(bytes: &[u8]) -> usize {
    const LANE: usize = 64;
    const SHORT: usize = 64;
    let mut done = 0;
    if let Some(found) = first_special(&bytes[..bytes.len().min(SHORT)]) {
        return found;
    }
    done += bytes.len().min(SHORT);
    for chunk in bytes[done..].chunks_exact(LANE) {
        if chunk
            .iter()
            .fold(false, |found, &byte| found | is_special(byte))
        {
            break;
        }
        done += LANE;
    }
    first_special(&bytes[done..]).map_or(bytes.len(), |rest| done + rest)
}

#[expect(
    clippy::needless_bitwise_bool,
    reason = "no branches, so that it vectorises"
)]
fn is_special(byte: u8) -> bool {
    // As a signed number a non-ASCII byte is below zero: one comparison for both ends.
    (byte.cast_signed() < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Where the first special byte is.
fn first_special(bytes: &[u8]) -> Option<usize> {
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    let rest_start = bytes.len() - rest.len();
    for (index, word) in words.enumerate() {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let found = specials(word);
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let position = rest.iter().position(|&byte| is_special(byte));
    position.map(|at| rest_start + at)
}

/// A word whose lowest set bit is in the first special byte of `word`. Bytes above that one may be
/// marked wrongly, by the borrow of a subtraction.
fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES * 0x80;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zero_bytes(word ^ (ONES * 0x22));
    let backslashes = zero_bytes(word ^ (ONES * 0x5c));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls | word) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(json: &[u8], chunk: usize) -> Result<usize, LexError> {
        struct Slowly<'a>(&'a [u8], usize);
        impl io::Read for Slowly<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(buffer.len());
                buffer[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut reader = Slowly(json, chunk);
        let mut lexer = Lexer::new(Input::window(&mut reader));
        lexer.skip_value()?;
        Ok(lexer.offset())
    }

    #[test]
    fn values_end_where_they_end_however_the_bytes_arrive() {
        let long = format!("\"{}é\\u00e9\\n𝄞\"", "x".repeat(300));
        for json in [
            "null",
            "true",
            "false",
            "NaN",
            "Infinity",
            "-Infinity",
            "0",
            "-0.5e+10",
            "1e400",
            "12345678901234567890123",
            "\"\"",
            "\"é𝄞\\\"\\ud83d\"",
            "[]",
            "{}",
            "[[],{},[1,2]]",
            "{\"a\": [1, {\"b\": null}], \"c\" : \"d\"}",
            &long,
        ] {
            for chunk in [1, 2, 3, 1000] {
                let padded = format!("{json} ");
                let end = skip(padded.as_bytes(), chunk);
                assert_eq!(end.ok(), Some(json.len()), "{json} by {chunk}");
            }
        }
    }

    #[test]
    fn special_bytes_are_found_wherever_they_are() {
        for length in [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200] {
            let plain = vec![b'a'; length];
            assert_eq!(plain_prefix(&plain), length);
            for at in 0..length {
                for special in 0..=255 {
                    let mut bytes = plain.clone();
                    bytes[at] = special;
                    let expected = if is_special(special) { at } else { length };
                    assert_eq!(
                        plain_prefix(&bytes),
                        expected,
                        "{special} at {at} of {length}"
                    );
                }
            }
        }
        assert_eq!(plain_prefix(b"abc\x7f\x21\x5b\x5d\x23~}\x20!\"\\"), 12);
    }

    #[test]
    fn broken_values_are_refused_where_they_break() {
        for (json, offset) in [
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("{'a': 1}", 1),
            ("[1 2]", 3),
            ("nul", 3),
            ("01", 0),
            ("-", 1),
            ("1.", 2),
            ("\"\\x\"", 1),
            ("\"\\u12\"", 1),
            ("\"a", 2),
            ("\"\t\"", 1),
            ("// no", 0),
            ("[", 1),
            ("{\"a\":", 5),
        ] {
            let found = match skip(json.as_bytes(), 1) {
                Err(
                    LexError::Syntax { offset, .. }
                    | LexError::Ended { offset }
                    | LexError::NotUtf8 { offset },
                ) => offset,
                // `01` is the value `0` with something after it; whoever called sees that.
                other => {
                    assert_eq!((json, other.ok()), ("01", Some(1)));
                    continue;
                }
            };
            assert_eq!(found, offset, "{json}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_found_even_when_cut() {
        for (bytes, offset) in [
            (&b"\"caf\xe9\""[..], 4),
            (b"\"\xf0\x9d\x84\"", 1),
            (b"\"\xc3\xa9\xff\"", 3),
            (b"\"\xed\xa0\xbd\"", 1),
        ] {
            for chunk in [1, 2, 1000] {
                let found = skip(bytes, chunk);
                assert!(
                    matches!(found, Err(LexError::NotUtf8 { offset: at }) if at == offset),
                    "{bytes:?} by {chunk}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_hundred_thousand_levels_are_refused_without_a_deep_stack() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(matches!(
            skip(deep.as_bytes(), 4096),
            Err(LexError::Syntax { what, .. }) if what.contains("nested too deeply")
        ));
        let fine = "[".repeat(9_000) + &"]".repeat(9_000);
        assert_eq!(skip(fine.as_bytes(), 4096).ok(), Some(18_000));
    }
}
