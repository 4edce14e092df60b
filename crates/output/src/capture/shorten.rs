//! Shortening of tracebacks and prompts.

use crate::event::Traceback;

/// Shortens each part of a traceback to `limit` bytes. Keeps the first frames, and more of the last ones.
pub(super) fn shorten_traceback(mut traceback: Traceback, limit: usize) -> Traceback {
    shorten_text(&mut traceback.name, limit);
    shorten_text(&mut traceback.value, limit);
    let lines = &mut traceback.lines;
    let memory_size = |line: &String| line.len() + size_of::<String>();
    if lines.iter().map(memory_size).sum::<usize>() <= limit {
        return traceback;
    }
    for line in lines.iter_mut() {
        shorten_text(line, limit / 8);
    }
    let fitting_lines = |lines: &mut dyn Iterator<Item = &String>, limit: usize| {
        let mut left = limit;
        lines
            .take_while(|line| {
                let fits = memory_size(line) <= left;
                left = left.saturating_sub(memory_size(line));
                fits
            })
            .count()
    };
    let head = fitting_lines(&mut lines.iter(), limit / 4);
    let tail = fitting_lines(&mut lines[head..].iter().rev(), limit / 2);
    let elided = lines.len() - head - tail;
    if elided > 0 {
        let note = format!("[… {elided} frames elided …]");
        lines.splice(head..lines.len() - tail, [note]);
        lines.shrink_to_fit();
    }
    traceback
}

/// Shortens a text to `limit` bytes, with an ellipsis.
pub(super) fn shorten_text(text: &mut String, limit: usize) {
    const ELLIPSIS: &str = "…";
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(ELLIPSIS.len())));
        text.push_str(ELLIPSIS);
        text.shrink_to_fit();
    }
}
