//! Shortening of tracebacks and prompts.

use crate::event::Traceback;

impl Traceback {
    /// Largest size of each part of an exception that a kernel may send, in bytes. The message of an exception can be data.
    pub const SIZE_MAX: usize = 1024 * 1024;

    /// Shortens each part to `limit` bytes. Keeps the first frames, and more of the last ones.
    #[must_use]
    pub fn shortened(mut self, limit: usize) -> Self {
        shorten_text(&mut self.name, limit);
        shorten_text(&mut self.value, limit);
        shorten_lines(&mut self.lines, limit);
        self
    }
}

fn shorten_lines(lines: &mut Vec<String>, limit: usize) {
    let memory_size = |line: &String| line.len() + size_of::<String>();
    if lines.iter().map(memory_size).sum::<usize>() <= limit {
        return;
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
