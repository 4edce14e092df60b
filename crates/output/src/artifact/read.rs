//! Reading an artifact in parts, by lines or by bytes, without loading the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use super::file_name::FileName;
use super::{ArtifactError, ArtifactId, ArtifactKind, ProjectTag};
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
    /// The project that stored it; `None` for artifacts of older versions.
    pub project: Option<ProjectTag>,
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

impl Artifact {
    pub(super) fn new(name: FileName, path: PathBuf, file: File) -> Result<Self, ArtifactError> {
        let length = file.metadata().map_err(ArtifactError::io(&path))?.len();
        Ok(Self {
            id: name.id,
            project: name.project,
            kind: name.kind,
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
