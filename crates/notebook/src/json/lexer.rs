//! Finds the ends of JSON values without building anything.
//!
//! [`Input`] checks UTF-8; the lexer sees only bytes. It accepts what Python's `json` accepts,
//! including `NaN` and `Infinity`, because notebooks are written with it. Nesting costs heap, not
//! stack, and is bounded.

use std::io;

use wide::u8x16;

use super::input::Input;

/// Deeper than any real notebook (Python stops near 1000), but low enough to stop an attack.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// Why the lexer stopped.
#[derive(Debug)]
pub(crate) enum LexError {
    Io(io::Error),
    /// `problem` is worded to follow "line 3, column 5: ".
    Syntax {
        problem: &'static str,
        offset: usize,
    },
    /// The input ends inside a value, as in a half-written file.
    UnexpectedEnd {
        offset: usize,
    },
}

impl From<io::Error> for Box<LexError> {
    fn from(error: io::Error) -> Self {
        Self::new(LexError::Io(error))
    }
}

/// Boxed, so that a success, the result of millions of calls, fits into a register.
pub(crate) type LexResult<T> = Result<T, Box<LexError>>;

pub(crate) struct Lexer<'r> {
    pub(crate) input: Input<'r>,
    /// Open containers of the value being skipped. Kept to reuse its memory.
    open: Vec<Container>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors travel boxed here, see `LexResult`"
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

    pub(crate) fn syntax_error(&self, problem: &'static str) -> Box<LexError> {
        Box::new(LexError::Syntax {
            problem,
            offset: self.offset(),
        })
    }

    fn unexpected_end(offset: usize) -> Box<LexError> {
        Box::new(LexError::UnexpectedEnd { offset })
    }

    /// The next byte that is not white space, without consuming it.
    #[inline]
    pub(crate) fn peek_token(&mut self) -> LexResult<Option<u8>> {
        match self.input.buffered_rest().first() {
            Some(&byte) if byte > b' ' => Ok(Some(byte)),
            _ => self.peek_after_space(),
        }
    }

    fn peek_after_space(&mut self) -> LexResult<Option<u8>> {
        loop {
            let ahead = self.input.buffered_rest();
            let skip = space_len(ahead);
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

    /// Like [`peek_token`](Lexer::peek_token), but the end of the input is an error.
    pub(crate) fn require_token(&mut self) -> LexResult<u8> {
        let token = self.peek_token()?;
        token.ok_or_else(|| Self::unexpected_end(self.offset()))
    }

    /// Consumes `byte` if it comes next.
    pub(crate) fn consume_if(&mut self, byte: u8) -> LexResult<bool> {
        let found = self.require_token()? == byte;
        if found {
            self.input.pos += 1;
        }
        Ok(found)
    }

    /// Consumes `byte`, or fails with `problem`.
    pub(crate) fn expect(&mut self, byte: u8, problem: &'static str) -> LexResult<()> {
        if self.consume_if(byte)? {
            Ok(())
        } else {
            Err(self.syntax_error(problem))
        }
    }

    /// After a member or element: `true` if another one follows, `false` at the closing byte.
    pub(crate) fn next_item(&mut self, close: u8) -> LexResult<bool> {
        let problem = if close == b'}' {
            "expected `,` or `}`"
        } else {
            "expected `,` or `]`"
        };
        match self.require_token()? {
            b',' => {
                self.input.pos += 1;
                Ok(true)
            }
            found if found == close => {
                self.input.pos += 1;
                Ok(false)
            }
            _ => Err(self.syntax_error(problem)),
        }
    }

    /// Skips a whole value of any kind.
    pub(crate) fn skip_value(&mut self) -> LexResult<()> {
        self.open.clear();
        loop {
            match self.require_token()? {
                b'{' => {
                    self.input.pos += 1;
                    if !self.consume_if(b'}')? {
                        self.push_container(Container::Object)?;
                        self.skip_key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.input.pos += 1;
                    if !self.consume_if(b']')? {
                        self.push_container(Container::Array)?;
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
                        if self.next_item(b'}')? {
                            self.skip_key()?;
                            break;
                        }
                    }
                    Some(Container::Array) => {
                        if self.next_item(b']')? {
                            break;
                        }
                    }
                }
                self.open.pop();
            }
        }
    }

    /// Skips the following strings of an array: most of the bytes of text outputs.
    fn skip_more_strings(&mut self) -> LexResult<()> {
        while let [b',', rest @ ..] = self.input.buffered_rest() {
            let space = space_len(rest);
            if rest.get(space) != Some(&b'"') {
                break;
            }
            self.input.pos += 1 + space;
            self.skip_string()?;
        }
        Ok(())
    }

    fn push_container(&mut self, container: Container) -> LexResult<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.syntax_error("values are nested too deeply (more than 10000 levels)"));
        }
        self.open.push(container);
        Ok(())
    }

    fn skip_key(&mut self) -> LexResult<()> {
        if self.require_token()? != b'"' {
            return Err(self.syntax_error("expected a member name in double quotes"));
        }
        self.skip_string()?;
        self.expect(b':', "expected `:`")
    }

    /// Skips a string token; the opening quote comes next.
    pub(crate) fn skip_string(&mut self) -> LexResult<()> {
        self.input.pos += 1;
        loop {
            let (taken, stop) = string_prefix(self.input.buffered_rest());
            self.input.pos += taken;
            match stop {
                StringStop::Quote => return Ok(()),
                StringStop::Escape => self.skip_escape()?,
                StringStop::BufferEnd => {
                    if !self.input.refill()? {
                        return Err(Self::unexpected_end(self.offset()));
                    }
                }
                StringStop::Control => {
                    return Err(
                        self.syntax_error("control character in a string (it must be escaped)")
                    );
                }
            }
        }
    }

    fn skip_escape(&mut self) -> LexResult<()> {
        let offset = self.offset();
        let ended = |ahead: &[u8]| Self::unexpected_end(offset + ahead.len());
        let ahead = self.input.peek_many(2)?;
        let &[_, letter, ..] = ahead else {
            return Err(ended(ahead));
        };
        let length = match letter {
            _ if is_short_escape(letter) => 2,
            b'u' => {
                let ahead = self.input.peek_many(6)?;
                if ahead[2..].iter().any(|b| !b.is_ascii_hexdigit()) {
                    return Err(self.syntax_error("`\\u` needs four hexadecimal digits"));
                }
                if ahead.len() < 6 {
                    return Err(ended(ahead));
                }
                6
            }
            _ => return Err(self.syntax_error("unknown escape in a string")),
        };
        self.input.pos += length;
        Ok(())
    }

    fn skip_scalar(&mut self) -> LexResult<()> {
        let word = match self.input.peek()? {
            Some(b'n') => "null",
            Some(b't') => "true",
            Some(b'f') => "false",
            Some(b'N') => "NaN",
            Some(b'I') => "Infinity",
            Some(b'-') if self.input.peek_many(2)?.get(1) == Some(&b'I') => "-Infinity",
            _ => return self.skip_number(),
        };
        let offset = self.offset();
        let ahead = self.input.peek_many(word.len())?;
        if ahead == word.as_bytes() {
            self.input.pos += word.len();
            return Ok(());
        }
        if word.as_bytes().starts_with(ahead) {
            return Err(Self::unexpected_end(offset + ahead.len()));
        }
        Err(self.syntax_error("expected a value"))
    }

    fn skip_number(&mut self) -> LexResult<()> {
        if self.input.peek()? == Some(b'-') {
            self.input.pos += 1;
        }
        match self.input.peek()? {
            Some(b'0') => self.input.pos += 1,
            Some(b'1'..=b'9') => self.skip_digits()?,
            Some(_) => return Err(self.syntax_error("expected a value")),
            None => return Err(Self::unexpected_end(self.offset())),
        }
        if self.input.peek()? == Some(b'.') {
            self.input.pos += 1;
            self.require_digits()?;
        }
        if matches!(self.input.peek()?, Some(b'e' | b'E')) {
            self.input.pos += 1;
            if matches!(self.input.peek()?, Some(b'+' | b'-')) {
                self.input.pos += 1;
            }
            self.require_digits()?;
        }
        Ok(())
    }

    fn require_digits(&mut self) -> LexResult<()> {
        match self.input.peek()? {
            Some(b'0'..=b'9') => self.skip_digits(),
            Some(_) => Err(self.syntax_error("expected a digit")),
            None => Err(Self::unexpected_end(self.offset())),
        }
    }

    fn skip_digits(&mut self) -> LexResult<()> {
        while let Some(b'0'..=b'9') = self.input.peek()? {
            self.input.pos += 1;
        }
        Ok(())
    }
}

