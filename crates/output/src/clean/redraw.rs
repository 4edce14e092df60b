//! [`Redraw`]: stream text for a notebook, in which a redrawn line is replaced by its final state.
//!
//! A line is redrawn if it contains `\b`, or `\r` that is not part of its line ending. From there on a
//! [`Screen`] renders it, and it may move up and redraw earlier lines as well. All other lines stay byte for
//! byte. The colour at the start of a redrawn line comes from the lines before it, as many as a redraw can
//! reach. The result does not depend on the chunks.

use std::borrow::Cow;
use std::io;

use super::{ColourMode, LineEnd, LineSink, Screen, TextStyle, coloured, style_after};
use crate::limits::Limits;

/// Bytes of a line before its first redraw, and between two `\r` after that. Longer lines are data and stay
/// unchanged.
const LINE_LIMIT: usize = 16 * 1024;

/// Bytes of finished lines that are buffered.
const BUFFER_SIZE: usize = 64 * 1024;

/// Receives the resulting text.
type TextCallback<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// Replaces redrawn lines by their final state.
#[derive(Debug)]
pub(crate) struct Redraw {
    state: LineState,
    /// The current line, if it may still be redrawn.
    line: String,
    /// The last character was a `\r`; the next one determines its meaning.
    pending_return: bool,
    screen: Screen,
    /// Bytes since the last `\r` of the line.
    bytes_since_return: usize,
    finished: FinishedLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// The line is unchanged so far.
    Verbatim,
    /// The line is being redrawn.
    Redrawn,
    /// The line is too long to be redrawn.
    Long,
}

/// Finished lines, which a redraw may still reach.
#[derive(Debug)]
struct FinishedLines {
    text: String,
    lines_limit: usize,
}

/// Replaces redrawn lines of a complete text by their final state.
pub(crate) fn collapse_redraws(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\r', 8, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut redraw = Redraw::new();
    let mut push = |text: &str| {
        out.push_str(text);
        Ok(())
    };
    // This callback never fails.
    drop(redraw.push(text, &mut push));
    drop(redraw.finish(&mut push));
    Cow::Owned(out)
}

impl Redraw {
    pub(crate) fn new() -> Self {
        let lines_limit = Limits::default().cursor_rows;
        Self {
            state: LineState::Verbatim,
            line: String::new(),
            pending_return: false,
            screen: Screen::new(ColourMode::Keep, usize::MAX, lines_limit),
            bytes_since_return: 0,
            finished: FinishedLines {
                text: String::new(),
                lines_limit,
            },
        }
    }

    /// Receives the next chunk, and passes on text that cannot change any more.
    pub(crate) fn push(&mut self, text: &str, push: TextCallback<'_>) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let consumed = match self.state {
                LineState::Verbatim => self.push_verbatim(rest, push)?,
                LineState::Redrawn => self.push_redrawn(rest, push)?,
                LineState::Long => self.push_long(rest, push)?,
            };
            rest = &rest[consumed..];
        }
        self.finished.flush_if_full(push)
    }

    /// Passes on the remaining text.
    pub(crate) fn finish(&mut self, push: TextCallback<'_>) -> io::Result<()> {
        if std::mem::take(&mut self.pending_return) {
            self.start_redrawing();
            self.screen.push("\r", &mut self.finished);
        }
        if self.state == LineState::Redrawn {
            self.screen.flush(&mut self.finished, LineEnd::Open);
        }
        self.finished.text.push_str(&std::mem::take(&mut self.line));
        self.state = LineState::Verbatim;
        self.finished.flush(push)
    }

    fn push_verbatim(&mut self, text: &str, push: TextCallback<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        if std::mem::take(&mut self.pending_return) {
            if bytes[0] == b'\n' {
                self.append("\r\n");
                return Ok(1);
            }
            self.start_redrawing();
            self.screen.push("\r", &mut self.finished);
            self.bytes_since_return = 0;
            return Ok(0);
        }
        let end = find_redraw(bytes).unwrap_or(bytes.len());
        self.append(&text[..end]);
        if self.line.len() > LINE_LIMIT {
            self.finished.flush(push)?;
            push(&std::mem::take(&mut self.line))?;
            self.state = LineState::Long;
            return Ok(end);
        }
        match bytes[end..] {
            [] => {}
            [b'\r'] => {
                self.pending_return = true;
                return Ok(end + 1);
            }
            _ => self.start_redrawing(),
        }
        Ok(end)
    }

    /// Adds text without redraws.
    fn append(&mut self, text: &str) {
        let Some(end) = memchr::memrchr(b'\n', text.as_bytes()) else {
            self.line.push_str(text);
            return;
        };
        let (lines, line) = text.split_at(end + 1);
        if !self.line.is_empty() {
            self.finished.text.push_str(&self.line);
            self.line.clear();
        }
        self.finished.text.push_str(lines);
        self.line.push_str(line);
    }

    fn start_redrawing(&mut self) {
        self.state = LineState::Redrawn;
        self.bytes_since_return = self.line.len();
        self.screen.start_after(self.finished.style_after());
        self.screen
            .push(&std::mem::take(&mut self.line), &mut self.finished);
    }

    fn push_redrawn(&mut self, text: &str, push: TextCallback<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
        let left = LINE_LIMIT.saturating_sub(self.bytes_since_return);
        if end > left {
            let end = text.floor_char_boundary(left);
            self.screen.push(&text[..end], &mut self.finished);
            self.screen.flush(&mut self.finished, LineEnd::Open);
            self.finished.flush(push)?;
            self.state = LineState::Long;
            return Ok(end);
        }
        self.bytes_since_return += end;
        let Some(&last) = bytes.get(end) else {
            self.screen.push(text, &mut self.finished);
            return Ok(end);
        };
        self.bytes_since_return = 0;
        self.screen.push(&text[..=end], &mut self.finished);
        if last == b'\n' && !self.screen.has_rows() {
            self.state = LineState::Verbatim;
            self.finished.flush_if_full(push)?;
        }
        Ok(end + 1)
    }

    fn push_long(&mut self, text: &str, push: TextCallback<'_>) -> io::Result<usize> {
        let newline = memchr::memchr(b'\n', text.as_bytes());
        let end = newline.map_or(text.len(), |at| at + 1);
        if newline.is_some() {
            self.state = LineState::Verbatim;
        }
        push(&text[..end])?;
        Ok(end)
    }
}

