//! [`Outline`]: a content that is on disk. What of it is small comes into memory; a large text stays where
//! it is, and only its place is known.

use std::io::{self, Write};
use std::ops::Range;

use cellwright_jupyter::frame::Stored;
use cellwright_output::{Data, Form, Scratch};
use memchr::memchr2;
use serde_json::Value;

use super::scan::{Unescape, utf8};

/// A text from this size on stays on disk.
pub(super) const LARGE: usize = if cfg!(feature = "fuzz") {
    // A fuzzer does not write that much.
    8
} else {
    1 << 20
};

/// A content of which the large texts are missing.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// The content, with empty texts in the place of those that are missing.
    pub(super) text: Vec<u8>,
    missing: Vec<Missing>,
}

/// A large text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// Where in the outline its opening quote is.
    at: usize,
    /// Where in the content it is, without its quotes.
    range: Range<u64>,
    /// Whether nothing in it is escaped.
    plain: bool,
}

/// What comes of a large text while the content is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passing<'a> {
    /// The next piece of it, as it is written.
    Piece(&'a [u8]),
    /// That was all.
    End,
}

/// Reads through a content.
struct Scan<H> {
    /// Hears large texts as they pass, each with the outline up to its opening quote.
    hear: H,
    large: usize,
    outline: Outline,
    /// How much was read.
    read: u64,
    depth: usize,
    /// What comes is the value of a member.
    is_value: bool,
    /// Whether what comes belongs to the member `data` of the content.
    in_data: bool,
    string: Option<Text>,
}

/// A text that is being read.
#[derive(Debug)]
struct Text {
    at: usize,
    start: u64,
    plain: bool,
    after_backslash: bool,
    fate: Fate,
}

/// What becomes of a text in the outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    StaysIfSmall,
    Misses,
}

impl Outline {
    /// Reads a content. Of its members, and of those of its `data`, texts from a size on are left out; the longest of
    /// them is not even read.
    pub(super) fn of(content: &Stored, large: usize) -> io::Result<Self> {
        let mut scan = Scan::new(large, |_, _| {});
        let stretch = content.stretch();
        scan.read_part(content, 0..stretch.start)?;
        let passed = scan.pass_over(stretch.end - stretch.start);
        let rest = if passed { stretch.end } else { stretch.start };
        scan.read_part(content, rest..content.size())?;
        Ok(scan.outline)
    }

    /// The same, and whoever wants a large text hears it as it passes, and need not read it again.
    pub(super) fn hearing(
        content: &Stored,
        large: usize,
        hear: impl FnMut(&[u8], Passing<'_>),
    ) -> io::Result<Self> {
        let mut scan = Scan::new(large, hear);
        scan.read_part(content, 0..content.size())?;
        Ok(scan.outline)
    }

    /// The large text that is missing at a place of the outline.
    pub(super) fn missing(&self, at: usize) -> Option<&Missing> {
        self.missing.iter().find(|missing| missing.at == at)
    }
}

impl<H: FnMut(&[u8], Passing<'_>)> Scan<H> {
    fn new(large: usize, hear: H) -> Self {
        Self {
            hear,
            large,
            outline: Outline::default(),
            read: 0,
            depth: 0,
            is_value: false,
            in_data: false,
            string: None,
        }
    }

    /// Passes over so many bytes in which no string begins or ends; whether that can be, because they are of a text
    /// that is left out.
    fn pass_over(&mut self, bytes: u64) -> bool {
        match &mut self.string {
            Some(text) if text.fate != Fate::Stays && bytes >= self.large as u64 => {
                text.fate = Fate::Misses;
                text.after_backslash = false;
                self.outline.text.truncate(text.at + 1);
                self.read += bytes;
                true
            }
            _ => false,
        }
    }

    fn read_part(&mut self, content: &Stored, part: Range<u64>) -> io::Result<()> {
        content.read_part(part, |piece| {
            self.push(piece);
            Ok(())
        })
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = if self.string.is_some() {
                self.string(bytes)
            } else {
                self.other(bytes[0])
            };
            self.read += taken as u64;
            bytes = &bytes[taken..];
        }
    }

