//! Text as a terminal would show it, line by line.
//!
//! Escape sequences and control characters are removed, but their effect on text is applied: `\r` and `\b`
//! move back so that later text overwrites, and sequences move within a line (`CSI C`, `D`, `G`) or erase it
//! (`CSI K`, `J`). A progress bar becomes one line. `CSI A`, `B`, `E`, `F` and `ESC M` move up and down among
//! the last lines, because nested progress bars are drawn that way; at most
//! [`Limits::cursor_rows`](crate::Limits) lines, and never past a display. Other movements (`CSI H`, a
//! cleared screen) have no effect: the text stays. Every character takes one column, whatever its width, and
//! so does a tab.
//!
//! The state survives chunk boundaries: the same text gives the same lines in any chunks.

mod parser;
mod redraw;
mod row;
mod text_style;

use std::collections::VecDeque;

pub(crate) use parser::{AnsiHandler, AnsiParser, ControlSequence};
pub(crate) use redraw::{Redraw, collapse_redraws};
pub(crate) use row::Row;
pub(crate) use text_style::TextStyle;

/// Receives clean lines.
pub(crate) trait LineSink {
    /// Receives complete lines, each with its newline.
    fn push_lines(&mut self, text: &str);

    /// Receives one line without its newline. `overflow_bytes` more bytes belong to the line, but were not
    /// held.
    fn push_line(&mut self, text: &str, overflow_bytes: u64, end: LineEnd);

    /// Removes the last line and returns it without its newline, so that it can be overwritten.
    fn pop_line(&mut self) -> Option<String>;
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// With a newline.
    Newline,
    /// Not yet.
    Open,
}

/// Whether colours are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColourMode {
    Keep,
    Drop,
}

/// Returns the text as a terminal would show it, without colours and control characters.
pub fn plain(text: &str) -> String {
    render(text, ColourMode::Drop)
}

/// Returns the text as a terminal would show it, with colours but without other control sequences.
pub fn coloured(text: &str) -> String {
    render(text, ColourMode::Keep)
}

fn render(text: &str, colours: ColourMode) -> String {
    let limits = crate::Limits::default();
    // The text is complete, so lines need no limit to bound memory.
    let mut screen = Screen::new(colours, usize::MAX, limits.cursor_rows);
    let mut sink = StringSink(String::with_capacity(text.len()));
    screen.push(text, &mut sink);
    screen.flush(&mut sink, LineEnd::Open);
    sink.0
}

struct StringSink(String);

