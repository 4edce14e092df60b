//! What was printed: the beginning of all of it, the end of all of it, and where the rest is.

use super::Output;
use crate::event::Stream;
use crate::utf8;

/// One output: text of one stream without anything between.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) stream: Stream,
    /// Bytes at the beginning that came earlier: a character that another output cut in two.
    pub(super) carried: usize,
    /// Where the bytes after those stand in the log.
    pub(super) offset: u64,
    /// Bytes in all.
    pub(super) length: u64,
    /// The first of them.
    pub(super) head: Vec<u8>,
    /// The last of them, after the head.
    pub(super) tail: Vec<u8>,
}

impl Printed {
    /// Bytes between head and tail.
    pub(super) fn missing(&self) -> u64 {
        self.length - (self.head.len() + self.tail.len()) as u64
    }
}

/// How much of all streams is held.
#[derive(Debug)]
pub(super) struct Runs {
    most_head: usize,
    most_tail: usize,
    head: usize,
    tail: usize,
    /// No output before this one has a tail.
    oldest: usize,
    /// The beginning of a character, cut off from the output with this index.
    carry: [Option<(usize, Vec<u8>)>; 2],
}

impl Runs {
    pub(super) fn new(most: usize) -> Self {
        // Up to twice the tail is held, so that it need not be moved for every chunk.
        let most_tail = most / 16;
        Self {
            most_head: most - 2 * most_tail,
            most_tail,
            head: 0,
            tail: 0,
            oldest: 0,
            carry: [None, None],
        }
    }

    /// Begins an output.
    pub(super) fn open(&mut self, stream: Stream, offset: u64) -> Printed {
        let head = self.carry[index(stream)]
            .take()
            .map_or_else(Vec::new, |(_, bytes)| bytes);
        self.head += head.len();
        Printed {
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
        let Some(Output::Stream(printed)) = list.last_mut() else {
            return;
        };
        printed.length += bytes.len() as u64;
        // Once something went to the tail, everything after it must.
        let whole =
            printed.tail.is_empty() && printed.length == (printed.head.len() + bytes.len()) as u64;
        let room = if whole {
            self.most_head.saturating_sub(self.head)
        } else {
            0
        };
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        printed.head.extend_from_slice(first);
        self.head += first.len();
        let last = &rest[rest.len().saturating_sub(self.most_tail)..];
        if last.len() < rest.len() {
            self.tail -= printed.tail.len();
            printed.tail.clear();
        }
        printed.tail.extend_from_slice(last);
        self.tail += last.len();
        if self.tail > 2 * self.most_tail {
            self.trim(list);
        }
    }

    /// The last output ends. A character that it ends within is left for the next of its kind.
    pub(super) fn close(&mut self, list: &mut [Output]) {
        let at = list.len().wrapping_sub(1);
        let Some(Output::Stream(printed)) = list.last_mut() else {
            return;
        };
        let (end, held) = if printed.tail.is_empty() {
            (&mut printed.head, &mut self.head)
        } else {
            (&mut printed.tail, &mut self.tail)
        };
        let cut = utf8::incomplete_suffix(end);
        // An output that would be left empty stays as it is.
        if cut > 0 && cut as u64 != printed.length {
            let bytes = end.split_off(end.len() - cut);
            *held -= cut;
            printed.length -= cut as u64;
            self.carry[index(printed.stream)] = Some((at, bytes));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            head: 0,
            tail: 0,
            oldest: 0,
            carry: [None, None],
            ..*self
        };
    }

    /// Gives back the characters that nobody finished, and keeps exactly what should be kept.
    pub(super) fn finish(&mut self, list: &mut [Output]) {
        for carry in &mut self.carry {
            if let Some((at, bytes)) = carry.take()
                && let Some(Output::Stream(printed)) = list.get_mut(at)
            {
                printed.length += bytes.len() as u64;
                let tail = !printed.tail.is_empty() || printed.missing() > bytes.len() as u64;
                let end = if tail {
                    // What was thrown away meanwhile may be newer than this.
                    self.oldest = self.oldest.min(at);
                    self.tail += bytes.len();
                    &mut printed.tail
                } else {
                    &mut printed.head
                };
                end.extend_from_slice(&bytes);
            }
        }
        self.trim(list);
    }

    /// Throws the oldest bytes of the tails away.
    fn trim(&mut self, list: &mut [Output]) {
        while self.tail > self.most_tail
            && let Some(output) = list.get_mut(self.oldest)
        {
            if let Output::Stream(printed) = output {
                let excess = (self.tail - self.most_tail).min(printed.tail.len());
                self.tail -= excess;
                printed.tail.drain(..excess);
                if !printed.tail.is_empty() {
                    return;
                }
                printed.tail = Vec::new();
            }
            self.oldest += 1;
        }
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}
