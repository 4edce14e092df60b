//! Clean lines, bounded in both directions, with places that can be changed later.

use std::collections::VecDeque;

use super::Columns;
use crate::clean::{self, End, Screen};
use crate::limits::Limits;
use crate::pick::Words;
use crate::size::Size;
use crate::window::{View, Window};

const MARK: &str = "…";

/// More displays than fit into a text could ever be changed in it.
const MOST_PLACES: usize = 4096;

/// A text that fits, and what does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) text: String,
    pub(crate) total: Size,
    pub(crate) shown: Size,
    pub(crate) elided: Size,
    pub(crate) columns: Columns,
}

impl Reading {
    /// Whether anything is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.elided.bytes > 0 || self.columns.lines > 0
    }
}

/// The lines of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    window: Window,
    /// The longest line, in bytes.
    widest: usize,
    columns: Columns,
    /// What is missing from displays that were changed.
    elided: Size,
    /// What was displayed under an id, and where.
    places: VecDeque<Place>,
    /// Nothing before this can be taken back.
    floor: u64,
}

#[derive(Clone, Debug)]
struct Place {
    id: String,
    start: u64,
    end: u64,
}

impl Page {
    pub(crate) fn new(limits: &Limits) -> Self {
        // Of a longer line the screen would not know the end, so that how a line came would show.
        let widest = match limits.column_bytes {
            0 => limits.line_characters,
            bytes => bytes.min(limits.line_characters),
        };
        Self {
            window: Window::new(limits.inline_bytes, limits.head_bytes),
            widest: widest.max(2 * MARK.len()),
            columns: Columns::default(),
            elided: Size::default(),
            places: VecDeque::new(),
            floor: 0,
        }
    }

    /// Adds text on lines of its own.
    pub(crate) fn place(&mut self, words: &Words<'_>, screen: &mut Screen, id: Option<&str>) {
        if self.window.last().is_some_and(|last| last != '\n') {
            self.window.push("\n");
        }
        let start = self.window.bytes();
        self.floor = start;
        words.say(|text| screen.push(text, self));
        screen.settle(self);
        self.floor = self.window.bytes();
        if let Some(id) = id {
            if self.places.len() == MOST_PLACES {
                self.places.pop_front();
            }
            self.places.push_back(Place {
                id: id.to_owned(),
                start,
                end: self.floor,
            });
        }
    }

    /// Whether something was displayed under this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.places.iter().any(|place| place.id == id)
    }

    /// Puts other text where something was displayed under this id, as far as that is still held.
    pub(crate) fn replace(&mut self, id: &str, reading: &Reading) {
        for at in 0..self.places.len() {
            let Place { start, end, .. } = self.places[at];
            if self.places[at].id != id || !self.window.replace(start, end, &reading.text) {
                continue;
            }
            self.elided += reading.elided;
            self.columns.bytes += reading.columns.bytes;
            self.columns.lines += reading.columns.lines;
            let length = reading.text.len() as u64;
            let moved = |offset: u64| offset - (end - start) + length;
            self.places[at].end = start + length;
            for place in self.places.iter_mut().skip(at + 1) {
                place.start = moved(place.start);
                place.end = moved(place.end);
            }
            self.floor = moved(self.floor);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.window.clear();
        self.columns = Columns::default();
        self.elided = Size::default();
        self.places.clear();
        self.floor = 0;
    }

    /// What fits of it.
    pub(crate) fn read(&self) -> Reading {
        let View {
            text,
            shown,
            elided,
        } = self.window.view();
        let elided = elided + self.elided;
        let missing = Size {
            bytes: self.columns.bytes,
            lines: 0,
        };
        Reading {
            total: shown + elided + missing,
            text,
            shown,
            elided,
            columns: self.columns,
        }
    }

    /// Adds a line that is too long: its beginning, and a mark.
    fn push_cut(&mut self, line: &str, beyond: u64) {
        let end = line.floor_char_boundary(self.widest - MARK.len());
        self.window.push(&line[..end]);
        self.window.push(MARK);
        self.columns.bytes += (line.len() - end - MARK.len()) as u64 + beyond;
        self.columns.lines += 1;
    }
}

impl clean::Page for Page {
    fn lines(&mut self, text: &str) {
        let bytes = text.as_bytes();
        // Where what has not been pushed begins, and the line that is looked at.
        let mut pushed = 0;
        let mut start = 0;
        while start < bytes.len() {
            // Most lines are short: one look backwards from where a line would be too long skips
            // all that are within.
            let reach = bytes.len().min(start + self.widest + 1);
            if let Some(newline) = memchr::memrchr(b'\n', &bytes[start..reach]) {
                start += newline + 1;
                continue;
            }
            let end = memchr::memchr(b'\n', &bytes[reach..]).map_or(bytes.len(), |at| reach + at);
            self.window.push(&text[pushed..start]);
            self.push_cut(&text[start..end], 0);
            pushed = end;
            start = end + 1;
        }
        self.window.push(&text[pushed..]);
    }

    fn line(&mut self, text: &str, beyond: u64, end: End) {
        if text.len() > self.widest || beyond > 0 {
            self.push_cut(text, beyond);
        } else {
            self.window.push(text);
        }
        if end == End::Newline {
            self.window.push("\n");
        }
    }

    fn take_back(&mut self) -> Option<String> {
        self.window.take_back(self.floor)
    }
}
