//! [`Redraw`]: text as it came, but for lines that were drawn again and again: those are what a terminal
//! shows of them in the end.
//!
//! A line is drawn again if it has a `\r` that does not belong to its end, or a `\b`. From there on it is
//! on a [`Screen`], and may go up and draw the lines above it again as well. All other lines stay what they
//! are, to the letter. A colour that is on where such a line begins is known from the lines before it, as many
//! as could be drawn again. How the text is cut when it comes does not show.

use std::borrow::Cow;
use std::io;

use super::{Colours, End, Page, Screen, Style, coloured, looks_after};
use crate::limits::Limits;

/// Bytes of a line before it is known to be drawn again, and of a run without `\r` after that. What is
/// longer is data, and is left as it is.
const LONGEST: usize = 16 * 1024;

/// Bytes of finished lines that are gathered before they go on.
const GATHERED: usize = 64 * 1024;

/// Takes the text.
type Take<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// Text as it came, but for lines that were drawn again and again.
#[derive(Debug)]
pub(crate) struct Redraw {
    state: State,
    /// The line as it came so far, if it is one that may be drawn again later.
    line: String,
    /// Its last character was a `\r`, and what follows decides what that means.
    returned: bool,
    screen: Screen,
    /// Bytes since the line's latest `\r`.
    run: usize,
    done: Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The line is as it came.
    Verbatim,
    /// The line is drawn again.
    Drawn,
    /// The line is too long for anything but to be as it came.
    Long,
}

/// Finished lines, which may still be drawn again.
#[derive(Debug)]
struct Done {
    text: String,
    most_lines: usize,
}

/// A text that is all there.
pub(crate) fn redrawn(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\r', 8, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut redraw = Redraw::new();
    let mut take = |text: &str| {
        out.push_str(text);
        Ok(())
    };
    // What takes it does not fail.
    drop(redraw.push(text, &mut take));
    drop(redraw.finish(&mut take));
    Cow::Owned(out)
}

impl Redraw {
    pub(crate) fn new() -> Self {
        let most_lines = Limits::default().rows;
        Self {
            state: State::Verbatim,
            line: String::new(),
            returned: false,
            screen: Screen::new(Colours::Kept, usize::MAX, most_lines),
            run: 0,
            done: Done {
                text: String::new(),
                most_lines,
            },
        }
    }

    /// Takes the next piece of text, and hands on what will not change any more.
    pub(crate) fn push(&mut self, text: &str, take: Take<'_>) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Verbatim => self.verbatim(rest, take)?,
                State::Drawn => self.drawn(rest, take)?,
                State::Long => self.long(rest, take)?,
            };
            rest = &rest[taken..];
        }
        self.done.hand_on(take)
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self, take: Take<'_>) -> io::Result<()> {
        if std::mem::take(&mut self.returned) {
            self.begin_drawing();
            self.screen.push("\r", &mut self.done);
        }
        if self.state == State::Drawn {
            self.screen.flush(&mut self.done, End::Open);
        }
        self.done.text.push_str(&std::mem::take(&mut self.line));
        self.state = State::Verbatim;
        self.done.hand_on_all(take)
    }

    fn verbatim(&mut self, text: &str, take: Take<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        if std::mem::take(&mut self.returned) {
            if bytes[0] == b'\n' {
                self.keep("\r\n");
                return Ok(1);
            }
            self.begin_drawing();
            self.screen.push("\r", &mut self.done);
            self.run = 0;
            return Ok(0);
        }
        let end = drawn_again(bytes).unwrap_or(bytes.len());
        self.keep(&text[..end]);
        if self.line.len() > LONGEST {
            self.done.hand_on_all(take)?;
            take(&std::mem::take(&mut self.line))?;
            self.state = State::Long;
            return Ok(end);
        }
        match bytes[end..] {
            [] => {}
            [b'\r'] => {
                self.returned = true;
                return Ok(end + 1);
            }
            _ => self.begin_drawing(),
        }
        Ok(end)
    }

    /// Takes text that draws nothing again.
    fn keep(&mut self, text: &str) {
        let Some(end) = memchr::memrchr(b'\n', text.as_bytes()) else {
            self.line.push_str(text);
            return;
        };
        let (lines, line) = text.split_at(end + 1);
        if !self.line.is_empty() {
            self.done.text.push_str(&self.line);
            self.line.clear();
        }
        self.done.text.push_str(lines);
        self.line.push_str(line);
    }

    fn begin_drawing(&mut self) {
        self.state = State::Drawn;
        self.run = self.line.len();
        self.screen.begin(self.done.looks());
        self.screen
            .push(&std::mem::take(&mut self.line), &mut self.done);
    }

    fn drawn(&mut self, text: &str, take: Take<'_>) -> io::Result<usize> {
        let bytes = text.as_bytes();
        let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
        let room = LONGEST.saturating_sub(self.run);
        if end > room {
            let end = text.floor_char_boundary(room);
            self.screen.push(&text[..end], &mut self.done);
            self.screen.flush(&mut self.done, End::Open);
            self.done.hand_on_all(take)?;
            self.state = State::Long;
            return Ok(end);
        }
        self.run += end;
        let Some(&last) = bytes.get(end) else {
            self.screen.push(text, &mut self.done);
            return Ok(end);
        };
        self.run = 0;
        self.screen.push(&text[..=end], &mut self.done);
        if last == b'\n' && !self.screen.is_held() {
            self.state = State::Verbatim;
            self.done.hand_on(take)?;
        }
        Ok(end + 1)
    }

    fn long(&mut self, text: &str, take: Take<'_>) -> io::Result<usize> {
        let newline = memchr::memchr(b'\n', text.as_bytes());
        let end = newline.map_or(text.len(), |at| at + 1);
        if newline.is_some() {
            self.state = State::Verbatim;
        }
        take(&text[..end])?;
        Ok(end)
    }
}

