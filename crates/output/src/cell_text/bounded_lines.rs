//! Clean lines, bounded in number and length, with ranges that display updates can replace.

use std::collections::VecDeque;
use std::ops::Range;

use super::TruncatedLines;
use crate::clean::{self, LineEnd, Screen};
use crate::display_text::DisplayText;
use crate::head_tail::{HeadTail, HeadTailText};
use crate::limits::Limits;
use crate::size::TextSize;

const ELLIPSIS: &str = "…";

/// Maximum number of tracked displays: more than fit into a bounded text.
const DISPLAYS_MAX: usize = 4096;

/// A bounded text, with the sizes of the parts that were cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundedText {
    pub(crate) text: String,
    pub(crate) total: TextSize,
    pub(crate) shown: TextSize,
    pub(crate) elided: TextSize,
    pub(crate) long_lines: TruncatedLines,
    /// Where the displays with an output number are in `text`.
    pub(crate) displays: Vec<(usize, Range<usize>)>,
}

impl BoundedText {
    /// Returns whether any text was cut.
    pub(crate) fn is_truncated(&self) -> bool {
        self.elided.bytes > 0 || self.long_lines.lines > 0
    }
}

/// The lines of a cell.
#[derive(Clone, Debug)]
pub(crate) struct BoundedLines {
    head_tail: HeadTail,
    /// Maximum length of a line, in bytes.
    line_limit: usize,
    long_lines: TruncatedLines,
    /// Text cut from updated displays.
    elided: TextSize,
    /// The ranges of displays with an id or an output number.
    displays: VecDeque<DisplayRange>,
    /// Offset before which lines cannot be rewritten.
    rewrite_floor: u64,
}

#[derive(Clone, Debug)]
struct DisplayRange {
    id: Option<String>,
    /// Number of the output, if its position in the text matters.
    output: Option<usize>,
    start: u64,
    end: u64,
}

impl BoundedLines {
    pub(crate) fn new(limits: &Limits) -> Self {
        // The screen drops the end of a line longer than `line_characters`, so a larger limit would make the
        // result depend on the chunks.
        let line_limit = match limits.line_bytes {
            0 => limits.line_characters,
            bytes => bytes.min(limits.line_characters),
        };
        Self {
            head_tail: HeadTail::new(limits.inline_bytes, limits.head_bytes),
            line_limit: line_limit.max(2 * ELLIPSIS.len()),
            long_lines: TruncatedLines::default(),
            elided: TextSize::default(),
            displays: VecDeque::new(),
            rewrite_floor: 0,
        }
    }

    /// Adds text on separate lines.
    pub(crate) fn push_block(
        &mut self,
        text: &DisplayText<'_>,
        screen: &mut Screen,
        id: Option<&str>,
        output: Option<usize>,
    ) {
        if self.head_tail.last_char().is_some_and(|last| last != '\n') {
            self.head_tail.push("\n");
        }
        let start = self.head_tail.bytes();
        self.rewrite_floor = start;
        text.for_each_chunk(|text| screen.push(text, self));
        screen.flush_with_newline(self);
        self.rewrite_floor = self.head_tail.bytes();
        if id.is_some() || output.is_some() {
            if self.displays.len() == DISPLAYS_MAX {
                self.displays.pop_front();
            }
            self.displays.push_back(DisplayRange {
                id: id.map(str::to_owned),
                output,
                start,
                end: self.rewrite_floor,
            });
        }
    }

    /// Returns whether a display has this id.
    pub(crate) fn has_display(&self, id: &str) -> bool {
        self.displays
            .iter()
            .any(|display| display.id.as_deref() == Some(id))
    }

    /// Replaces the text of all displays with this id, as far as it is still in memory.
    pub(crate) fn replace_display(&mut self, id: &str, bounded: &BoundedText) {
        for at in 0..self.displays.len() {
            let DisplayRange { start, end, .. } = self.displays[at];
            if self.displays[at].id.as_deref() != Some(id)
                || !self.head_tail.replace(start, end, &bounded.text)
            {
                continue;
            }
            self.elided += bounded.elided;
            self.long_lines.bytes += bounded.long_lines.bytes;
            self.long_lines.lines += bounded.long_lines.lines;
            let length = bounded.text.len() as u64;
            let shifted = |offset: u64| offset - (end - start) + length;
            self.displays[at].end = start + length;
            for display in self.displays.iter_mut().skip(at + 1) {
                display.start = shifted(display.start);
                display.end = shifted(display.end);
            }
            self.rewrite_floor = shifted(self.rewrite_floor);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.head_tail.clear();
        self.long_lines = TruncatedLines::default();
        self.elided = TextSize::default();
        self.displays.clear();
        self.rewrite_floor = 0;
    }

    /// Returns the bounded text.
    pub(crate) fn bounded_text(&self) -> BoundedText {
        let bounded = self.head_tail.bounded();
        let displays = self.displays.iter().filter_map(|display| {
            let range = bounded.index(display.start)..bounded.index(display.end);
            Some((display.output?, range))
        });
        let displays = displays.collect();
        let HeadTailText {
            text,
            shown,
            elided,
            ..
        } = bounded;
        let elided = elided + self.elided;
        let missing = TextSize {
            bytes: self.long_lines.bytes,
            lines: 0,
        };
        BoundedText {
            total: shown + elided + missing,
            text,
            shown,
            elided,
            long_lines: self.long_lines,
            displays,
        }
    }

    /// Adds the beginning of a line that is too long, and an ellipsis.
    fn push_truncated(&mut self, line: &str, overflow_bytes: u64) {
        let end = line.floor_char_boundary(self.line_limit - ELLIPSIS.len());
        self.head_tail.push(&line[..end]);
        self.head_tail.push(ELLIPSIS);
        self.long_lines.bytes += (line.len() - end - ELLIPSIS.len()) as u64 + overflow_bytes;
        self.long_lines.lines += 1;
    }
}

impl clean::LineSink for BoundedLines {
    fn push_lines(&mut self, text: &str) {
        let bytes = text.as_bytes();
        // Start of the text not pushed yet, and of the current line.
        let mut pushed = 0;
        let mut start = 0;
        while start < bytes.len() {
            // Most lines are short: one backward search from the line limit skips all lines within it.
            let reach = bytes.len().min(start + self.line_limit + 1);
            if let Some(newline) = memchr::memrchr(b'\n', &bytes[start..reach]) {
                start += newline + 1;
                continue;
            }
            let end = memchr::memchr(b'\n', &bytes[reach..]).map_or(bytes.len(), |at| reach + at);
            self.head_tail.push(&text[pushed..start]);
            self.push_truncated(&text[start..end], 0);
            pushed = end;
            start = end + 1;
        }
        self.head_tail.push(&text[pushed..]);
    }

    fn push_line(&mut self, text: &str, overflow_bytes: u64, end: LineEnd) {
        if text.len() > self.line_limit || overflow_bytes > 0 {
            self.push_truncated(text, overflow_bytes);
        } else {
            self.head_tail.push(text);
        }
        if end == LineEnd::Newline {
            self.head_tail.push("\n");
        }
    }

    fn pop_line(&mut self) -> Option<String> {
        self.head_tail.pop_line(self.rewrite_floor)
    }
}
