//! Text as it would stand on a terminal after everything was written, line by line.
//!
//! Escape sequences and control characters go, but what they do to text is done: `\r` and `\b` move
//! back so that what follows overwrites, and so do the sequences that move within a line (`CSI C`,
//! `D`, `G`) or erase it (`CSI K`, `J`). A progress bar is one line. `CSI A`, `B`, `E`, `F` and
//! `ESC M` go up and down among the last lines, because several progress bars at once are drawn that
//! way; no further than [`Limits::rows`](crate::Limits), and never into something that was displayed
//! in between. What moves anywhere else (`CSI H`, a cleared screen) is dropped without effect: the
//! text stays. A character takes one column, whatever its width; a tab is a character.
//!
//! The state survives chunk borders: the same text gives the same lines however it is cut.

mod parser;
mod redraw;
mod row;
mod style;

use std::collections::VecDeque;

pub(crate) use parser::{Act, Parser, Sequence};
pub(crate) use redraw::{Redraw, redrawn};
pub(crate) use row::Row;
pub(crate) use style::Style;

/// Where clean lines go.
pub(crate) trait Page {
    /// Takes whole lines, each with its newline.
    fn lines(&mut self, text: &str);

    /// Takes one line without its newline; so many bytes more belong to it that nobody holds.
    fn line(&mut self, text: &str, beyond: u64, end: End);

    /// Gives the last line back, without its newline, to be overwritten.
    fn take_back(&mut self) -> Option<String>;
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a newline.
    Newline,
    /// It does not, yet.
    Open,
}

/// Whether colours are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    Kept,
    Dropped,
}

/// The text without colours and control characters, as it would stand on a terminal.
pub fn plain(text: &str) -> String {
    whole(text, Colours::Dropped)
}

/// The text with colours, but nothing else that a terminal obeys, as it would stand there.
pub fn coloured(text: &str) -> String {
    whole(text, Colours::Kept)
}

fn whole(text: &str, colours: Colours) -> String {
    let limits = crate::Limits::default();
    // Nothing else is being printed meanwhile, so a line need not be cut to bound memory.
    let mut screen = Screen::new(colours, usize::MAX, limits.rows);
    let mut page = Plain(String::with_capacity(text.len()));
    screen.push(text, &mut page);
    screen.flush(&mut page, End::Open);
    page.0
}

struct Plain(String);

impl Page for Plain {
    fn lines(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn line(&mut self, text: &str, _beyond: u64, end: End) {
        self.0.push_str(text);
        if end == End::Newline {
            self.0.push('\n');
        }
    }

    fn take_back(&mut self) -> Option<String> {
        let text = self.0.strip_suffix('\n')?;
        let start = text.rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..].to_owned();
        self.0.truncate(start);
        Some(line)
    }
}

/// The last lines of a terminal: those that can still change.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    parser: Parser,
    cursor: Cursor,
}

#[derive(Clone, Debug)]
struct Cursor {
    colours: Colours,
    /// Characters of a row, and rows, that are held.
    most_columns: usize,
    most_rows: usize,
    /// Never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    style: Style,
    /// How text looks where the first row begins, if the rows stand among text that is not from here.
    before: Option<Style>,
    redrawn: bool,
    scratch: String,
}

impl Screen {
    pub(crate) fn new(colours: Colours, most_columns: usize, most_rows: usize) -> Self {
        Self {
            parser: Parser::default(),
            cursor: Cursor {
                colours,
                most_columns,
                most_rows,
                rows: VecDeque::from([Row::default()]),
                row: 0,
                column: 0,
                style: Style::default(),
                before: None,
                redrawn: false,
                scratch: String::new(),
            },
        }
    }

    /// Takes text; lines that are done go to the page.
    pub(crate) fn push(&mut self, text: &str, page: &mut impl Page) {
        let cursor = &mut self.cursor;
        self.parser.push(text, &mut Painter { cursor, page });
    }

    /// What comes now is drawn here, after text that was not: its looks go on in what is drawn, and those
    /// of what is drawn in the text behind it.
    pub(crate) fn begin(&mut self, looks: Style) {
        self.parser = Parser::default();
        self.cursor.style = looks;
        self.cursor.before = Some(looks);
    }

    /// Whether the lines held here are being drawn again and again, as a progress bar is.
    pub(crate) fn is_redrawn(&self) -> bool {
        self.cursor.redrawn
    }

    /// Hands over the lines that are held, though more may belong to them.
    pub(crate) fn flush(&mut self, page: &mut impl Page, end: End) {
        self.cursor.commit(page, end);
    }

    /// Hands over the lines that are held, if there are any, and ends the last one.
    pub(crate) fn settle(&mut self, page: &mut impl Page) {
        if self.is_held() {
            self.cursor.commit(page, End::Newline);
        }
    }

    /// Whether there are lines that have not been handed over.
    pub(crate) fn is_held(&self) -> bool {
        self.cursor.rows.len() > 1 || !self.cursor.rows[0].is_empty()
    }

    /// Forgets the lines that are held.
    pub(crate) fn clear(&mut self) {
        self.cursor.clear();
    }
}