impl LineSink for StringSink {
    fn push_lines(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn push_line(&mut self, text: &str, _overflow_bytes: u64, end: LineEnd) {
        self.0.push_str(text);
        if end == LineEnd::Newline {
            self.0.push('\n');
        }
    }

    fn pop_line(&mut self) -> Option<String> {
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
    parser: AnsiParser,
    state: ScreenState,
}

#[derive(Clone, Debug)]
struct ScreenState {
    colours: ColourMode,
    /// Maximum number of characters per row, and of rows.
    columns_limit: usize,
    rows_limit: usize,
    /// Never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    style: TextStyle,
    /// The style at the start of the first row, if the rows follow text from outside this screen.
    style_before: Option<TextStyle>,
    redrawn: bool,
    buffer: String,
}

impl Screen {
    pub(crate) fn new(colours: ColourMode, columns_limit: usize, rows_limit: usize) -> Self {
        Self {
            parser: AnsiParser::default(),
            state: ScreenState {
                colours,
                columns_limit,
                rows_limit,
                rows: VecDeque::from([Row::default()]),
                row: 0,
                column: 0,
                style: TextStyle::default(),
                style_before: None,
                redrawn: false,
                buffer: String::new(),
            },
        }
    }

    /// Receives text; finished lines go to `sink`.
    pub(crate) fn push(&mut self, text: &str, sink: &mut impl LineSink) {
        let state = &mut self.state;
        self.parser.push(text, &mut ScreenWriter { state, sink });
    }

    /// Continues after text from outside this screen: its style carries over to the rows, and the style of
    /// the rows to the text after them.
    pub(crate) fn start_after(&mut self, style: TextStyle) {
        self.parser = AnsiParser::default();
        self.state.style = style;
        self.state.style_before = Some(style);
    }

    /// Returns whether the held lines are being redrawn, as a progress bar is.
    pub(crate) fn is_redrawn(&self) -> bool {
        self.state.redrawn
    }

    /// Passes on all held lines, even if unfinished.
    pub(crate) fn flush(&mut self, sink: &mut impl LineSink, end: LineEnd) {
        self.state.flush(sink, end);
    }

    /// Passes on all held lines, if any, and ends the last one.
    pub(crate) fn flush_with_newline(&mut self, sink: &mut impl LineSink) {
        if self.has_rows() {
            self.state.flush(sink, LineEnd::Newline);
        }
    }

    /// Returns whether any lines are held.
    pub(crate) fn has_rows(&self) -> bool {
        self.state.rows.len() > 1 || !self.state.rows[0].is_empty()
    }

    /// Drops the held lines.
    pub(crate) fn clear(&mut self) {
        self.state.clear();
    }
}

impl ScreenState {
    /// Passes on all rows, without blank rows below the cursor: those are leftovers of erased text.
    fn flush(&mut self, sink: &mut impl LineSink, end: LineEnd) {
        while self.rows.len() > self.row + 1 && self.rows.back().is_some_and(Row::is_blank) {
            self.rows.pop_back();
        }
        let last = self.rows.len() - 1;
        let colours = self.colours == ColourMode::Keep;
        for (at, row) in self.rows.iter().enumerate() {
            let end = if at == last { end } else { LineEnd::Newline };
            if at == last && row.is_empty() && end == LineEnd::Open {
                break;
            }
            if let Some(before) = self.style_before {
                let before = if at == 0 { before } else { TextStyle::PLAIN };
                let after = if at == last {
                    self.style
                } else {
                    TextStyle::PLAIN
                };
                self.buffer.clear();
                row.append_styled(&mut self.buffer, before, after);
                sink.push_line(&self.buffer, row.overflow_bytes(), end);
                continue;
            }
            if let Some(text) = row.plain() {
                sink.push_line(text, row.overflow_bytes(), end);
                continue;
            }
            self.buffer.clear();
            row.append_to(&mut self.buffer, colours);
            sink.push_line(&self.buffer, row.overflow_bytes(), end);
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

    fn newline(&mut self, sink: &mut impl LineSink) {
        if self.row + 1 == self.rows.len() {
            self.flush(sink, LineEnd::Newline);
        } else {
            self.row += 1;
            self.column = 0;
        }
    }

    fn write(&mut self, text: &str) {
        let row = &mut self.rows[self.row];
        self.column = row.write(self.column, text, self.style, self.columns_limit);
    }

    fn up(&mut self, count: usize, sink: &mut impl LineSink) {
        self.redrawn = true;
        for _ in 0..count {
            if self.row > 0 {
                self.row -= 1;
            } else if self.rows.len() < self.rows_limit
                && let Some(line) = sink.pop_line()
            {
                self.rows.push_front(Row::from_styled_text(&line));
            } else {
                break;
            }
        }
    }

    fn down(&mut self, count: usize) {
        self.row = self.row.saturating_add(count).min(self.rows.len() - 1);
    }

    /// Moves within the row, up to the width of a very wide terminal.
    fn move_to_column(&mut self, column: usize) {
        const COLUMN_MAX: usize = 4096;
        self.redrawn = true;
        self.column = column.min(COLUMN_MAX.min(self.columns_limit).max(self.column));
    }

    fn erase_in_line(&mut self, mode: usize) {
        self.redrawn = true;
        let row = &mut self.rows[self.row];
        match mode {
            0 => row.erase_from(self.column),
            1 => row.erase_to(self.column),
            2 => row.erase_from(0),
            _ => {}
        }
    }
}

/// Returns the style in effect after a text.
fn style_after(text: &str) -> TextStyle {
    let mut style = TextStyle::PLAIN;
    // Most colours end with a reset, and nothing before the last reset matters.
    let bytes = text.as_bytes();
    let off = ["\x1b[0m", "\x1b[m"].map(|off| memchr::memmem::rfind(bytes, off.as_bytes()));
    let rest = &text[off.into_iter().flatten().max().unwrap_or_default()..];
    if memchr::memchr2(0x1b, parser::C1_LEAD_BYTE, rest.as_bytes()).is_some() {
        AnsiParser::default().push(rest, &mut StyleTracker(&mut style));
    }
    style
}

/// Tracks the text style and ignores the text.
struct StyleTracker<'a>(&'a mut TextStyle);

impl AnsiHandler for StyleTracker<'_> {
    fn on_text(&mut self, _: &str) {}

    fn on_carriage_return(&mut self) {}

    fn on_backspace(&mut self) {}

    fn on_control_sequence(&mut self, sequence: ControlSequence<'_>) {
        if sequence.final_byte == b'm' {
            self.0.apply(sequence.parameters);
        }
    }
}

struct ScreenWriter<'a, P> {
    state: &'a mut ScreenState,
    sink: &'a mut P,
}

impl<P: LineSink> AnsiHandler for ScreenWriter<'_, P> {
    fn on_text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let state = &mut *self.state;
            let untouched = state.rows.len() == 1 && state.column == 0 && !state.redrawn;
            if untouched && state.rows[0].is_empty() && state.style.is_plain() {
                // No held row can change: all complete lines are finished.
                let end = memchr::memrchr(b'\n', rest.as_bytes()).map_or(0, |at| at + 1);
                if end > 0 {
                    self.sink.push_lines(&rest[..end]);
                    rest = &rest[end..];
                }
                if !rest.is_empty() {
                    state.write(rest);
                }
                return;
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let line = &rest[..end.unwrap_or(rest.len())];
            if !line.is_empty() {
                state.write(line);
            }
            let Some(end) = end else { return };
            state.newline(self.sink);
            rest = &rest[end + 1..];
        }
    }

    fn on_carriage_return(&mut self) {
        self.state.redrawn = true;
        self.state.column = 0;
    }

    fn on_backspace(&mut self) {
        self.state.redrawn = true;
        self.state.column = self.state.column.saturating_sub(1);
    }

    fn on_control_sequence(&mut self, sequence: ControlSequence<'_>) {
        let state = &mut *self.state;
        // For cursor movements, zero means one.
        let count = sequence.first_parameter_or(1).max(1);
        match sequence.final_byte {
            b'm' if state.colours == ColourMode::Keep => state.style.apply(sequence.parameters),
            b'A' => state.up(count, self.sink),
            b'B' => state.down(count),
            b'C' => state.move_to_column(state.column.saturating_add(count)),
            b'D' => state.move_to_column(state.column.saturating_sub(count)),
            b'E' => {
                state.column = 0;
                state.down(count);
            }
            b'F' => {
                state.column = 0;
                state.up(count, self.sink);
            }
            b'G' | b'`' => state.move_to_column(count - 1),
            b'J' if sequence.first_parameter_or(0) == 0 => {
                state.erase_in_line(0);
                state.rows.truncate(state.row + 1);
            }
            b'K' => state.erase_in_line(sequence.first_parameter_or(0)),
            _ => {}
        }
    }

    fn on_reverse_index(&mut self) {
        self.state.up(1, self.sink);
    }
}