/// Why [`string_prefix`] stopped.
enum StringStop {
    /// After the closing quote.
    Quote,
    /// Before an escape that needs an exact check.
    Escape,
    /// Before a control character.
    Control,
    /// At the end of the buffered bytes.
    BufferEnd,
}

/// The number of string bytes that can be consumed at once, and why it stops there.
///
/// A scan spends nearly all its time here: in lines of text with a few dozen bytes each, and in
/// base64 images with megabytes each. So it works in blocks and examines each block once.
fn string_prefix(bytes: &[u8]) -> (usize, StringStop) {
    const BLOCK: usize = 64;
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    // Everything before this offset is consumed: an escape may reach into the next block.
    let mut taken = 0;
    for (index, block) in blocks.iter().enumerate() {
        let start = index * BLOCK;
        let mut mask = special_mask(block);
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
    (at, StringStop::BufferEnd)
}

/// Length of the first escape; 0 if it is invalid or not completely buffered.
fn escape_length(bytes: &[u8]) -> usize {
    match bytes {
        [_, letter, ..] if is_short_escape(*letter) => 2,
        [_, b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
            6
        }
        _ => 0,
    }
}

/// One bit for each quote, backslash and control character in 64 bytes.
fn special_mask(block: &[u8; 64]) -> u64 {
    let (lanes, _) = block.as_chunks::<16>();
    let special_lanes = |lane: [u8; 16]| {
        let bytes = u8x16::from(lane);
        bytes.simd_eq(u8x16::splat(b'"'))
            | bytes.simd_eq(u8x16::splat(b'\\'))
            | bytes.simd_lt(u8x16::splat(0x20))
    };
    let masks = [
        special_lanes(lanes[0]),
        special_lanes(lanes[1]),
        special_lanes(lanes[2]),
        special_lanes(lanes[3]),
    ];
    // Most blocks of an image have none: one test for the whole block.
    let any = (masks[0] | masks[1]) | (masks[2] | masks[3]);
    if any.to_bitmask() == 0 {
        return 0;
    }
    let bits = |lane: u8x16| u64::from(lane.to_bitmask());
    bits(masks[0]) | bits(masks[1]) << 16 | bits(masks[2]) << 32 | bits(masks[3]) << 48
}

/// Whether a backslash and this letter are a complete escape.
fn is_short_escape(letter: u8) -> bool {
    // A table, because the branch predictor would miss half of the letters.
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

/// The number of leading white space bytes: mostly line breaks with indentation.
fn space_len(bytes: &[u8]) -> usize {
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

    fn unboxed(json: &[u8], chunk: usize) -> LexResult<usize> {
        struct ChunkedReader<'a>(&'a [u8], usize);
        impl io::Read for ChunkedReader<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(buffer.len());
                buffer[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut reader = ChunkedReader(json, chunk);
        let mut lexer = Lexer::new(Input::windowed(&mut reader));
        lexer.skip_value()?;
        Ok(lexer.offset())
    }

    #[test]
    fn value_end_does_not_depend_on_chunks() {
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
    fn string_end_is_found_at_any_offset() {
        for length in (0..140).chain([255, 256, 257]) {
            for at in 0..=length {
                for (escape, more) in [
                    ("\\n", 2),
                    ("\\\\", 2),
                    ("\\\"", 2),
                    ("\\u00e9", 6),
                    ("é", 2),
                ] {
                    let json = format!("\"{}{escape}{}\"", "a".repeat(at), "b".repeat(length - at));
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
    fn syntax_errors_have_exact_offsets() {
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
                Err(LexError::Syntax { offset, .. } | LexError::UnexpectedEnd { offset }) => offset,
                // `01` is the value `0` followed by another byte; the caller reports that.
                other => {
                    assert_eq!((json, other.ok()), ("01", Some(1)));
                    continue;
                }
            };
            assert_eq!(found, offset, "{json}");
        }
    }

    #[test]
    fn deep_nesting_is_rejected_without_deep_stack() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(matches!(
            skip(deep.as_bytes(), 4096),
            Err(LexError::Syntax { problem, .. }) if problem.contains("nested too deeply")
        ));
        let fine = "[".repeat(9_000) + &"]".repeat(9_000);
        assert_eq!(skip(fine.as_bytes(), 4096).ok(), Some(18_000));
    }
}
