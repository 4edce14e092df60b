//! [`Tolerance`]: numbers that differ a little count as equal.

use serde_json::Value;

/// The relative difference up to which two numbers are equal. Close to zero, a difference up to its square is none.
///
/// Whole numbers are compared exactly: they are counts, ids and sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance(f64);

impl Tolerance {
    /// Exact comparison.
    pub const NONE: Self = Self(0.0);

    /// A tolerance from 0 up to, but not including, 1.
    pub fn new(relative: f64) -> Option<Self> {
        (0.0..1.0).contains(&relative).then_some(Self(relative))
    }

    /// Whether numbers are compared exactly.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether two numbers are equal.
    pub fn accepts(self, one: f64, other: f64) -> bool {
        let difference = (one - other).abs();
        let size = one.abs().max(other.abs());
        // Infinite numbers have no difference.
        one.total_cmp(&other).is_eq()
            || difference.is_finite()
                && (difference <= self.0 * size || difference <= self.0 * self.0)
    }

    /// Whether two lines have the same text around numbers that are equal. Spaces that align columns do not matter.
    pub(super) fn accepts_lines(self, one: &str, other: &str) -> bool {
        if self.is_none() {
            return false;
        }
        let (mut ones, mut others) = (Tokens::new(one), Tokens::new(other));
        loop {
            match (ones.next(), others.next()) {
                (None, None) => return true,
                (Some(Token::Text(a)), Some(Token::Text(b))) if a == b => {}
                (Some(Token::Space), Some(Token::Space)) => {}
                (Some(Token::Number(a)), Some(Token::Number(b))) if self.accepts_tokens(a, b) => {}
                _ => return false,
            }
        }
    }

    fn accepts_tokens(self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let is_whole = |text: &str| !text.contains(['.', 'e', 'E']);
        if is_whole(one) && is_whole(other) {
            return false;
        }
        match (one.parse(), other.parse()) {
            (Ok(one), Ok(other)) => self.accepts(one, other),
            _ => false,
        }
    }

    /// Whether two JSON values are the same up to their numbers.
    pub(super) fn accepts_json(self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            _ if one == other => true,
            _ if self.is_none() => false,
            (Value::Number(a), Value::Number(b)) => {
                let is_whole = !a.is_f64() && !b.is_f64();
                !is_whole
                    && a.as_f64()
                        .zip(b.as_f64())
                        .is_some_and(|(a, b)| self.accepts(a, b))
            }
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.accepts_json(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                let same = |(key, value): (&String, &Value)| {
                    b.get(key)
                        .is_some_and(|other| self.accepts_json(value, other))
                };
                a.len() == b.len() && a.iter().all(same)
            }
            _ => false,
        }
    }
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A number with its sign.
    Number(&'a str),
    /// A run of spaces.
    Space,
    Text(&'a str),
}

/// The tokens of a line, without the spaces that only align numbers: at the start of the line before a number, and
/// after a number before a closing sign or the end.
struct Tokens<'a> {
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    after_number: bool,
}

