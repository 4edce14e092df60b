//! Reading artifacts piece by piece: by lines, by bytes, never the whole file at once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use super::{ArtifactError, ArtifactId, Kind};
use crate::clean;
use crate::utf8;

/// Lines between two entries of the index: an entry for every line of a gigabyte would take more
/// memory than reading a few lines again takes time.
const STRIDE: u64 = 1024;

/// What is read from the file at a time.
pub(super) const BUFFER: usize = 256 * 1024;

/// An artifact that is open for reading.
#[derive(Debug)]
pub struct Artifact {
    /// Its number.
    pub id: ArtifactId,
    /// What it holds.
    pub kind: Kind,
    path: PathBuf,
    file: File,
    length: u64,
    /// Where lines 1, 1 + `STRIDE`, 1 + 2 `STRIDE` … begin, as far as someone has read.
    index: Vec<u64>,
    lines: Option<u64>,
}

/// Consecutive lines, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// The bytes as they are in the file.
    pub bytes: Vec<u8>,
    /// The number of the first line, from 1.
    pub first_line: u64,
    /// How many lines are here; the last one may be cut.
    pub lines: u64,
    /// Whether the limit cut it, so that fewer lines are here than asked for, or the last one
    /// is incomplete.
    pub cut: bool,
    /// Whether the end of the artifact is here.
    pub at_end: bool,
}

impl Passage {
    /// The text as it came; what is no UTF-8 becomes U+FFFD.
    pub fn raw_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The text without colours and control characters, overwritten as on a terminal.
    pub fn text(&self) -> String {
        clean::plain(&String::from_utf8_lossy(&self.bytes))
    }
}

impl Artifact {
    pub(super) fn new(
        id: ArtifactId,
        kind: Kind,
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size when it was opened.
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// How many lines it has; an unfinished last one counts. Reads the file once.
    pub fn lines(&mut self) -> Result<u64, ArtifactError> {
        if let Some(lines) = self.lines {
            return Ok(lines);
        }
        self.seek_line(u64::MAX)
            .map_err(ArtifactError::io(&self.path))?;
        Ok(self.lines.unwrap_or_default())
    }

    /// Where lines `first..=last` (from 1) are in the file, for those who read it piece by piece. Empty
    /// if there are no such lines.
    pub fn span(&mut self, lines: RangeInclusive<u64>) -> Result<Range<u64>, ArtifactError> {
        let first = (*lines.start()).max(1);
        let after = lines.end().saturating_add(1);
        let start = self.seek_line(first);
        let end = self.seek_line(after);
        let start = start.map_err(ArtifactError::io(&self.path))?;
        let end = end.map_err(ArtifactError::io(&self.path))?;
        let start = start.unwrap_or(self.length);
        Ok(start..end.unwrap_or(self.length).max(start))
    }

    /// Lines `first..=last` (from 1), at most `most` bytes of them. Lines after the end are not
    /// there, which is no error: the passage is shorter, or empty.
    pub fn read_lines(
        &mut self,
        range: RangeInclusive<u64>,
        most: usize,
    ) -> Result<Passage, ArtifactError> {
        let first = (*range.start()).max(1);
        let wanted = range.end().saturating_add(1).saturating_sub(first);
        self.take_lines(first, wanted, most)
            .map_err(ArtifactError::io(&self.path))
    }

    /// The bytes from `start`, at most `most` of them.
    pub fn read_raw(&self, start: u64, most: usize) -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.take(most as u64).read_to_end(&mut bytes))
            .map_err(ArtifactError::io(&self.path))?;
        Ok(bytes)
    }

    /// As [`Self::read_raw`], without half a character at either end.
    pub fn read_bytes(&self, start: u64, most: usize) -> Result<Vec<u8>, ArtifactError> {
        let mut bytes = self.read_raw(start, most)?;
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

    fn take_lines(&mut self, first: u64, wanted: u64, most: usize) -> io::Result<Passage> {
        let mut passage = Passage {
            first_line: first,
            ..Passage::default()
        };
        let Some(offset) = self.seek_line(first)? else {
            passage.at_end = true;
            return Ok(passage);
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::with_capacity(BUFFER.min(most + 1024), file);
        let mut finished = true;
        while passage.lines < wanted || !finished {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                passage.at_end = true;
                break;
            }
            if finished {
                passage.lines += 1;
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.map_or(buffer.len(), |end| end + 1)];
            finished = end.is_some();
            let room = most - passage.bytes.len();
            if part.len() > room {
                passage.bytes.extend_from_slice(&part[..room]);
                let half = utf8::incomplete_suffix(&passage.bytes);
                passage.bytes.truncate(passage.bytes.len() - half);
                passage.cut = true;
                return Ok(passage);
            }
            passage.bytes.extend_from_slice(part);
            let count = part.len();
            reader.consume(count);
        }
        passage.at_end |= reader.fill_buf()?.is_empty();
        Ok(passage)
    }

    /// Where line `number` begins; none after the end. Goes on from where the index ends.
    fn seek_line(&mut self, number: u64) -> io::Result<Option<u64>> {
        let entry = ((number - 1) / STRIDE).min(self.index.len() as u64 - 1);
        let mut line = 1 + entry * STRIDE;
        let mut offset = usize::try_from(entry)
            .ok()
            .and_then(|entry| self.index.get(entry).copied())
            .unwrap_or_default();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::with_capacity(BUFFER, file);
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
            let mut taken = 0;
            for newline in memchr::memchr_iter(b'\n', buffer) {
                taken = newline + 1;
                line += 1;
                let start = offset + taken as u64;
                // Lines before the last entry are never passed on the way to a later one.
                if (line - 1).is_multiple_of(STRIDE) {
                    self.index.push(start);
                }
                if line == number {
                    break;
                }
            }
            if line != number || taken == 0 {
                unfinished = taken < buffer.len();
                taken = buffer.len();
            } else {
                unfinished = false;
            }
            offset += taken as u64;
            reader.consume(taken);
        }
    }
}
