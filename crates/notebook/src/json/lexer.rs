//! Walks over JSON without building anything.
//!
//! That the bytes are UTF-8 is checked by [`Input`] as they come in; here they are only bytes.
//! Accepts what Python's `json` accepts, `NaN` and `Infinity` included, because that is what
//! notebooks are written with. Nesting costs heap, not stack, and is bounded.

use std::io;

use wide::u8x16;

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
    /// The input stopped before the value did: what a half-written file looks like.
    Ended {
        offset: usize,
    },
}

impl From<io::Error> for Box<LexError> {
    fn from(error: io::Error) -> Self {
        Self::new(LexError::Io(error))
    }
}

/// Boxed, so that a success, which is all there is millions of times, fits into a register.
pub(crate) type Lexed<T> = Result<T, Box<LexError>>;

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

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors travel boxed here, see `Lexed`"
)]
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

    pub(crate) fn syntax(&self, what: &'static str) -> Box<LexError> {
        Box::new(LexError::Syntax {
            what,
            offset: self.offset(),
        })
    }

    fn ended(offset: usize) -> Box<LexError> {
        Box::new(LexError::Ended { offset })
    }

    /// The next byte that is no white space, not taken.
    #[inline]
    pub(crate) fn peek_token(&mut self) -> Lexed<Option<u8>> {
        match self.input.loaded_ahead().first() {
            Some(&byte) if byte > b' ' => Ok(Some(byte)),
            _ => self.peek_behind_space(),
        }
    }

    fn peek_behind_space(&mut self) -> Lexed<Option<u8>> {
        loop {
            let ahead = self.input.loaded_ahead();
            let skip = space_prefix(ahead);
            let token = ahead.get(skip).copied();
            self.input.pos += skip;
            if token.is_some() {
                return Ok(token);
            }
            if !self.input.refill()? {
                return Ok(None);
            }
        }
    }

    /// Like [`peek_token`](Lexer::peek_token), where the input may not end.
    pub(crate) fn need_token(&mut self) -> Lexed<u8> {
        let token = self.peek_token()?;
        token.ok_or_else(|| Self::ended(self.offset()))
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
                b'"' => {
                    self.skip_string()?;
                    if self.open.last() == Some(&Container::Array) {
                        self.skip_more_strings()?;
                    }
                }
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

    /// Skips the strings that follow one in an array: most of what outputs with text consist of.
    fn skip_more_strings(&mut self) -> Lexed<()> {
        while let [b',', rest @ ..] = self.input.loaded_ahead() {
            let space = space_prefix(rest);
            if rest.get(space) != Some(&b'"') {
                break;
            }
            self.input.pos += 1 + space;
            self.skip_string()?;
        }
        Ok(())
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
            let (taken, stop) = string_prefix(self.input.loaded_ahead());
            self.input.pos += taken;
            match stop {
                StringStop::Quote => return Ok(()),
                StringStop::Escape => self.skip_escape()?,
                StringStop::Loaded => {
                    if !self.input.refill()? {
                        return Err(Self::ended(self.offset()));
                    }
                }
                StringStop::Control => {
                    return Err(self.syntax("control character in a string (it must be escaped)"));
                }
            }
        }
    }

    fn skip_escape(&mut self) -> Lexed<()> {
        let offset = self.offset();
        let ended = |ahead: &[u8]| Self::ended(offset + ahead.len());
        let ahead = self.input.look(2)?;
        let &[_, letter, ..] = ahead else {
            return Err(ended(ahead));
        };
        let length = match letter {
            _ if is_short_escape(letter) => 2,
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

    fn skip_scalar(&mut self) -> Lexed<()> {
        let word = match self.input.peek()? {
            Some(b'n') => "null",
            Some(b't') => "true",
            Some(b'f') => "false",
            Some(b'N') => "NaN",
            Some(b'I') => "Infinity",
            Some(b'-') if self.input.look(2)?.get(1) == Some(&b'I') => "-Infinity",
            _ => return self.skip_number(),
        };
        let offset = self.offset();
        let ahead = self.input.look(word.len())?;
        if ahead == word.as_bytes() {
            self.input.pos += word.len();
            return Ok(());
        }
        if word.as_bytes().starts_with(ahead) {
            return Err(Self::ended(offset + ahead.len()));
        }
        Err(self.syntax("expected a value"))
    }

    fn skip_number(&mut self) -> Lexed<()> {
        if self.input.peek()? == Some(b'-') {
            self.input.pos += 1;
        }
        match self.input.peek()? {
            Some(b'0') => self.input.pos += 1,
            Some(b'1'..=b'9') => self.skip_digits()?,
            Some(_) => return Err(self.syntax("expected a value")),
            None => return Err(Self::ended(self.offset())),
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
            None => Err(Self::ended(self.offset())),
        }
    }

    fn skip_digits(&mut self) -> Lexed<()> {
        while let Some(b'0'..=b'9') = self.input.peek()? {
            self.input.pos += 1;
        }
        Ok(())
    }
}

/// Why [`string_prefix`] stopped.
enum StringStop {
    /// The closing quote was taken.
    Quote,
    /// An escape that takes a closer look comes next.
    Escape,
    /// A control character comes next.
    Control,
    /// Nothing more is loaded.
    Loaded,
}

/// How many bytes of the inside of a string can be taken in one go, and what stops them.
///
/// Nearly all the time of a scan is spent here: in lines of text, a few dozen bytes each, and in
/// base64 images, megabytes each. So it goes by blocks, and each block is looked at once.
fn string_prefix(bytes: &[u8]) -> (usize, StringStop) {
    const BLOCK: usize = 64;
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    // Everything before this is taken: an escape may reach into the next block.
    let mut taken = 0;
    for (index, block) in blocks.iter().enumerate() {
        let start = index * BLOCK;
        let mut mask = specials(block);
        if taken > start {
            mask &= u64::MAX << (taken - start);
        }
        while mask != 0 {
            let bit = mask.trailing_zeros() as usize;
            let at = start + bit;
            match block[bit] {
                b'"' => return (at + 1, StringStop::Quote),
                b'\\' => match escape_length(&bytes[at..]) {
                    0 => return (at, StringStop::Escape),
                    length => {
                        taken = at + length;
                        mask &= u64::MAX
                            .checked_shl(u32::try_from(bit + length).unwrap_or(64))
                            .unwrap_or(0);
                    }
                },
                _ => return (at, StringStop::Control),
            }
        }
    }
    let mut at = taken.max(bytes.len() - tail.len());
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return (at + 1, StringStop::Quote),
            b'\\' => match escape_length(&bytes[at..]) {
                0 => return (at, StringStop::Escape),
                length => at += length,
            },
            0..0x20 => return (at, StringStop::Control),
            _ => at += 1,
        }
    }
    (at, StringStop::Loaded)
}

