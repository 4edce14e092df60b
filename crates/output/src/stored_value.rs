//! [`StoredValue`]: a value in a file instead of memory.

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use cellwright_stdext::read_chunks;

use crate::utf8::Utf8Decoder;

/// Bytes read at once. A multiple of three, because three bytes become four characters of base64.
pub(crate) const READ_SIZE: usize = 3 * 16 * 1024;

/// The encoding of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Binary data such as an image, which is base64 in a notebook.
    Bytes,
    /// UTF-8 text; invalid bytes are replaced on reading.
    Text,
    /// Compact JSON, with the members of objects sorted by name.
    Json,
}

/// A value in a file instead of memory: a range of an unnamed file. Clones share it; dropping the last one
/// frees the range.
#[derive(Clone, Debug)]
pub struct StoredValue {
    file: Arc<File>,
    start: u64,
    length: u64,
    encoding: Encoding,
    /// Frees the range when dropped.
    owner: Option<Arc<dyn Any + Send + Sync>>,
}

/// Equal if both are the same range of the same file.
impl PartialEq for StoredValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
            && (self.start, self.length, self.encoding)
                == (other.start, other.length, other.encoding)
    }
}

impl StoredValue {
    /// Creates a value from a range of a file that no longer changes.
    pub fn new(file: Arc<File>, range: Range<u64>, encoding: Encoding) -> Self {
        Self {
            file,
            start: range.start,
            length: range.end.saturating_sub(range.start),
            encoding,
            owner: None,
        }
    }

    /// Adds the owner of the range, for a file shared with other values. The value keeps the owner alive.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Any + Send + Sync) -> Self {
        self.owner = Some(Arc::new(owner));
        self
    }

    /// Returns the size in the file, in bytes.
    pub fn size(&self) -> u64 {
        self.length
    }

    /// Returns the encoding.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns whether other values share the file, so that many values need few files.
    pub(crate) fn is_in_shared_file(&self) -> bool {
        self.owner.is_some()
    }

    /// Calls `push` with the bytes, in chunks.
    pub fn read(&self, mut push: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.read_range(0..self.length, &mut push)
    }

    /// Calls `push` with the text, in chunks.
    pub fn read_text(&self, mut push: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let mut decoder = Utf8Decoder::default();
        let mut result = Ok(());
        let mut push_text = |text: &str, result: &mut io::Result<()>| {
            if result.is_ok() && !text.is_empty() {
                *result = push(text);
            }
        };
        self.read(|bytes| {
            decoder.push(bytes, |text| push_text(text, &mut result));
            std::mem::replace(&mut result, Ok(()))
        })?;
        decoder.finish(|text| push_text(text, &mut result));
        result
    }

    /// Returns the text. It may be large: prefer [`Self::read_text`].
    pub fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        self.read_text(|chunk| {
            text.push_str(chunk);
            Ok(())
        })?;
        Ok(text)
    }

    /// Returns at most the first `limit` bytes.
    pub fn head(&self, limit: usize) -> io::Result<Vec<u8>> {
        let length = self.length.min(limit as u64);
        let mut head = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        self.read_range(0..length, &mut |bytes| {
            head.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(head)
    }

    fn read_range(
        &self,
        range: Range<u64>,
        push: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        // Chunks of base64 must have a multiple of three bytes, except the last one.
        let range = self.start + range.start..self.start + range.end;
        read_chunks(&self.file, range, READ_SIZE, push)
    }
}
