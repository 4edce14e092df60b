//! Source text: writes literals and finds assignments.

use std::collections::HashSet;

/// Whether a line of source should contain a character only in escaped form: it would break the line in some
/// programs, be invisible, or reverse the order of characters.
pub(super) fn needs_escape(character: char) -> bool {
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

/// Writes text between double quotes. Characters in `special` get a backslash, as `"` and `\` do; `escape` writes the
/// characters that [`needs_escape`] names.
pub(super) fn write_quoted(
    out: &mut String,
    text: &str,
    special: &[char],
    escape: fn(&mut String, char),
) {
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
            _ if needs_escape(character) => escape(out, character),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes `\u1234`, or `\U00012345` above U+FFFF.
pub(super) fn escape_code_point(out: &mut String, character: char) {
    let code = u32::from(character);
    out.push_str(&if code <= 0xffff {
        format!("\\u{code:04x}")
    } else {
        format!("\\U{code:08x}")
    });
}

/// Writes `\u1234`, or a surrogate pair of these above U+FFFF.
pub(super) fn escape_utf16(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Writes items separated by `, `.
pub(super) fn write_joined<T, E>(
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

/// The shortest digits that are read back as the same number, always with a point or an exponent.
pub(super) fn format_float(number: f64) -> String {
    format!("{number:?}")
}

/// The words on the target side of an assignment in any line: before `=` or `<-`, or after `->`.
pub(super) fn assigned_names(source: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    for line in source.lines() {
        if let Some(at) = line.find("->") {
            found.extend(identifiers(&line[at + 2..]));
        }
        if let Some(at) = line.rfind("<-") {
            found.extend(identifiers(&line[..at]));
        }
        if let Some(at) = last_assignment(line) {
            found.extend(identifiers(&line[..at]));
        }
    }
    found
}

/// Position of the last `=` in a line that is outside of brackets and quotes and not part of a comparison.
fn last_assignment(line: &str) -> Option<usize> {
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
                let is_comparison = bytes.get(at + 1) == Some(&b'=')
                    || matches!(before, Some(b'=' | b'!' | b'<' | b'>'));
                if !is_comparison {
                    found = Some(at);
                }
            }
            _ => {}
        }
    }
    found
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || "_.$!".contains(character)))
        .filter(|word| !word.is_empty())
}
