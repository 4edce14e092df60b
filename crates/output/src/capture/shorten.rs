//! Exceptions and other text that must not be long.

use crate::event::Traceback;

/// An exception of which everything is short: the first frames, and more of the last ones.
pub(super) fn traceback(mut traceback: Traceback, most: usize) -> Traceback {
    shorten(&mut traceback.name, most);
    shorten(&mut traceback.value, most);
    let lines = &mut traceback.lines;
    let cost = |line: &String| line.len() + size_of::<String>();
    if lines.iter().map(cost).sum::<usize>() <= most {
        return traceback;
    }
    for line in lines.iter_mut() {
        shorten(line, most / 8);
    }
    let fitting = |lines: &mut dyn Iterator<Item = &String>, most: usize| {
        let mut left = most;
        lines
            .take_while(|line| {
                let fits = cost(line) <= left;
                left = left.saturating_sub(cost(line));
                fits
            })
            .count()
    };
    let head = fitting(&mut lines.iter(), most / 4);
    let tail = fitting(&mut lines[head..].iter().rev(), most / 2);
    let elided = lines.len() - head - tail;
    if elided > 0 {
        let note = format!("[… {elided} frames elided …]");
        lines.splice(head..lines.len() - tail, [note]);
        lines.shrink_to_fit();
    }
    traceback
}

/// A text, cut if it is longer.
pub(super) fn shorten(text: &mut String, most: usize) {
    const MARK: &str = "…";
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(MARK.len())));
        text.push_str(MARK);
        text.shrink_to_fit();
    }
}
