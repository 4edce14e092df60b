//! Splits text into lines like Python's `str.splitlines(keepends=True)`.

/// Returns the lines of a text, each with its line ending.
pub(super) fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(first_line_end(rest).unwrap_or(rest.len()));
        rest = after;
        Some(line)
    })
}

/// Returns whether a character ends a line.
pub(super) fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns the end of the first terminated line, after its line ending.
fn first_line_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..]
            .iter()
            .position(|&byte| MAY_END_LINE[usize::from(byte)])?;
        match bytes[at..] {
            // The last two patterns are U+0085, U+2028 and U+2029.
            [b'\r', b'\n', ..] | [0xc2, 0x85, ..] => return Some(at + 2),
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => return Some(at + 3),
            [0xc2 | 0xe2, ..] => at += 1,
            _ => return Some(at + 1),
        }
    }
}

/// Bytes that end a line, or start a character that does.
const MAY_END_LINE: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b"\n\r\x0b\x0c\x1c\x1d\x1e\xc2\xe2";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};