/// Where something moves back that is not the end of a line.
fn drawn_again(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'\r', 8, &bytes[from..])?;
        if !bytes[at..].starts_with(b"\r\n") {
            return Some(at);
        }
        from = at + 2;
    }
}

/// Whether a line, without its newline, is too long to be drawn again.
fn is_long(line: &str) -> bool {
    line.strip_suffix('\r').unwrap_or(line).len() > LONGEST
}

impl Done {
    /// How text looks that comes after the last lines.
    fn looks(&self) -> Style {
        let mut start = self.text.len();
        for _ in 0..self.most_lines {
            let Some(line) = self.line_before(start).filter(|line| !is_long(line)) else {
                break;
            };
            start -= line.len() + 1;
        }
        looks_after(&self.text[start..])
    }

    /// The line that ends with a newline before a place.
    fn line_before(&self, end: usize) -> Option<&str> {
        let text = self.text[..end].strip_suffix('\n')?;
        let start = memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1);
        Some(&text[start..])
    }

    /// Hands on what nobody can go back to, if it is much.
    fn hand_on(&mut self, take: Take<'_>) -> io::Result<()> {
        if self.text.len() <= GATHERED {
            return Ok(());
        }
        let mut newlines = memchr::memrchr_iter(b'\n', self.text.as_bytes());
        let kept = newlines.nth(self.most_lines);
        if let Some(end) = kept.map(|at| at + 1) {
            take(&self.text[..end])?;
            self.text.drain(..end);
        }
        Ok(())
    }

    fn hand_on_all(&mut self, take: Take<'_>) -> io::Result<()> {
        if !self.text.is_empty() {
            take(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

impl Page for Done {
    fn lines(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn line(&mut self, text: &str, _beyond: u64, end: End) {
        self.text.push_str(text);
        if end == End::Newline {
            self.text.push('\n');
        }
    }

    fn take_back(&mut self) -> Option<String> {
        let end = self.text.len();
        let line = self.line_before(end).filter(|line| !is_long(line))?;
        let start = end - line.len() - 1;
        // It is as it came, and may hold anything.
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
    fn lines_that_are_drawn_once_stay_what_they_are() {
        for text in [
            "",
            "a\n\nb",
            "\x1b[31mred\x1b[0m\x1b]8;;x\x07\n\x0c\x1b[2A\x1b[K\n",
            "dos\r\nlines\r\n\r\n",
            "unfinished \x1b[3",
        ] {
            assert_eq!(redrawn(text), text);
        }
    }

    #[test]
    fn lines_that_are_drawn_again_are_what_is_seen_of_them() {
        for (text, seen) in [
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
            assert_eq!(redrawn(text), seen, "{text:?}");
        }
    }

    #[test]
    fn colours_go_on_in_the_lines_around() {
        assert_eq!(
            redrawn("\x1b[32m10%\r20%\x1b[0m done\n"),
            "\x1b[0;32m20%\x1b[0m done\n"
        );
        // A colour that nobody turns off.
        let open = "\x1b[31mred\n10%\r20%\nred\n";
        assert_eq!(redrawn(open), "\x1b[31mred\n20%\nred\n");
        let reset = "\x1b[31mred\n\x1b[0m10%\r20%\nplain\n";
        assert_eq!(redrawn(reset), "\x1b[31mred\n\x1b[0m20%\nplain\n");
        let begun = "10%\r\x1b[31m20%\nred\n";
        assert_eq!(redrawn(begun), "\x1b[0;31m20%\nred\n");
    }

    #[test]
    fn what_is_long_is_left_as_it_is() {
        let long = "x".repeat(2 * LONGEST);
        let before = format!("a\n{long}\rb\rc\n1\r2\n");
        assert_eq!(redrawn(&before), format!("a\n{long}\rb\rc\n2\n"));
        let after = format!("yz\r{long}\rb\n1\r2\n");
        assert_eq!(redrawn(&after), format!("{long}\rb\n2\n"));
    }

    #[test]
    fn memory_stays_small() {
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
                assert!(redraw.done.text.capacity() + redraw.line.capacity() < 1 << 20);
            }
        }
        assert!(length > 2_000_000);
    }

    fn in_pieces(text: &str, pieces: &[usize]) -> String {
        let mut redraw = Redraw::new();
        let mut out = String::new();
        let mut take = |text: &str| {
            out.push_str(text);
            Ok(())
        };
        let mut rest = text;
        for length in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(*length));
            redraw.push(piece, &mut take).unwrap();
            rest = after;
        }
        redraw.finish(&mut take).unwrap();
        out
    }

    fn usual() -> impl Strategy<Value = String> {
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
            8 => usual(),
            2 => "\x1b\\[[0-9;]{0,4}[AJBEF]",
            1 => "\x1b[\\[\\]P0-9;]{0,3}",
            1 => (0..3 * LONGEST).prop_map(|length| "y".repeat(length)),
        ];
        prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn pieces_do_not_show(
            text in any_text(),
            pieces in prop::collection::vec(1..30_usize, 1..4),
        ) {
            prop_assert_eq!(in_pieces(&text, &pieces), in_pieces(&text, &[usize::MAX]));
        }

        #[test]
        fn it_is_what_a_terminal_shows(parts in prop::collection::vec(usual(), 0..30)) {
            let text = parts.concat();
            let redrawn = redrawn(&text);
            prop_assert_eq!(super::super::plain(&redrawn), super::super::plain(&text));
            let mut lines = redrawn.split('\n');
            let once = |line: &str| !line.trim_end_matches('\r').contains(['\r', '\u{8}']);
            prop_assert!(lines.all(once), "{redrawn:?}");
        }
    }
}
