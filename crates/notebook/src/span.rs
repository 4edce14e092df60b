//! [`Span`]: a byte range in the file.

use std::ops::Range;

/// Start and end of a byte range in the file.
///
/// Offsets have 32 bits on purpose: this halves the bookkeeping for a notebook of a million
/// cells. Files of 4 GiB and more are rejected
/// ([`FormatError::TooLarge`](crate::FormatError::TooLarge)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// Saturates at 4 GiB; the scan rejects such files.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(end).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(crate) fn len(self) -> usize {
        self.end() - self.start()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}
