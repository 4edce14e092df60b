//! Text → lines with their ends, where Python's `str.splitlines` splits it.

/// The lines of a text, each with its end.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(line_length(rest));
        rest = after;
        Some(line)
    })
}

/// The length of the first line with its end.
pub(super) fn line_length(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\r' if characters.peek().is_some_and(|&(_, next)| next == '\n') => return at + 2,
            '\n'
            | '\r'
            | '\u{b}'
            | '\u{c}'
            | '\u{1c}'..='\u{1e}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}' => return at + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