impl Cursor {
    /// Hands over all rows. Blank ones below the cursor are what is left of something erased.
    fn commit(&mut self, page: &mut impl Page, end: End) {
        while self.rows.len() > self.row + 1 && self.rows.back().is_some_and(Row::is_blank) {
            self.rows.pop_back();
        }
        let last = self.rows.len() - 1;
        let colours = self.colours == Colours::Kept;
        for (at, row) in self.rows.iter().enumerate() {
            let end = if at == last { end } else { End::Newline };
            if at == last && row.is_empty() && end == End::Open {
                break;
            }
            if let Some(before) = self.before {
                let before = if at == 0 { before } else { Style::PLAIN };
                let after = if at == last { self.style } else { Style::PLAIN };
                self.scratch.clear();
                row.append_between(&mut self.scratch, before, after);
                page.line(&self.scratch, row.beyond(), end);
                continue;
            }
            if let Some(text) = row.plain() {
                page.line(text, row.beyond(), end);
                continue;
            }
            self.scratch.clear();
            row.append_to(&mut self.scratch, colours);
            page.line(&self.scratch, row.beyond(), end);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.rows.truncate(1);
        self.rows[0].erase_from(0);
        self.row = 0;
        self.column = 0;
        self.redrawn = false;
    }

    fn newline(&mut self, page: &mut impl Page) {
        if self.row + 1 == self.rows.len() {
            self.commit(page, End::Newline);
        } else {
            self.row += 1;
            self.column = 0;
        }
    }

    fn write(&mut self, text: &str) {
        let row = &mut self.rows[self.row];
        self.column = row.write(self.column, text, self.style, self.most_columns);
    }

    fn up(&mut self, count: usize, page: &mut impl Page) {
        self.redrawn = true;
        for _ in 0..count {
            if self.row > 0 {
                self.row -= 1;
            } else if self.rows.len() < self.most_rows
                && let Some(line) = page.take_back()
            {
                self.rows.push_front(Row::of(&line));
            } else {
                break;
            }
        }
    }

    fn down(&mut self, count: usize) {
        self.row = self.row.saturating_add(count).min(self.rows.len() - 1);
    }

    /// Moves within the row. Nobody draws to the right of what a terminal could be wide.
    fn move_to_column(&mut self, column: usize) {
        const WIDEST: usize = 4096;
        self.redrawn = true;
        self.column = column.min(WIDEST.min(self.most_columns).max(self.column));
    }

    fn erase_in_line(&mut self, which: usize) {
        self.redrawn = true;
        let row = &mut self.rows[self.row];
        match which {
            0 => row.erase_from(self.column),
            1 => row.erase_to(self.column),
            2 => row.erase_from(0),
            _ => {}
        }
    }
}

/// How text looks that comes after this one.
fn looks_after(text: &str) -> Style {
    let mut style = Style::PLAIN;
    // Most colours are turned off where they end, and what was before that does not matter.
    let bytes = text.as_bytes();
    let off = ["\x1b[0m", "\x1b[m"].map(|off| memchr::memmem::rfind(bytes, off.as_bytes()));
    let rest = &text[off.into_iter().flatten().max().unwrap_or_default()..];
    if memchr::memchr2(0x1b, parser::C1, rest.as_bytes()).is_some() {
        Parser::default().push(rest, &mut Skimmer(&mut style));
    }
    style
}

/// Sees how text looks, and nothing else.
struct Skimmer<'a>(&'a mut Style);

impl Act for Skimmer<'_> {
    fn text(&mut self, _: &str) {}

    fn carriage_return(&mut self) {}

    fn backspace(&mut self) {}

    fn control_sequence(&mut self, sequence: Sequence<'_>) {
        if sequence.letter == b'm' {
            self.0.apply(sequence.parameters);
        }
    }
}

struct Painter<'a, P> {
    cursor: &'a mut Cursor,
    page: &'a mut P,
}

impl<P: Page> Act for Painter<'_, P> {
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let cursor = &mut *self.cursor;
            let untouched = cursor.rows.len() == 1 && cursor.column == 0 && !cursor.redrawn;
            if untouched && cursor.rows[0].is_empty() && cursor.style.is_plain() {
                // Nothing is held that this could change: all whole lines are done.
                let end = memchr::memrchr(b'\n', rest.as_bytes()).map_or(0, |at| at + 1);
                if end > 0 {
                    self.page.lines(&rest[..end]);
                    rest = &rest[end..];
                }
                if !rest.is_empty() {
                    cursor.write(rest);
                }
                return;
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let line = &rest[..end.unwrap_or(rest.len())];
            if !line.is_empty() {
                cursor.write(line);
            }
            let Some(end) = end else { return };
            cursor.newline(self.page);
            rest = &rest[end + 1..];
        }
    }

    fn carriage_return(&mut self) {
        self.cursor.redrawn = true;
        self.cursor.column = 0;
    }

    fn backspace(&mut self) {
        self.cursor.redrawn = true;
        self.cursor.column = self.cursor.column.saturating_sub(1);
    }

    fn control_sequence(&mut self, sequence: Sequence<'_>) {
        let cursor = &mut *self.cursor;
        // Zero means one for all that move.
        let count = sequence.number(1).max(1);
        match sequence.letter {
            b'm' if cursor.colours == Colours::Kept => cursor.style.apply(sequence.parameters),
            b'A' => cursor.up(count, self.page),
            b'B' => cursor.down(count),
            b'C' => cursor.move_to_column(cursor.column.saturating_add(count)),
            b'D' => cursor.move_to_column(cursor.column.saturating_sub(count)),
            b'E' => {
                cursor.column = 0;
                cursor.down(count);
            }
            b'F' => {
                cursor.column = 0;
                cursor.up(count, self.page);
            }
            b'G' | b'`' => cursor.move_to_column(count - 1),
            b'J' if sequence.number(0) == 0 => {
                cursor.erase_in_line(0);
                cursor.rows.truncate(cursor.row + 1);
            }
            b'K' => cursor.erase_in_line(sequence.number(0)),
            _ => {}
        }
    }

    fn reverse_index(&mut self) {
        self.cursor.up(1, self.page);
    }
}