impl<'a> Tokens<'a> {
    fn new(line: &'a str) -> Self {
        let unpadded = line.trim_start_matches(' ');
        let rest = if number_length(unpadded, None).is_some() {
            unpadded
        } else {
            line
        };
        Self {
            rest,
            before: None,
            after_number: false,
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(length);
        self.before = token.chars().next_back();
        self.rest = rest;
        token
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let after_number = std::mem::take(&mut self.after_number);
        let first = self.rest.chars().next()?;
        if let Some(length) = number_length(self.rest, self.before) {
            self.after_number = true;
            return Some(Token::Number(self.take(length)));
        }
        if first == ' ' {
            let unpadded = self.rest.trim_start_matches(' ');
            let is_padding = unpadded.is_empty() || unpadded.starts_with([',', ']', ')', '|']);
            self.take(self.rest.len() - unpadded.len());
            if after_number && is_padding {
                return self.next();
            }
            return Some(Token::Space);
        }
        // A word, or one other character.
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match self.rest.find(|c: char| !is_word(c) && c != '.') {
            _ if !is_word(first) => first.len_utf8(),
            Some(0) | None => self.rest.len(),
            Some(end) => end,
        };
        Some(Token::Text(self.take(length)))
    }
}

/// The length of the number at the start of the text; `before` is the character before it. Digits in words, versions
/// (`1.2.3`) and dates (`2026-01-05`) are no numbers.
fn number_length(text: &str, before: Option<char>) -> Option<usize> {
    let continues_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    if before.is_some_and(continues_word) {
        return None;
    }
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let count = bytes[from.min(bytes.len())..].iter();
        count.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    // `3-2` and `a-1` have no negative number.
    if at > 0 && before.is_some_and(|c| matches!(c, ')' | ']')) {
        return None;
    }
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    // A complex number ends with `j`.
    let rest = text[at..].strip_prefix('j').unwrap_or(&text[at..]);
    let mut rest = rest.chars();
    let ends = match rest.next() {
        None => true,
        Some('.') => !rest.next().is_some_and(char::is_alphanumeric),
        Some('-') => !rest.next().is_some_and(|c| c.is_ascii_digit()),
        Some(next) => !continues_word(next),
    };
    ends.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(one: &str, other: &str) -> bool {
        let tolerance = Tolerance::new(1e-6).unwrap();
        tolerance.accepts_lines(one, other) && tolerance.accepts_lines(other, one)
    }

    #[test]
    fn numbers_are_compared_with_tolerance_and_the_rest_exactly() {
        for (one, other) in [
            ("loss 0.3000001", "loss 0.3"),
            ("array([1.        , 2.00000001])", "array([1., 2.])"),
            ("[ 1.         -2.        ]", "[ 1. -2.]"),
            ("  9.9999999  a", " 10.000000  a"),
            ("(1+2.0000000001j)", "(1+2j)"),
            ("<td>0.1</td>", "<td>0.10000000001</td>"),
            ("1e-17", "-3.2e-16"),
            ("100.0 %", "99.99999999 %"),
            ("It was 0.5.", "It was 0.50000001."),
        ] {
            assert!(accepts(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("loss 0.31", "loss 0.3"),
            ("loss 0.3000001", "Loss 0.3"),
            ("1000000 rows", "1000001 rows"),
            ("1.2.3", "1.2.30000001"),
            ("x1.0", "x1.0000000001"),
            ("2026-01-05", "2026-01-06"),
            ("1.0 2.0", "1.0"),
            ("a 1.0", "a1.0000000001"),
            ("1.0 x", "1.0000000001x"),
            ("1.0", "-1.0"),
            ("nan", "1.0"),
            ("1e999", "-1e999"),
        ] {
            assert!(!accepts(one, other), "{one} {other}");
        }
    }

    #[test]
    fn numbers_in_json_are_compared_with_tolerance() {
        let tolerance = Tolerance::new(1e-6).unwrap();
        let stored = serde_json::json!({"y": [1.0, {"z": 2}], "name": "0.1"});
        let close = serde_json::json!({"y": [1.000_000_1, {"z": 2}], "name": "0.1"});
        assert!(tolerance.accepts_json(&stored, &close));
        assert!(!Tolerance::NONE.accepts_json(&stored, &close));
        for other in [
            serde_json::json!({"y": [1.1, {"z": 2}], "name": "0.1"}),
            serde_json::json!({"y": [1.0, {"z": 3}], "name": "0.1"}),
            serde_json::json!({"y": [1.0], "name": "0.1"}),
            serde_json::json!({"y": [1.0, {"z": 2}], "name": "0.10000000001"}),
        ] {
            assert!(!tolerance.accepts_json(&stored, &other), "{other}");
        }
    }
}