/// Length of the escape that comes first; 0 if it is wrong, or not all of it is loaded.
fn escape_length(bytes: &[u8]) -> usize {
    match bytes {
        [_, letter, ..] if is_short_escape(*letter) => 2,
        [_, b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
            6
        }
        _ => 0,
    }
}

/// A bit for each quote, backslash and control character among 64 bytes.
fn specials(block: &[u8; 64]) -> u64 {
    let (lanes, _) = block.as_chunks::<16>();
    let marks = |lane: [u8; 16]| {
        let bytes = u8x16::from(lane);
        bytes.simd_eq(u8x16::splat(b'"'))
            | bytes.simd_eq(u8x16::splat(b'\\'))
            | bytes.simd_lt(u8x16::splat(0x20))
    };
    let marks = [
        marks(lanes[0]),
        marks(lanes[1]),
        marks(lanes[2]),
        marks(lanes[3]),
    ];
    // Most blocks of an image have none: one question for all of it.
    let any = (marks[0] | marks[1]) | (marks[2] | marks[3]);
    if any.to_bitmask() == 0 {
        return 0;
    }
    let bits = |lane: u8x16| u64::from(lane.to_bitmask());
    bits(marks[0]) | bits(marks[1]) << 16 | bits(marks[2]) << 32 | bits(marks[3]) << 48
}

/// Whether a backslash and this letter are a whole escape.
fn is_short_escape(letter: u8) -> bool {
    // A table, because a jump for each letter would be guessed wrong half of the time.
    const SHORT: [bool; 256] = {
        let mut short = [false; 256];
        let letters = b"\"\\/bfnrt";
        let mut index = 0;
        while index < letters.len() {
            short[letters[index] as usize] = true;
            index += 1;
        }
        short
    };
    SHORT[usize::from(letter)]
}

/// How many bytes of white space come first: line breaks with their indentation, mostly.
fn space_prefix(bytes: &[u8]) -> usize {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let (lanes, tail) = bytes.as_chunks::<16>();
    for (index, lane) in lanes.iter().enumerate() {
        let lane = u8x16::from(*lane);
        let spaces = lane.simd_eq(u8x16::splat(b' '))
            | lane.simd_eq(u8x16::splat(b'\n'))
            | lane.simd_eq(u8x16::splat(b'\r'))
            | lane.simd_eq(u8x16::splat(b'\t'));
        let length = spaces.to_bitmask().trailing_ones() as usize;
        if length < 16 {
            return index * 16 + length;
        }
    }
    let rest = tail.iter().take_while(|&&byte| is_space(byte)).count();
    bytes.len() - tail.len() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(json: &[u8], chunk: usize) -> Result<usize, LexError> {
        unboxed(json, chunk).map_err(|error| *error)
    }

    fn unboxed(json: &[u8], chunk: usize) -> Lexed<usize> {
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
    fn strings_end_wherever_they_end() {
        for length in (0..140).chain([255, 256, 257]) {
            for at in 0..=length {
                for (what, more) in [
                    ("\\n", 2),
                    ("\\\\", 2),
                    ("\\\"", 2),
                    ("\\u00e9", 6),
                    ("é", 2),
                ] {
                    let json = format!("\"{}{what}{}\"", "a".repeat(at), "b".repeat(length - at));
                    assert_eq!(json.len(), length + more + 2);
                    assert_eq!(skip(json.as_bytes(), 100).ok(), Some(json.len()), "{json}");
                    assert!(
                        skip(&json.as_bytes()[..json.len() - 1], 100).is_err(),
                        "{json}"
                    );
                }
                let control = format!("\"{}\u{1}{}\"", "a".repeat(at), "b".repeat(length - at));
                let found = skip(control.as_bytes(), 1000);
                assert!(
                    matches!(found, Err(LexError::Syntax { offset, .. }) if offset == at + 1),
                    "{control:?}: {found:?}"
                );
            }
        }
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
                Err(LexError::Syntax { offset, .. } | LexError::Ended { offset }) => offset,
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
