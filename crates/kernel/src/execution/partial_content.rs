//! [`PartialContent`]: a message content on disk, read without its large strings. Their ranges in the file are
//! recorded instead.

use std::io::{self, Write};
use std::ops::Range;

use cellwright_jupyter::frame::StoredFrame;
use cellwright_output::{Data, Encoding, Scratch};
use memchr::memchr2;
use serde_json::Value;

use super::scan::{Unescaper, lossy_utf8};

/// Strings of at least this size stay on disk.
pub(super) const LARGE_STRING_SIZE: usize = if cfg!(feature = "fuzz") {
    // Fuzzers generate small inputs.
    8
} else {
    1 << 20
};

/// A content without its large strings.
#[derive(Debug, Default)]
pub(super) struct PartialContent {
    /// The content, with an empty string in place of each omitted one.
    pub(super) bytes: Vec<u8>,
    omitted: Vec<OmittedString>,
}

/// A large string that stayed on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OmittedString {
    /// The offset of its opening quote in [`PartialContent::bytes`].
    offset: usize,
    /// Its range in the whole content, without quotes.
    range: Range<u64>,
    /// Whether it contains no escapes.
    is_plain: bool,
}

/// A part of a large string, passed on while the content is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum StringPart<'a> {
    /// The next bytes, still escaped.
    Chunk(&'a [u8]),
    /// The closing quote.
    End,
}

/// Scans a content.
struct ContentScanner<H> {
    /// Receives the parts of large strings, each with the partial content up to the opening quote.
    on_string: H,
    large_size: usize,
    partial: PartialContent,
    /// Bytes read so far.
    position: u64,
    depth: usize,
    /// Whether the next string is the value of a member.
    at_value: bool,
    /// Whether the scan is inside the member `data` of the content.
    in_data: bool,
    current_string: Option<ScannedString>,
}

/// The string that is being read.
#[derive(Debug)]
struct ScannedString {
    offset: usize,
    start: u64,
    is_plain: bool,
    after_backslash: bool,
    action: StringAction,
}

/// Whether a string is copied into the partial content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringAction {
    Store,
    KeepIfSmall,
    Omit,
}

impl PartialContent {
    /// Reads a content. Omits strings of at least `large` bytes among its members and those of its `data`. The longest
    /// one is not even read.
    pub(super) fn read(content: &StoredFrame, large: usize) -> io::Result<Self> {
        let mut scanner = ContentScanner::new(large, |_, _| {});
        let plain_run = content.longest_plain_run();
        scanner.read_part(content, 0..plain_run.start)?;
        let skipped = scanner.skip(plain_run.end - plain_run.start);
        let rest = if skipped {
            plain_run.end
        } else {
            plain_run.start
        };
        scanner.read_part(content, rest..content.size())?;
        Ok(scanner.partial)
    }

    /// The same, but passes the parts of large strings to `on_string`, so that they need not be read again.
    pub(super) fn read_with(
        content: &StoredFrame,
        large: usize,
        on_string: impl FnMut(&[u8], StringPart<'_>),
    ) -> io::Result<Self> {
        let mut scanner = ContentScanner::new(large, on_string);
        scanner.read_part(content, 0..content.size())?;
        Ok(scanner.partial)
    }

    /// The string that was omitted at this offset of [`PartialContent::bytes`].
    pub(super) fn omitted_at(&self, offset: usize) -> Option<&OmittedString> {
        self.omitted.iter().find(|omitted| omitted.offset == offset)
    }
}

impl<H: FnMut(&[u8], StringPart<'_>)> ContentScanner<H> {
    fn new(large_size: usize, on_string: H) -> Self {
        Self {
            on_string,
            large_size,
            partial: PartialContent::default(),
            position: 0,
            depth: 0,
            at_value: false,
            in_data: false,
            current_string: None,
        }
    }

    /// Skips bytes in which no string begins or ends. Returns false if they cannot be skipped because the current string is
    /// not omitted.
    fn skip(&mut self, bytes: u64) -> bool {
        match &mut self.current_string {
            Some(string)
                if string.action != StringAction::Store && bytes >= self.large_size as u64 =>
            {
                string.action = StringAction::Omit;
                string.after_backslash = false;
                self.partial.bytes.truncate(string.offset + 1);
                self.position += bytes;
                true
            }
            _ => false,
        }
    }

    fn read_part(&mut self, content: &StoredFrame, part: Range<u64>) -> io::Result<()> {
        content.read_range(part, |piece| {
            self.push(piece);
            Ok(())
        })
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let consumed = if self.current_string.is_some() {
                self.push_string(bytes)
            } else {
                self.push_structural(bytes[0])
            };
            self.position += consumed as u64;
            bytes = &bytes[consumed..];
        }
    }

