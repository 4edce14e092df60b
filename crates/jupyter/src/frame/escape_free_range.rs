//! [`EscapeFreeRangeFinder`]: finds the longest part of a JSON text without quotes and backslashes while the text is written.
//!
//! In such a part no string begins or ends and nothing is escaped. An image is nearly all of its message: a parser that
//! knows the part need not read it only to find its end.

use std::ops::Range;

use memchr::memchr2_iter;

/// The search ends after this many quotes and backslashes: such a text has more to parse than to skip.
const MARK_LIMIT: usize = 4096;

/// The state of the search.
#[derive(Debug, Default)]
pub(super) struct EscapeFreeRangeFinder {
    /// Bytes of the text so far.
    position: u64,
    /// Quotes and backslashes so far.
    mark_count: usize,
    /// Offset after the last of them.
    run_start: u64,
    longest: Range<u64>,
}

impl EscapeFreeRangeFinder {
    /// Appends the next piece of the text.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let left = MARK_LIMIT - self.mark_count;
        for at in memchr2_iter(b'"', b'\\', piece).take(left) {
            let mark = self.position + at as u64;
            self.end_run(mark);
            self.run_start = mark + 1;
            self.mark_count += 1;
        }
        self.position += piece.len() as u64;
    }

    /// Returns the longest run that was found.
    pub(super) fn finish(mut self) -> Range<u64> {
        if self.mark_count < MARK_LIMIT {
            self.end_run(self.position);
        }
        self.longest
    }

    /// Ends the current run at an offset.
    fn end_run(&mut self, at: u64) {
        if at - self.run_start > self.longest.end - self.longest.start {
            self.longest = self.run_start..at;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn longest_run(pieces: &[&[u8]]) -> Range<u64> {
        let mut finder = EscapeFreeRangeFinder::default();
        for piece in pieces {
            finder.push(piece);
        }
        finder.finish()
    }

    proptest! {
        #[test]
        fn the_longest_run_does_not_depend_on_the_pieces(text in r#"[a-c"\\]{0,60}"#, cut in 0..61_usize) {
            let bytes = text.as_bytes();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let range = longest_run(&[one, two]);
            let longest = text.split(['"', '\\']).map(str::len).max().unwrap_or_default();
            let index = |at| usize::try_from(at).unwrap();
            let run = &text[index(range.start)..index(range.end)];
            prop_assert_eq!(run.len(), longest);
            prop_assert!(!run.contains(['"', '\\']));
        }
    }

    #[test]
    fn the_search_ends_after_many_marks() {
        let many = br"abc\n".repeat(2 * MARK_LIMIT);
        let long = vec![b'x'; 1000];
        let range = longest_run(&[b"\"", &long, &many, &long]);
        assert_eq!(range, 1..1004);
        assert_eq!(longest_run(&[&many, &long]), 4..8);
    }
}
