//! The beginning and the end of a long text, with the size of the part between them.
//!
//! The result only depends on the text, not on the chunks.

use std::fmt;

use crate::size::{ByteSize, TextSize, count_newlines};

/// Bytes reserved for the elision line.
const ELISION_SIZE: usize = 80;

/// Holds the first and the last bytes of a text.
#[derive(Clone, Debug)]
pub(crate) struct HeadTail {
    head_limit: usize,
    tail_limit: usize,
    head: String,
    /// Ends with the last bytes. Older bytes before them are removed in batches, for speed.
    tail: String,
    /// Number of bytes of `tail` that count.
    tail_length: usize,
    /// Size of the dropped text between head and tail; lines are newlines.
    elided: TextSize,
}

/// A bounded text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadTailText {
    /// The text, with an elision line if text was cut.
    pub(crate) text: String,
    /// Size of the text, without the elision line.
    pub(crate) shown: TextSize,
    /// Size of the text that was cut.
    pub(crate) elided: TextSize,
    /// Bytes of `text` before the elision line; all of them if nothing was cut.
    head_length: usize,
    /// Index in `text` after the elision line.
    tail_index: usize,
    /// Offset of the tail in the complete text.
    tail_offset: u64,
}

impl HeadTailText {
    /// Returns the index in `text` of an offset in the complete text. An offset that was cut is the end of the elision
    /// line.
    pub(crate) fn index(&self, offset: u64) -> usize {
        if offset <= self.head_length as u64 {
            return usize::try_from(offset).unwrap_or(self.head_length);
        }
        let after = usize::try_from(offset.saturating_sub(self.tail_offset)).unwrap_or(0);
        (self.tail_index + after).min(self.text.len())
    }
}

impl HeadTail {
    /// Creates a buffer for at most `limit` bytes, of which `head_limit` are the beginning.
    pub(crate) fn new(limit: usize, head_limit: usize) -> Self {
        let limit = limit.max(2 * ELISION_SIZE);
        let head_limit = head_limit.min(limit / 2);
        Self {
            head_limit,
            tail_limit: limit - head_limit - ELISION_SIZE,
            head: String::new(),
            tail: String::new(),
            tail_length: 0,
            elided: TextSize::default(),
        }
    }

    /// Appends text.
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        if self.tail_length == 0 && self.elided == TextSize::default() {
            let room = self.head_limit.saturating_sub(self.head.len());
            let end = rest.floor_char_boundary(room);
            self.head.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        if rest.is_empty() {
            return;
        }
        // Up to twice the capacity is held, so that old bytes are dropped in batches.
        let limit = 2 * self.tail_capacity();
        if rest.len() >= self.tail_capacity() {
            let start = rest.ceil_char_boundary(rest.len() - self.tail_capacity());
            self.elided += self.tail_size() + TextSize::from_chunk(&rest[..start]);
            self.tail.clear();
            self.tail.push_str(&rest[start..]);
            self.tail_length = self.tail.len();
            return;
        }
        self.tail.push_str(rest);
        self.tail_length += rest.len();
        if self.tail_length > self.tail_capacity() {
            let start = self.tail.len() - self.tail_length;
            let keep = self
                .tail
                .ceil_char_boundary(self.tail.len() - self.tail_capacity());
            self.elided += TextSize::from_chunk(&self.tail[start..keep]);
            self.tail_length = self.tail.len() - keep;
        }
        if self.tail.len() > limit {
            self.tail.drain(..self.tail.len() - self.tail_length);
        }
    }

