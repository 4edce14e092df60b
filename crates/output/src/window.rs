//! The beginning and the end of a long text, with counts of what is between.
//!
//! The result depends on the text alone and not on how it was cut when it came.

use std::fmt;

use crate::size::{Bytes, Size, newlines};

/// Room for the line that says what is missing.
const ELISION_BYTES: usize = 80;

/// A text of which the first and the last bytes are held.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    most_head: usize,
    most_tail: usize,
    head: String,
    /// Ends with the last bytes; what is before them has not been thrown away yet, for speed.
    tail: String,
    /// How many bytes of `tail` count.
    tail_length: usize,
    /// Newlines of what does not count any more, between head and tail.
    gap: Size,
}

/// A text that fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The text, with a line that says what is missing if anything is.
    pub(crate) text: String,
    /// How much of the text is there; the line that says what is missing does not count.
    pub(crate) shown: Size,
    /// How much is missing.
    pub(crate) elided: Size,
}

impl Window {
    /// Holds at most so many bytes, so many of them from the beginning.
    pub(crate) fn new(most: usize, most_head: usize) -> Self {
        let most = most.max(2 * ELISION_BYTES);
        let most_head = most_head.min(most / 2);
        Self {
            most_head,
            most_tail: most - most_head - ELISION_BYTES,
            head: String::new(),
            tail: String::new(),
            tail_length: 0,
            gap: Size::default(),
        }
    }

    /// Appends text.
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        if self.tail_length == 0 && self.gap == Size::default() {
            let room = self.most_head.saturating_sub(self.head.len());
            let end = rest.floor_char_boundary(room);
            self.head.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        if rest.is_empty() {
            return;
        }
        // A little more than counts is held, and thrown away in one go.
        let most = 2 * self.capacity();
        if rest.len() >= self.capacity() {
            let start = rest.ceil_char_boundary(rest.len() - self.capacity());
            self.gap += self.counted() + Size::of_piece(&rest[..start]);
            self.tail.clear();
            self.tail.push_str(&rest[start..]);
            self.tail_length = self.tail.len();
            return;
        }
        self.tail.push_str(rest);
        self.tail_length += rest.len();
        if self.tail_length > self.capacity() {
            let start = self.tail.len() - self.tail_length;
            let keep = self
                .tail
                .ceil_char_boundary(self.tail.len() - self.capacity());
            self.gap += Size::of_piece(&self.tail[start..keep]);
            self.tail_length = self.tail.len() - keep;
        }
        if self.tail.len() > most {
            self.tail.drain(..self.tail.len() - self.tail_length);
        }
    }

    /// Bytes of the text in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.gap.bytes + self.tail_length as u64
    }

    /// The text in all; lines are newlines here.
    pub(crate) fn size(&self) -> Size {
        Size::of_piece(&self.head) + self.gap + self.counted()
    }

    /// The text's last character.
    pub(crate) fn last(&self) -> Option<char> {
        self.tail_text().chars().next_back().or_else(|| {
            self.head
                .chars()
                .next_back()
                .filter(|_| self.gap.bytes == 0)
        })
    }

    /// Takes the last line away, without its newline, if all of it is held, it ends with a
    /// newline, and it begins at or after a number of bytes.
    pub(crate) fn take_back(&mut self, floor: u64) -> Option<String> {
        let total = self.bytes();
        let gapped = self.gap.bytes > 0;
        let joined;
        let held = if self.tail_length > 0 && (gapped || newlines(self.tail_text().as_bytes()) > 1)
        {
            self.tail_text()
        } else if gapped {
            return None;
        } else {
            // Nothing is missing: head and tail are one text, of which the line may be in both.
            let before = &self.head.as_bytes()[..self.head.len().saturating_sub(1)];
            let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            joined = format!("{}{}", &self.head[start..], self.tail_text());
            &joined
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

    /// Replaces the bytes of a range that was pushed earlier. Tells whether they were held and
    /// there was room.
    pub(crate) fn replace(&mut self, start: u64, end: u64, text: &str) -> bool {
        let head = self.head.len() as u64;
        let tail_start = self.bytes() - self.tail_length as u64;
        let most = 4 * (self.most_head + self.most_tail);
        if self.head.len() + self.tail_length + text.len() > most {
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
        } else if start < head && self.gap.bytes == 0 {
            // Over the border between the two.
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

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.tail_length = 0;
        self.gap = Size::default();
    }

    /// The text as far as it fits.
    pub(crate) fn view(&self) -> View {
        let tail = self.tail_text();
        let most = self.most_head + self.most_tail + ELISION_BYTES;
        if self.gap.bytes == 0 && self.head.len() + tail.len() <= most {
            let text = format!("{}{tail}", self.head);
            return View {
                shown: whole(Size::of_piece(&text), &text),
                text,
                elided: Size::default(),
            };
        }
        // An update may have made either longer than it should be. What is cut is cut at lines.
        let middle;
        let (head, tail) = if self.gap.bytes == 0 {
            middle = format!("{}{tail}", self.head);
            let start = middle.ceil_char_boundary(middle.len() - self.most_tail);
            let end = middle.floor_char_boundary(self.most_head);
            (&middle[..end], &middle[start..])
        } else {
            let end = self.head.floor_char_boundary(self.most_head);
            let start = tail.ceil_char_boundary(tail.len().saturating_sub(self.most_tail));
            (&self.head[..end], &tail[start..])
        };
        let head = &head[..line_end(head)];
        let tail = &tail[line_start(tail)..];
        let size = self.size();
        let shown = Size::of_piece(head) + Size::of_piece(tail);
        let elided = size - shown;
        let mut text = String::with_capacity(head.len() + tail.len() + ELISION_BYTES);
        text.push_str(head);
        if !head.is_empty() && !head.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&Elision(elided).to_string());
        text.push_str(tail);
        View {
            shown: whole(shown, tail),
            text,
            elided,
        }
    }

    fn capacity(&self) -> usize {
        self.most_tail + ELISION_BYTES + (self.most_head - self.head.len().min(self.most_head))
    }

    fn tail_text(&self) -> &str {
        &self.tail[self.tail.len() - self.tail_length..]
    }

    fn counted(&self) -> Size {
        Size::of_piece(self.tail_text())
    }
}

/// Counts an unfinished last line.
pub(crate) fn whole(size: Size, text: &str) -> Size {
    Size {
        lines: size.lines + u64::from(!text.is_empty() && !text.ends_with('\n')),
        ..size
    }
}

/// Where the last whole line ends, unless that would leave too little.
fn line_end(text: &str) -> usize {
    match text.rfind('\n') {
        Some(at) if at + 1 >= text.len() / 2 => at + 1,
        _ => text.len(),
    }
}

/// Where the first whole line begins, unless that would leave too little.
fn line_start(text: &str) -> usize {
    match text.find('\n') {
        Some(at) if at < text.len() / 2 => at + 1,
        _ => 0,
    }
}

/// The line that says what is missing.
pub(crate) struct Elision(pub(crate) Size);

impl fmt::Display for Elision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Bytes(self.0.bytes);
        match self.0.lines {
            0 => writeln!(f, "[… {bytes} elided …]"),
            1 => writeln!(f, "[… 1 line ({bytes}) elided …]"),
            lines => writeln!(f, "[… {lines} lines ({bytes}) elided …]"),
        }
    }
}
