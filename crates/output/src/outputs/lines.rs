//! Text → lines with their ends, where Python's `str.splitlines` splits it.

/// The lines of a text, each with its end.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(end(rest).unwrap_or(rest.len()));
        rest = after;
        Some(line)
    })
}

/// Whether a character ends a line.
pub(super) fn is_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Where the first line ends that has an end, behind that.
fn end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..]
            .iter()
            .position(|&byte| MAY_END[usize::from(byte)])?;
        match bytes[at..] {
            // The last two are U+0085, and U+2028 and the one after it.
            [b'\r', b'\n', ..] | [0xc2, 0x85, ..] => return Some(at + 2),
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => return Some(at + 3),
            [0xc2 | 0xe2, ..] => at += 1,
            _ => return Some(at + 1),
        }
    }
}

/// Bytes that end a line, or begin a character that does.
const MAY_END: [bool; 256] = {
    let mut table = [false; 256];
    let ends = b"\n\r\x0b\x0c\x1c\x1d\x1e\xc2\xe2";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};
