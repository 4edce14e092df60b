//! Bounded buffers: late output of cells that have ended, and the end of standard error.

use std::collections::VecDeque;

use cellwright_output::Stream;

use crate::kernel::LateText;

/// Bytes of late output that are kept until they are collected; the oldest are dropped first.
const LATE_OUTPUT_LIMIT: usize = 256 * 1024;

/// Bytes of a tail.
const TAIL_LIMIT: usize = 16 * 1024;

/// Output that arrived after the end of its cell.
#[derive(Debug, Default)]
pub(super) struct LateOutput {
    texts: VecDeque<LateText>,
    bytes: usize,
}

impl LateOutput {
    /// Appends text of a cell.
    pub(super) fn push(&mut self, request: u64, stream: Stream, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(LATE_OUTPUT_LIMIT)..];
        self.bytes += bytes.len();
        match self.texts.back_mut() {
            Some(last) if last.stream == stream && last.request == request => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.texts.push_back(LateText {
                request,
                stream,
                bytes: bytes.to_vec(),
            }),
        }
        while self.bytes > LATE_OUTPUT_LIMIT
            && let Some(first) = self.texts.front_mut()
        {
            let excess = self.bytes - LATE_OUTPUT_LIMIT;
            if first.bytes.len() > excess {
                first.bytes.drain(..excess);
                self.bytes -= excess;
            } else {
                self.bytes -= first.bytes.len();
                self.texts.pop_front();
            }
        }
    }

    /// Returns the text that was kept, and removes it.
    pub(super) fn take(&mut self) -> Vec<LateText> {
        self.bytes = 0;
        self.texts.drain(..).collect()
    }
}

/// The last bytes of a text.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(TAIL_LIMIT)..];
        self.bytes.extend(kept);
        let excess = self.bytes.len().saturating_sub(TAIL_LIMIT);
        self.bytes.drain(..excess);
    }

    pub(super) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let mut bytes = front.to_vec();
        bytes.extend_from_slice(back);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
