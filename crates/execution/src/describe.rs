//! Short descriptions of cells and exceptions, for messages.

/// Number of characters of the message of an exception.
const MESSAGE_MAX: usize = 200;

/// Names cells by their indexes, which ascend: `cell 3`, `cells 0-4, 7`.
pub fn describe_cells(indexes: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let range = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let list: Vec<String> = ranges.iter().map(range).collect();
    let plural = if indexes.len() == 1 { "" } else { "s" };
    format!("cell{plural} {}", list.join(", "))
}

/// The name of an exception and the first line of its message.
pub fn describe_exception(name: &str, message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty());
    let Some(line) = line else {
        return name.to_owned();
    };
    let mut text: String = format!("{name}: {line}")
        .chars()
        .take(MESSAGE_MAX)
        .collect();
    if text.len() < name.len() + ": ".len() + line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_cells_are_a_range() {
        assert_eq!(describe_cells(&[3]), "cell 3");
        assert_eq!(describe_cells(&[0, 1, 2, 4, 6, 7]), "cells 0-2, 4, 6, 7");
    }

    #[test]
    fn an_exception_is_one_line() {
        assert_eq!(describe_exception("KeyError", "'b'"), "KeyError: 'b'");
        assert_eq!(describe_exception("AssertionError", ""), "AssertionError");
        assert_eq!(describe_exception("E", "\n first\nsecond"), "E: first");
        let long = describe_exception("E", &"x".repeat(500));
        assert_eq!(long.chars().count(), MESSAGE_MAX + 1);
    }
}
