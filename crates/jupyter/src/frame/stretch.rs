//! [`Search`]: looks for the longest stretch of a JSON text in which no string begins or ends, and nothing is
//! escaped, while the text passes. A picture is nearly all of its message: who knows that, need not read it only to
//! find out where it ends.

use std::ops::Range;

use memchr::memchr2_iter;

/// After so many quotes and backslashes it is given up: in such a text there is more to read than to pass over.
const MARKS: usize = 4096;

/// What is known of a text so far.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// How much of the text has passed.
    passed: u64,
    /// Quotes and backslashes so far.
    marks: usize,
    /// Behind the last of them.
    begun: u64,
    longest: Range<u64>,
}

impl Search {
    /// Takes the next piece of the text.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let left = MARKS - self.marks;
        for at in memchr2_iter(b'"', b'\\', piece).take(left) {
            let mark = self.passed + at as u64;
            self.end(mark);
            self.begun = mark + 1;
            self.marks += 1;
        }
        self.passed += piece.len() as u64;
    }

    /// The longest stretch, as far as it was looked for.
    pub(super) fn finish(mut self) -> Range<u64> {
        if self.marks < MARKS {
            self.end(self.passed);
        }
        self.longest
    }

    /// A stretch ends here.
    fn end(&mut self, at: u64) {
        if at - self.begun > self.longest.end - self.longest.start {
            self.longest = self.begun..at;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pieces: &[&[u8]]) -> Range<u64> {
        let mut search = Search::default();
        for piece in pieces {
            search.push(piece);
        }
        search.finish()
    }

    proptest! {
        #[test]
        fn it_is_the_longest_however_the_text_is_cut(text in r#"[a-c"\\]{0,60}"#, cut in 0..61_usize) {
            let bytes = text.as_bytes();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let range = found(&[one, two]);
            let longest = text.split(['"', '\\']).map(str::len).max().unwrap_or_default();
            let place = |at| usize::try_from(at).unwrap();
            let stretch = &text[place(range.start)..place(range.end)];
            prop_assert_eq!(stretch.len(), longest);
            prop_assert!(!stretch.contains(['"', '\\']));
        }
    }

    #[test]
    fn in_a_text_of_many_marks_it_is_not_looked_for_to_the_end() {
        let many = br"abc\n".repeat(2 * MARKS);
        let long = vec![b'x'; 1000];
        let range = found(&[b"\"", &long, &many, &long]);
        assert_eq!(range, 1..1004);
        assert_eq!(found(&[&many, &long]), 4..8);
    }
}
