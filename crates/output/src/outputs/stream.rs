//! Stream text in memory: its beginning, its end, and the location of the rest.

use super::Output;
use crate::event::Stream;
use crate::utf8;

/// One output: consecutive text of one stream.
#[derive(Debug)]
pub(super) struct StreamOutput {
    pub(super) stream: Stream,
    /// Bytes at the beginning that arrived earlier: a character split by another output.
    pub(super) carried: usize,
    /// Offset of the following bytes in the log.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: u64,
    /// The first bytes.
    pub(super) head: Vec<u8>,
    /// The last bytes, after the head.
    pub(super) tail: Vec<u8>,
}

impl StreamOutput {
    /// Returns the number of bytes between head and tail.
    pub(super) fn elided_bytes(&self) -> u64 {
        self.length - (self.head.len() + self.tail.len()) as u64
    }
}

/// Distributes memory among the outputs of both streams.
#[derive(Debug)]
pub(super) struct StreamBuffers {
    head_limit: usize,
    tail_limit: usize,
    /// Bytes held in all heads.
    head: usize,
    /// Bytes held in all tails.
    tail: usize,
    /// Index before which no output has a tail.
    first_tail: usize,
    /// The beginning of a character, cut off from the output with this index.
    carry: [Option<(usize, Vec<u8>)>; 2],
}

impl StreamBuffers {
    pub(super) fn new(limit: usize) -> Self {
        // Up to twice the tail is held, so that not every chunk moves it.
        let tail_limit = limit / 16;
        Self {
            head_limit: limit - 2 * tail_limit,
            tail_limit,
            head: 0,
            tail: 0,
            first_tail: 0,
            carry: [None, None],
        }
    }

    /// Starts an output.
    pub(super) fn start(&mut self, stream: Stream, offset: u64) -> StreamOutput {
        let head = self.carry[stream.index()]
            .take()
            .map_or_else(Vec::new, |(_, bytes)| bytes);
        self.head += head.len();
        StreamOutput {
            stream,
            carried: head.len(),
            offset,
            length: head.len() as u64,
            head,
            tail: Vec::new(),
        }
    }

    /// Appends to the last output.
    pub(super) fn append(&mut self, list: &mut [Output], bytes: &[u8]) {
        let Some(Output::Stream(output)) = list.last_mut() else {
            return;
        };
        output.length += bytes.len() as u64;
        // If a part is already in the tail, later bytes must follow it there.
        let in_head =
            output.tail.is_empty() && output.length == (output.head.len() + bytes.len()) as u64;
        let left = if in_head {
            self.head_limit.saturating_sub(self.head)
        } else {
            0
        };
        let (first, rest) = bytes.split_at(bytes.len().min(left));
        output.head.extend_from_slice(first);
        self.head += first.len();
        let last = &rest[rest.len().saturating_sub(self.tail_limit)..];
        if last.len() < rest.len() {
            self.tail -= output.tail.len();
            output.tail.clear();
        }
        output.tail.extend_from_slice(last);
        self.tail += last.len();
        if self.tail > 2 * self.tail_limit {
            self.trim(list);
        }
    }

    /// Ends the last output. An incomplete character at its end moves to the stream's next output.
    pub(super) fn close(&mut self, list: &mut [Output]) {
        let at = list.len().wrapping_sub(1);
        let Some(Output::Stream(output)) = list.last_mut() else {
            return;
        };
        let (end, held_bytes) = if output.tail.is_empty() {
            (&mut output.head, &mut self.head)
        } else {
            (&mut output.tail, &mut self.tail)
        };
        let incomplete = utf8::incomplete_suffix(end);
        // An output that would become empty keeps its bytes.
        if incomplete > 0 && incomplete as u64 != output.length {
            let bytes = end.split_off(end.len() - incomplete);
            *held_bytes -= incomplete;
            output.length -= incomplete as u64;
            self.carry[output.stream.index()] = Some((at, bytes));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            head: 0,
            tail: 0,
            first_tail: 0,
            carry: [None, None],
            ..*self
        };
    }

    /// Returns incomplete characters to their outputs, and trims the tails.
    pub(super) fn finish(&mut self, list: &mut [Output]) {
        for carry in &mut self.carry {
            if let Some((at, bytes)) = carry.take()
                && let Some(Output::Stream(output)) = list.get_mut(at)
            {
                output.length += bytes.len() as u64;
                let tail = !output.tail.is_empty() || output.elided_bytes() > bytes.len() as u64;
                let end = if tail {
                    // Newer tails may have been trimmed meanwhile.
                    self.first_tail = self.first_tail.min(at);
                    self.tail += bytes.len();
                    &mut output.tail
                } else {
                    &mut output.head
                };
                end.extend_from_slice(&bytes);
            }
        }
        self.trim(list);
    }

    /// Drops the oldest bytes of the tails.
    fn trim(&mut self, list: &mut [Output]) {
        while self.tail > self.tail_limit
            && let Some(output) = list.get_mut(self.first_tail)
        {
            if let Output::Stream(output) = output {
                let excess = (self.tail - self.tail_limit).min(output.tail.len());
                self.tail -= excess;
                output.tail.drain(..excess);
                if !output.tail.is_empty() {
                    return;
                }
                output.tail = Vec::new();
            }
            self.first_tail += 1;
        }
    }
}