/// Returns the position of the first `\b`, or `\r` that is not part of a line ending.
fn find_redraw(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'\r', 8, &bytes[from..])?;
        if !bytes[at..].starts_with(b"\r\n") {
            return Some(at);
        }
        from = at + 2;
    }
}

/// Returns whether a line, without its newline, is too long to be redrawn.
fn is_long(line: &str) -> bool {
    line.strip_suffix('\r').unwrap_or(line).len() > LINE_LIMIT
}

impl FinishedLines {
    /// Returns the style in effect after the last lines.
    fn style_after(&self) -> TextStyle {
        let mut start = self.text.len();
        for _ in 0..self.lines_limit {
            let Some(line) = self.line_before(start).filter(|line| !is_long(line)) else {
                break;
            };
            start -= line.len() + 1;
        }
        style_after(&self.text[start..])
    }

    /// Returns the line whose newline is before `end`.
    fn line_before(&self, end: usize) -> Option<&str> {
        let text = self.text[..end].strip_suffix('\n')?;
        let start = memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1);
        Some(&text[start..])
    }

    /// Passes on lines that no redraw can reach, if the buffer is full.
    fn flush_if_full(&mut self, push: TextCallback<'_>) -> io::Result<()> {
        if self.text.len() <= BUFFER_SIZE {
            return Ok(());
        }
        let mut newlines = memchr::memrchr_iter(b'\n', self.text.as_bytes());
        let last_newline = newlines.nth(self.lines_limit);
        if let Some(end) = last_newline.map(|at| at + 1) {
            push(&self.text[..end])?;
            self.text.drain(..end);
        }
        Ok(())
    }

    fn flush(&mut self, push: TextCallback<'_>) -> io::Result<()> {
        if !self.text.is_empty() {
            push(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

impl LineSink for FinishedLines {
    fn push_lines(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn push_line(&mut self, text: &str, _overflow_bytes: u64, end: LineEnd) {
        self.text.push_str(text);
        if end == LineEnd::Newline {
            self.text.push('\n');
        }
    }

    fn pop_line(&mut self) -> Option<String> {
        let end = self.text.len();
        let line = self.line_before(end).filter(|line| !is_long(line))?;
        let start = end - line.len() - 1;
        // The line is unchanged and may contain any sequence.
        let line = coloured(line);
        self.text.truncate(start);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_without_redraws_are_unchanged() {
        for text in [
            "",
            "a\n\nb",
            "\x1b[31mred\x1b[0m\x1b]8;;x\x07\n\x0c\x1b[2A\x1b[K\n",
            "dos\r\nlines\r\n\r\n",
            "unfinished \x1b[3",
        ] {
            assert_eq!(collapse_redraws(text), text);
        }
    }

    #[test]
    fn redrawn_lines_keep_the_final_text() {
        for (text, expected) in [
            ("10%\r20%\r30%", "30%"),
            ("10%\r20%\r\nnext\n", "20%\nnext\n"),
            ("a\n10%\r", "a\n10%"),
            ("long word\rshort", "shortword"),
            ("long word\r\x1b[Kshort\n", "short\n"),
            ("abc\x08\x08X\x1b[0m\nb", "aXc\nb"),
            ("\r\r\n\n", "\n\n"),
            // Two bars, one below the other.
            ("a:0\n\rb:0\x1b[A\ra:1\n\rb:1\x1b[A\ra:2\n", "a:2\nb:1"),
        ] {
            assert_eq!(collapse_redraws(text), expected, "{text:?}");
        }
    }

    #[test]
    fn colours_carry_over_to_neighbouring_lines() {
        assert_eq!(
            collapse_redraws("\x1b[32m10%\r20%\x1b[0m done\n"),
            "\x1b[0;32m20%\x1b[0m done\n"
        );
        // A colour without a reset.
        let open = "\x1b[31mred\n10%\r20%\nred\n";
        assert_eq!(collapse_redraws(open), "\x1b[31mred\n20%\nred\n");
        let reset = "\x1b[31mred\n\x1b[0m10%\r20%\nplain\n";
        assert_eq!(collapse_redraws(reset), "\x1b[31mred\n\x1b[0m20%\nplain\n");
        let started = "10%\r\x1b[31m20%\nred\n";
        assert_eq!(collapse_redraws(started), "\x1b[0;31m20%\nred\n");
    }

    #[test]
    fn long_lines_are_unchanged() {
        let long = "x".repeat(2 * LINE_LIMIT);
        let before = format!("a\n{long}\rb\rc\n1\r2\n");
        assert_eq!(collapse_redraws(&before), format!("a\n{long}\rb\rc\n2\n"));
        let after = format!("yz\r{long}\rb\n1\r2\n");
        assert_eq!(collapse_redraws(&after), format!("{long}\rb\n2\n"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut redraw = Redraw::new();
        let mut length = 0;
        for text in ["\r50%|####    |", "line\n", "\rx\x1b[A", "0123456789"] {
            for _ in 0..200_000 {
                redraw
                    .push(text, &mut |text| {
                        length += text.len();
                        Ok(())
                    })
                    .unwrap();
                assert!(redraw.finished.text.capacity() + redraw.line.capacity() < 1 << 20);
            }
        }
        assert!(length > 2_000_000);
    }

    fn redraw_in_chunks(text: &str, chunks: &[usize]) -> String {
        let mut redraw = Redraw::new();
        let mut out = String::new();
        let mut push = |text: &str| {
            out.push_str(text);
            Ok(())
        };
        let mut rest = text;
        for length in chunks.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at(rest.ceil_char_boundary(*length));
            redraw.push(chunk, &mut push).unwrap();
            rest = after;
        }
        redraw.finish(&mut push).unwrap();
        out
    }

    fn common_text() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-zé ]{0,12}",
            3 => Just("\r".to_owned()),
            2 => Just("\n".to_owned()),
            1 => Just("\r\n".to_owned()),
            1 => Just("\u{8}".to_owned()),
            2 => "\x1b\\[[0-9;]{0,4}[mKDCG]",
        ]
    }

    fn any_text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            8 => common_text(),
            2 => "\x1b\\[[0-9;]{0,4}[AJBEF]",
            1 => "\x1b[\\[\\]P0-9;]{0,3}",
            1 => (0..3 * LINE_LIMIT).prop_map(|length| "y".repeat(length)),
        ];
        prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn result_does_not_depend_on_chunks(
            text in any_text(),
            chunks in prop::collection::vec(1..30_usize, 1..4),
        ) {
            prop_assert_eq!(redraw_in_chunks(&text, &chunks), redraw_in_chunks(&text, &[usize::MAX]));
        }

        #[test]
        fn result_matches_the_terminal(parts in prop::collection::vec(common_text(), 0..30)) {
            let text = parts.concat();
            let redrawn = collapse_redraws(&text);
            prop_assert_eq!(super::super::plain(&redrawn), super::super::plain(&text));
            let mut lines = redrawn.split('\n');
            let once = |line: &str| !line.trim_end_matches('\r').contains(['\r', '\u{8}']);
            prop_assert!(lines.all(once), "{redrawn:?}");
        }
    }
}