    /// Returns the size of the complete text, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.elided.bytes + self.tail_length as u64
    }

    /// Returns the size of the complete text; lines are newlines.
    pub(crate) fn size(&self) -> TextSize {
        TextSize::from_chunk(&self.head) + self.elided + self.tail_size()
    }

    /// Returns the last character of the text.
    pub(crate) fn last_char(&self) -> Option<char> {
        self.tail_text().chars().next_back().or_else(|| {
            self.head
                .chars()
                .next_back()
                .filter(|_| self.elided.bytes == 0)
        })
    }

    /// Removes the last line and returns it without its newline. The line must be held completely, end with a
    /// newline, and start at or after offset `floor`.
    pub(crate) fn pop_line(&mut self, floor: u64) -> Option<String> {
        let total = self.bytes();
        let gapped = self.elided.bytes > 0;
        let line_in_both;
        let held = if self.tail_length > 0
            && (gapped || count_newlines(self.tail_text().as_bytes()) > 1)
        {
            self.tail_text()
        } else if gapped {
            return None;
        } else {
            // Nothing was dropped: the line may be in both head and tail.
            let before = &self.head.as_bytes()[..self.head.len().saturating_sub(1)];
            let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            line_in_both = format!("{}{}", &self.head[start..], self.tail_text());
            &line_in_both
        };
        let line = held.strip_suffix('\n')?;
        let start = match line.rfind('\n') {
            Some(at) => at + 1,
            None if gapped => return None,
            None => 0,
        };
        let line = line[start..].to_owned();
        let length = line.len() + 1;
        if total - (length as u64) < floor {
            return None;
        }
        let from_tail = length.min(self.tail_length);
        self.tail.truncate(self.tail.len() - from_tail);
        self.tail_length -= from_tail;
        self.head.truncate(self.head.len() - (length - from_tail));
        Some(line)
    }

    /// Replaces a byte range of the text. Returns `false` if the range is not held or the new text is too
    /// long.
    pub(crate) fn replace(&mut self, start: u64, end: u64, text: &str) -> bool {
        let head = self.head.len() as u64;
        let tail_start = self.bytes() - self.tail_length as u64;
        let limit = 4 * (self.head_limit + self.tail_limit);
        if self.head.len() + self.tail_length + text.len() > limit {
            return false;
        }
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        if end <= head {
            self.head.replace_range(index(start)..index(end), text);
            true
        } else if start >= tail_start {
            let skip = (self.tail.len() - self.tail_length) as u64;
            let range = index(start - tail_start + skip)..index(end - tail_start + skip);
            self.tail.replace_range(range.clone(), text);
            self.tail_length = self.tail_length + text.len() - range.len();
            true
        } else if start < head && self.elided.bytes == 0 {
            // The range crosses the boundary between head and tail.
            let tail_end = index(end - head);
            let skip = self.tail.len() - self.tail_length;
            self.tail.replace_range(skip..skip + tail_end, "");
            self.tail_length -= tail_end;
            self.head.replace_range(index(start).., text);
            true
        } else {
            false
        }
    }

    /// Removes all text.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.tail_length = 0;
        self.elided = TextSize::default();
    }

    /// Returns the bounded text.
    pub(crate) fn bounded(&self) -> HeadTailText {
        let tail = self.tail_text();
        let limit = self.head_limit + self.tail_limit + ELISION_SIZE;
        if self.elided.bytes == 0 && self.head.len() + tail.len() <= limit {
            let text = format!("{}{tail}", self.head);
            return HeadTailText {
                shown: with_last_line(TextSize::from_chunk(&text), &text),
                elided: TextSize::default(),
                head_length: text.len(),
                tail_index: text.len(),
                tail_offset: text.len() as u64,
                text,
            };
        }
        // An update may have exceeded the limits. The text is cut at line boundaries.
        let text_in_both;
        let (head, tail) = if self.elided.bytes == 0 {
            text_in_both = format!("{}{tail}", self.head);
            let start = text_in_both.ceil_char_boundary(text_in_both.len() - self.tail_limit);
            let end = text_in_both.floor_char_boundary(self.head_limit);
            (&text_in_both[..end], &text_in_both[start..])
        } else {
            let end = self.head.floor_char_boundary(self.head_limit);
            let start = tail.ceil_char_boundary(tail.len().saturating_sub(self.tail_limit));
            (&self.head[..end], &tail[start..])
        };
        let head = &head[..last_line_end(head)];
        let tail = &tail[first_line_start(tail)..];
        let size = self.size();
        let shown = TextSize::from_chunk(head) + TextSize::from_chunk(tail);
        let elided = size - shown;
        let mut text = String::with_capacity(head.len() + tail.len() + ELISION_SIZE);
        text.push_str(head);
        if !head.is_empty() && !head.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&ElisionLine(elided).to_string());
        let tail_index = text.len();
        text.push_str(tail);
        HeadTailText {
            shown: with_last_line(shown, tail),
            text,
            elided,
            head_length: head.len(),
            tail_index,
            tail_offset: size.bytes - tail.len() as u64,
        }
    }

    fn tail_capacity(&self) -> usize {
        self.tail_limit + ELISION_SIZE + (self.head_limit - self.head.len().min(self.head_limit))
    }

    fn tail_text(&self) -> &str {
        &self.tail[self.tail.len() - self.tail_length..]
    }

    fn tail_size(&self) -> TextSize {
        TextSize::from_chunk(self.tail_text())
    }
}

/// Counts an unfinished last line.
pub(crate) fn with_last_line(size: TextSize, text: &str) -> TextSize {
    TextSize {
        lines: size.lines + u64::from(!text.is_empty() && !text.ends_with('\n')),
        ..size
    }
}

/// Returns the end of the last complete line, unless too little text would remain.
fn last_line_end(text: &str) -> usize {
    match text.rfind('\n') {
        Some(at) if at + 1 >= text.len() / 2 => at + 1,
        _ => text.len(),
    }
}

/// Returns the start of the first complete line, unless too little text would remain.
fn first_line_start(text: &str) -> usize {
    match text.find('\n') {
        Some(at) if at < text.len() / 2 => at + 1,
        _ => 0,
    }
}

/// The line that states how much text was cut.
#[derive(Clone, Copy, Debug)]
pub struct ElisionLine(pub TextSize);

impl fmt::Display for ElisionLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = ByteSize(self.0.bytes);
        match self.0.lines {
            0 => writeln!(f, "[… {bytes} elided …]"),
            1 => writeln!(f, "[… 1 line ({bytes}) elided …]"),
            lines => writeln!(f, "[… {lines} lines ({bytes}) elided …]"),
        }
    }
}
