//! Reading an artifact in parts, by lines or by bytes, without loading the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use super::{ArtifactError, ArtifactId, ArtifactKind};
use crate::clean;
use crate::utf8;

/// Lines between two index entries. An entry per line would take too much memory for a file of a gigabyte;
/// re-reading up to 1024 lines is fast.
const INDEX_INTERVAL: u64 = 1024;

/// Bytes read from the file at a time.
pub(super) const BUFFER_SIZE: usize = 256 * 1024;

/// An artifact opened for reading.
#[derive(Debug)]
pub struct Artifact {
    /// The artifact's number.
    pub id: ArtifactId,
    /// The content type.
    pub kind: ArtifactKind,
    path: PathBuf,
    file: File,
    length: u64,
    /// Byte offsets of lines 1, 1 + `INDEX_INTERVAL`, 1 + 2 × `INDEX_INTERVAL` …, as far as the file has been
    /// read.
    index: Vec<u64>,
    lines: Option<u64>,
}

/// Consecutive lines of an artifact, or a part of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The raw bytes.
    pub bytes: Vec<u8>,
    /// 1-based number of the first line.
    pub first_line: u64,
    /// Number of lines; the last one may be truncated.
    pub lines: u64,
    /// Whether the byte limit cut the excerpt: lines are missing, or the last one is incomplete.
    pub truncated: bool,
    /// Whether the excerpt reaches the end of the artifact.
    pub at_end: bool,
}

impl Excerpt {
    /// Returns the text with escape sequences; invalid UTF-8 becomes U+FFFD.
    pub fn raw_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the text as a terminal would show it, without colours and control characters.
    pub fn text(&self) -> String {
        clean::plain(&String::from_utf8_lossy(&self.bytes))
    }
}

impl Artifact {
    pub(super) fn new(
        id: ArtifactId,
        kind: ArtifactKind,
        path: PathBuf,
        file: File,
    ) -> Result<Self, ArtifactError> {
        let length = file.metadata().map_err(ArtifactError::io(&path))?.len();
        Ok(Self {
            id,
            kind,
            path,
            file,
            length,
            index: vec![0],
            lines: None,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size in bytes at the time of opening.
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Returns the number of lines, including an unfinished last line. Reads the file once.
    pub fn lines(&mut self) -> Result<u64, ArtifactError> {
        if let Some(lines) = self.lines {
            return Ok(lines);
        }
        self.seek_line(u64::MAX)
            .map_err(ArtifactError::io(&self.path))?;
        Ok(self.lines.unwrap_or_default())
    }

    /// Returns the byte range of lines `first..=last` (1-based), for callers that read in parts. The range is
    /// empty if there are no such lines.
    pub fn byte_range(&mut self, lines: RangeInclusive<u64>) -> Result<Range<u64>, ArtifactError> {
        let first = (*lines.start()).max(1);
        let after = lines.end().saturating_add(1);
        let start = self.seek_line(first);
        let end = self.seek_line(after);
        let start = start.map_err(ArtifactError::io(&self.path))?;
        let end = end.map_err(ArtifactError::io(&self.path))?;
        let start = start.unwrap_or(self.length);
        Ok(start..end.unwrap_or(self.length).max(start))
    }

    /// Returns lines `first..=last` (1-based), at most `limit` bytes. Lines beyond the end are not an error:
    /// the excerpt is shorter, or empty.
    pub fn read_lines(
        &mut self,
        range: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Excerpt, ArtifactError> {
        let first = (*range.start()).max(1);
        let count = range.end().saturating_add(1).saturating_sub(first);
        self.collect_lines(first, count, limit)
            .map_err(ArtifactError::io(&self.path))
    }

    /// Returns at most `limit` bytes from offset `start`.
    pub fn read_raw(&self, start: u64, limit: usize) -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.take(limit as u64).read_to_end(&mut bytes))
            .map_err(ArtifactError::io(&self.path))?;
        Ok(bytes)
    }

    /// As [`Self::read_raw`], without partial characters at either end.
    pub fn read_bytes(&self, start: u64, limit: usize) -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = self.read_raw(start, limit)?;
        let end = start + bytes.len() as u64;
        if start > 0 {
            bytes.drain(..utf8::continuation_prefix(&bytes));
        }
        if end < self.length {
            bytes.truncate(bytes.len() - utf8::incomplete_suffix(&bytes));
        }
        Ok(bytes)
    }

    pub(super) fn file_from_start(&self) -> io::Result<&File> {
        (&self.file).seek(SeekFrom::Start(0))?;
        Ok(&self.file)
    }

    fn collect_lines(&mut self, first: u64, count: u64, limit: usize) -> io::Result<Excerpt> {
        let mut excerpt = Excerpt {
            first_line: first,
            ..Excerpt::default()
        };
        let Some(offset) = self.seek_line(first)? else {
            excerpt.at_end = true;
            return Ok(excerpt);
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::with_capacity(BUFFER_SIZE.min(limit + 1024), file);
        let mut finished = true;
        while excerpt.lines < count || !finished {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                excerpt.at_end = true;
                break;
            }
            if finished {
                excerpt.lines += 1;
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.map_or(buffer.len(), |end| end + 1)];
            finished = end.is_some();
            let left = limit - excerpt.bytes.len();
            if part.len() > left {
                excerpt.bytes.extend_from_slice(&part[..left]);
                let incomplete = utf8::incomplete_suffix(&excerpt.bytes);
                excerpt.bytes.truncate(excerpt.bytes.len() - incomplete);
                excerpt.truncated = true;
                return Ok(excerpt);
            }
            excerpt.bytes.extend_from_slice(part);
            let consumed = part.len();
            reader.consume(consumed);
        }
        excerpt.at_end |= reader.fill_buf()?.is_empty();
        Ok(excerpt)
    }

    /// Returns the offset of line `number`, or `None` beyond the end. Extends the index on the way.
    fn seek_line(&mut self, number: u64) -> io::Result<Option<u64>> {
        let entry = ((number - 1) / INDEX_INTERVAL).min(self.index.len() as u64 - 1);
        let mut line = 1 + entry * INDEX_INTERVAL;
        let mut offset = usize::try_from(entry)
            .ok()
            .and_then(|entry| self.index.get(entry).copied())
            .unwrap_or_default();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::with_capacity(BUFFER_SIZE, file);
        let mut unfinished = false;
        loop {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                self.lines = Some(line - 1 + u64::from(unfinished));
                return Ok(None);
            }
            if line == number && !unfinished {
                return Ok(Some(offset));
            }
            let mut consumed = 0;
            for newline in memchr::memchr_iter(b'\n', buffer) {
                consumed = newline + 1;
                line += 1;
                let start = offset + consumed as u64;
                // The scan starts at the last index entry before `number`, so no entry is added twice.
                if (line - 1).is_multiple_of(INDEX_INTERVAL) {
                    self.index.push(start);
                }
                if line == number {
                    break;
                }
            }
            if line != number || consumed == 0 {
                unfinished = consumed < buffer.len();
                consumed = buffer.len();
            } else {
                unfinished = false;
            }
            offset += consumed as u64;
            reader.consume(consumed);
        }
    }
}
