//! Text of a cell, as far as it must be looked at: literals to write, assignments to find.

use std::collections::HashSet;

/// Characters that a line of source should not contain as they are: they would break the line in some
/// program, be invisible, or turn the order of the characters around.
pub(super) fn is_troublesome(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Writes text between double quotes. `special` are the characters besides `"` and `\` that get a
/// backslash; `escape` writes those that cannot stand as they are.
pub(super) fn quote(out: &mut String, text: &str, special: &[char], escape: fn(&mut String, char)) {
    out.push('"');
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            _ if special.contains(&character) => {
                out.push('\\');
                out.push(character);
            }
            _ if is_troublesome(character) => escape(out, character),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// `\u1234`, or `\U00012345` beyond that.
pub(super) fn escape_long(out: &mut String, character: char) {
    let code = u32::from(character);
    out.push_str(&if code <= 0xffff {
        format!("\\u{code:04x}")
    } else {
        format!("\\U{code:08x}")
    });
}

/// `\u1234`, or two of them beyond that.
pub(super) fn escape_halves(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Writes items with a separator between them.
pub(super) fn join<T, E>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T) -> Result<(), E>,
) -> Result<(), E> {
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        write(out, item)?;
    }
    Ok(())
}

/// The shortest digits that give back the same number, always with a point or an exponent.
pub(super) fn float(number: f64) -> String {
    format!("{number:?}")
}

/// The words that stand to the left of an assignment in some line: before `=` or `<-`, or after `->`.
pub(super) fn assigned(source: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    for line in source.lines() {
        if let Some(at) = line.find("->") {
            found.extend(words(&line[at + 2..]));
        }
        if let Some(at) = line.rfind("<-") {
            found.extend(words(&line[..at]));
        }
        if let Some(at) = last_equals(line) {
            found.extend(words(&line[..at]));
        }
    }
    found
}

/// Where the last `=` is that stands outside of brackets and quotes and compares nothing.
fn last_equals(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut found = None;
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, &byte) in bytes.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        if let Some(end) = quote {
            if byte == end && before != Some(b'\\') {
                quote = None;
            }
            continue;
        }
        match byte {
            b'"' | b'\'' => quote = Some(byte),
            b'#' => break,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'=' if depth == 0 => {
                let compares = bytes.get(at + 1) == Some(&b'=')
                    || matches!(before, Some(b'=' | b'!' | b'<' | b'>'));
                if !compares {
                    found = Some(at);
                }
            }
            _ => {}
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || "_.$!".contains(character)))
        .filter(|word| !word.is_empty())
}
