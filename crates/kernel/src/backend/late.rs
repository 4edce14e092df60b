//! What comes when nobody waits for it: text of cells that have ended, and the last words on standard
//! error.

use std::collections::VecDeque;

use cellwright_output::Stream;

use crate::kernel::LateText;

/// How much late text is kept until somebody asks for it; the oldest goes first.
const LATE_BYTES: usize = 256 * 1024;

/// How much of the last words is kept.
const TAIL_BYTES: usize = 16 * 1024;

/// Text of cells that have ended.
#[derive(Debug, Default)]
pub(super) struct Late {
    texts: VecDeque<LateText>,
    bytes: usize,
}

impl Late {
    /// Keeps the text of a cell.
    pub(super) fn keep(&mut self, request: u64, stream: Stream, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(LATE_BYTES)..];
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
        while self.bytes > LATE_BYTES
            && let Some(first) = self.texts.front_mut()
        {
            let excess = self.bytes - LATE_BYTES;
            if first.bytes.len() > excess {
                first.bytes.drain(..excess);
                self.bytes -= excess;
            } else {
                self.bytes -= first.bytes.len();
                self.texts.pop_front();
            }
        }
    }

    /// What was kept, once.
    pub(super) fn take(&mut self) -> Vec<LateText> {
        self.bytes = 0;
        self.texts.drain(..).collect()
    }
}

/// The last words.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        self.bytes.extend(kept);
        let excess = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.bytes.drain(..excess);
    }

    pub(super) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let mut bytes = front.to_vec();
        bytes.extend_from_slice(back);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