    fn other(&mut self, byte: u8) -> usize {
        match byte {
            b'"' => {
                let member = self.is_value && (self.depth == 1 || self.depth == 2 && self.in_data);
                let fate = if member {
                    Fate::StaysIfSmall
                } else {
                    Fate::Stays
                };
                self.string = Some(Text {
                    at: self.outline.text.len(),
                    start: self.read + 1,
                    plain: true,
                    after_backslash: false,
                    fate,
                });
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_value = false;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_value = false;
            }
            b':' => self.is_value = true,
            b',' => self.is_value = false,
            _ => {}
        }
        self.outline.text.push(byte);
        1
    }

    /// Takes what belongs to the text that is being read.
    fn string(&mut self, bytes: &[u8]) -> usize {
        let Some(text) = &mut self.string else {
            return 0;
        };
        let mut end = 0;
        let mut ends = false;
        while end < bytes.len() && !ends {
            if std::mem::take(&mut text.after_backslash) {
                end += 1;
                continue;
            }
            match memchr2(b'"', b'\\', &bytes[end..]) {
                None => end = bytes.len(),
                Some(at) if bytes[end + at] == b'"' => (end, ends) = (end + at, true),
                Some(at) => {
                    end += at + 1;
                    text.plain = false;
                    text.after_backslash = true;
                }
            }
        }
        if text.fate == Fate::Misses {
            (self.hear)(&self.outline.text, Passing::Piece(&bytes[..end]));
        } else {
            self.outline.text.extend_from_slice(&bytes[..end]);
            let (before, come) = self.outline.text.split_at(text.at + 1);
            if text.fate == Fate::StaysIfSmall && come.len() >= self.large {
                text.fate = Fate::Misses;
                (self.hear)(before, Passing::Piece(come));
                self.outline.text.truncate(text.at + 1);
            }
        }
        if !ends {
            return end;
        }
        if text.fate == Fate::Misses {
            (self.hear)(&self.outline.text, Passing::End);
            self.outline.missing.push(Missing {
                at: text.at,
                range: text.start..self.read + end as u64,
                plain: text.plain,
            });
        } else if self.depth == 1 && !self.is_value {
            self.in_data = &self.outline.text[text.at + 1..] == b"data";
        }
        self.outline.text.push(b'"');
        self.string = None;
        end + 1
    }
}

impl Missing {
    /// Hands on what the text means, in pieces.
    pub(super) fn read(&self, content: &Stored, mut hear: impl FnMut(&[u8])) -> io::Result<()> {
        let mut unescape = Unescape::default();
        self.place(content).read(|piece| {
            unescape.push(piece, &mut hear);
            Ok(())
        })?;
        unescape.finish(&mut hear);
        Ok(())
    }

    /// The text as a representation of something displayed.
    pub(super) fn representation(
        &self,
        content: &Stored,
        is_json: bool,
        scratch: &Scratch,
    ) -> io::Result<Data> {
        if is_json {
            let mut text = Vec::new();
            self.read(content, |piece| text.extend_from_slice(piece))?;
            return Ok(Data::Json(Value::String(utf8(text))));
        }
        if self.plain {
            return Ok(Data::Stored(self.place(content)));
        }
        let mut room = scratch.reserve(self.range.end - self.range.start)?;
        let mut written = Ok(());
        self.read(content, |piece| {
            if written.is_ok() {
                written = room.write_all(piece);
            }
        })?;
        written?;
        Ok(Data::Stored(room.finish(Form::Text)))
    }

    /// Where it is, as it is written.
    fn place(&self, content: &Stored) -> cellwright_output::Stored {
        let start = content.start();
        let range = start + self.range.start..start + self.range.end;
        cellwright_output::Stored::new(content.file(), range, Form::Text).owned_by(content.clone())
    }
}