    fn push_structural(&mut self, byte: u8) -> usize {
        match byte {
            b'"' => {
                let member = self.at_value && (self.depth == 1 || self.depth == 2 && self.in_data);
                let action = if member {
                    StringAction::KeepIfSmall
                } else {
                    StringAction::Store
                };
                self.current_string = Some(ScannedString {
                    offset: self.partial.bytes.len(),
                    start: self.position + 1,
                    is_plain: true,
                    after_backslash: false,
                    action,
                });
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.at_value = false;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.at_value = false;
            }
            b':' => self.at_value = true,
            b',' => self.at_value = false,
            _ => {}
        }
        self.partial.bytes.push(byte);
        1
    }

    /// Consumes the bytes that belong to the current string. Returns how many.
    fn push_string(&mut self, bytes: &[u8]) -> usize {
        let Some(string) = &mut self.current_string else {
            return 0;
        };
        let mut end = 0;
        let mut ends = false;
        while end < bytes.len() && !ends {
            if std::mem::take(&mut string.after_backslash) {
                end += 1;
                continue;
            }
            match memchr2(b'"', b'\\', &bytes[end..]) {
                None => end = bytes.len(),
                Some(at) if bytes[end + at] == b'"' => (end, ends) = (end + at, true),
                Some(at) => {
                    end += at + 1;
                    string.is_plain = false;
                    string.after_backslash = true;
                }
            }
        }
        if string.action == StringAction::Omit {
            (self.on_string)(&self.partial.bytes, StringPart::Chunk(&bytes[..end]));
        } else {
            self.partial.bytes.extend_from_slice(&bytes[..end]);
            let (before, chunk) = self.partial.bytes.split_at(string.offset + 1);
            if string.action == StringAction::KeepIfSmall && chunk.len() >= self.large_size {
                string.action = StringAction::Omit;
                (self.on_string)(before, StringPart::Chunk(chunk));
                self.partial.bytes.truncate(string.offset + 1);
            }
        }
        if !ends {
            return end;
        }
        if string.action == StringAction::Omit {
            (self.on_string)(&self.partial.bytes, StringPart::End);
            self.partial.omitted.push(OmittedString {
                offset: string.offset,
                range: string.start..self.position + end as u64,
                is_plain: string.is_plain,
            });
        } else if self.depth == 1 && !self.at_value {
            self.in_data = &self.partial.bytes[string.offset + 1..] == b"data";
        }
        self.partial.bytes.push(b'"');
        self.current_string = None;
        end + 1
    }
}

impl OmittedString {
    /// Passes the unescaped string to `on_text`, in pieces.
    pub(super) fn read(
        &self,
        content: &StoredFrame,
        mut on_text: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut unescaper = Unescaper::default();
        self.stored_range(content).read(|piece| {
            unescaper.push(piece, &mut on_text);
            Ok(())
        })?;
        unescaper.finish(&mut on_text);
        Ok(())
    }

    /// The string as a representation of a display.
    pub(super) fn to_data(
        &self,
        content: &StoredFrame,
        is_json: bool,
        scratch: &Scratch,
    ) -> io::Result<Data> {
        if is_json {
            let mut text = Vec::new();
            self.read(content, |piece| text.extend_from_slice(piece))?;
            return Ok(Data::Json(Value::String(lossy_utf8(text))));
        }
        if self.is_plain {
            return Ok(Data::Stored(self.stored_range(content)));
        }
        let mut copy = scratch.reserve(self.range.end - self.range.start)?;
        let mut result = Ok(());
        self.read(content, |piece| {
            if result.is_ok() {
                result = copy.write_all(piece);
            }
        })?;
        result?;
        Ok(Data::Stored(copy.finish(Encoding::Text)))
    }

    /// Its range in the file, still escaped.
    fn stored_range(&self, content: &StoredFrame) -> cellwright_output::StoredValue {
        let start = content.start();
        let range = start + self.range.start..start + self.range.end;
        cellwright_output::StoredValue::new(content.file(), range, Encoding::Text)
            .with_owner(content.clone())
    }
}
